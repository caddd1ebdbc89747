// What the links between GPUs can carry, as far as a GPU's name tells it: the peak to compare bus bandwidth with.
#pragma once

#include <string>
#include <string_view>

namespace tacho::ranks {

/// Of one GPU to others of its host, in one direction.
struct LinkPeak {
  double gb_s = 0;        // 10^9 bytes a second, of all its links that lead to the group's GPUs; 0 = unknown
  std::string_view link;  // "NVLink 4"
};

/// By the maker's data sheets (docs/ranks.md has the table). Modules only whose board brings the links with it: what a
/// PCIe card is plugged into, or bridged with, its name does not tell. `ranks`: of the group; where every GPU has a
/// link of its own to each other one, a small group uses few of them.
LinkPeak link_peak(std::string_view device, int64_t ranks);

}  // namespace tacho::ranks
