// The bandwidth of the links between GPUs, by a GPU's name: the peak to compare bus bandwidth with.
#pragma once

#include <string>
#include <string_view>

namespace tacho::ranks {

/// Of one GPU to others of its host, in one direction.
struct LinkPeak {
  double gb_s = 0;        // 10^9 bytes a second, of all its links that lead to the group's GPUs; 0 = unknown
  std::string_view link;  // "NVLink 4"
};

/// By the maker's data sheets (docs/ranks.md has the table). Knows only modules whose board includes the links: the
/// name of a PCIe card does not say where it is plugged in or whether it has a bridge. `ranks`: of the group; if every
/// GPU has a link of its own to each other one, a small group uses few of them.
LinkPeak link_peak(std::string_view device, int64_t ranks);

}  // namespace tacho::ranks
