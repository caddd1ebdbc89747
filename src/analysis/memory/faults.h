// What looks wrong with memory, as numbers: a peak that one temporary makes, memory that grows, a reserve that lies
// idle, activations. `tacho memory` and findings judge the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/memory/memory.h"

namespace tacho::analysis {

struct MemoryFaults {
  struct Held {
    std::string owner;  ///< "train.py:31 step (aten::empty)"
    int64_t bytes = 0;
    int64_t steps = 0;  ///< different parts of the recording in which it allocated what was never freed
  };
  std::optional<Held> temporary;  ///< the largest temporary memory at the peak, of one or two allocations
  std::vector<Held> growing;      ///< what was allocated in most parts and never freed; by bytes, most first
  int64_t parts = 0;              ///< steps of training, or equal parts of the recording
  bool by_steps = false;
  int64_t reserved = 0;     ///< the most that the allocator held of the device's memory; 0 = not told
  int64_t idle = 0;         ///< of it, what was never live together
  int64_t activations = 0;  ///< at the peak
};

/// Places with a smaller peak are not worth a word, bytes.
inline constexpr int64_t kMemoryWorthwhile = 16 << 20;

MemoryFaults memory_faults(const MemoryPlace& place, const MemoryReport& report);

}  // namespace tacho::analysis
