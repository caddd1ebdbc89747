// A hash of two whole numbers, for tables keyed by a pair such as process and thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tacho::analysis {

struct PairHash {
  size_t operator()(const std::pair<int64_t, int64_t>& pair) const {
    return static_cast<size_t>(
        (static_cast<uint64_t>(pair.first) * 0x9e3779b97f4a7c15ull ^ static_cast<uint64_t>(pair.second)) *
            0xff51afd7ed558ccdull >>
        7);
  }
};

}  // namespace tacho::analysis
