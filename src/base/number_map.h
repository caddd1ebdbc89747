// A map whose keys are a few whole numbers: how importers find the row that they made for an id, a queue or a shape.
#pragma once

#include <tsl/robin_map.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace tacho {

struct NumbersHash {
  template <size_t kCount>
  size_t operator()(const std::array<int64_t, kCount>& numbers) const {
    uint64_t hash = 0;
    for (const int64_t number : numbers) {
      hash = (hash ^ static_cast<uint64_t>(number)) * 0x9e3779b97f4a7c15ULL;
      hash ^= hash >> 29;
    }
    return static_cast<size_t>(hash);
  }
};

template <size_t kCount>
using NumberMap = tsl::robin_map<std::array<int64_t, kCount>, int64_t, NumbersHash>;

}  // namespace tacho
