// Which numbers came before, where most lie close together: External ids and correlations of a file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/number_map.h"

namespace tacho::format::kineto {

/// Sets of numbers, 64 neighbours an entry. Bounded: once kMostPages entries are there, no number gets a new one.
class IdPages {
 public:
  static constexpr size_t kMostPages = size_t{1} << 18;

  /// Adds `id` to the set of `owner` and `kind`. True if it was there.
  bool seen(int64_t owner, int64_t kind, int64_t id) {
    const auto bit = static_cast<int64_t>(uint64_t{1} << (static_cast<uint64_t>(id) & 63));
    const std::array<int64_t, 3> key = {owner, kind, id >> 6};
    auto page = pages_.find(key);
    if (page == pages_.end()) {
      if (pages_.size() >= kMostPages) return false;
      page = pages_.try_emplace(key, 0).first;
    }
    const bool before = (page.value() & bit) != 0;
    page.value() |= bit;
    return before;
  }
  bool has(int64_t owner, int64_t kind, int64_t id) const {
    const auto page = pages_.find({owner, kind, id >> 6});
    return page != pages_.end() && (static_cast<uint64_t>(page->second) >> (static_cast<uint64_t>(id) & 63) & 1) != 0;
  }
  /// Some numbers may be missing.
  bool is_full() const { return pages_.size() >= kMostPages; }

 private:
  NumberMap<3> pages_;
};

}  // namespace tacho::format::kineto
