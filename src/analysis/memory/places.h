// What is known of memory: places, owners, sums over time. The types of memory.h and of what it is made of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::analysis {

/// What memory is for: as the program's framework says, else by when it was allocated and freed.
enum class MemoryUse : uint8_t {
  kParameter,   // only where the framework says so
  kGradient,    // ... or allocated in the backward pass and alive after it
  kOptimizer,   // state of the optimizer: ... or allocated in its step and alive after it
  kActivation,  // allocated in the forward pass, and freed after the operator that did
  kTemporary,   // freed before the operator that allocated it had ended, or within the same backward pass or step
  kOther,       // none of these, or nothing is known
  kNone,        // of memory that an allocator took: what it is for stands at the allocator's blocks
};
std::string_view to_string(MemoryUse use);

/// One kind of owner of memory: allocations of one line, module, operator and use.
struct MemoryOwner {
  std::string line;       ///< "train.py:31 forward", of the program's own code; empty = unknown
  std::string module;     ///< place in the model; empty = unknown
  std::string operation;  ///< operator of the framework, else the program's range around it, else its kind ("buffer")
  MemoryUse use = MemoryUse::kOther;
  struct Amount {
    int64_t bytes = 0, count = 0;
  };
  /// By moment: the peak, the end, then those that were asked for.
  std::vector<Amount> live;
  Amount all;  ///< of everything it allocated
  /// Its part of each value of MemoryPlace::curve; empty = not asked for, or 0 throughout.
  std::vector<int64_t> curve;
  int64_t steps = 0;  ///< different parts of the recording in which it allocated what was never freed
};

/// Memory whose bytes add up: of one device, or of the host.
struct MemoryPlace {
  std::string name;     ///< "GPU 0: NVIDIA H100"
  int64_t process = 0;  ///< row
  bool blocks = false;  ///< of a framework's allocator; else what the runtime's calls allocated
  /// What the runtime's calls allocated of a device on which the process has such an allocator too: mostly its
  /// segments.
  bool beneath = false;
  int64_t allocations = 0, frees = 0;
  int64_t before = 0;  ///< bytes live when the recording begins
  int64_t peak = 0, peak_time = 0, end = 0;
  std::optional<int64_t> reserved_at_peak, reserved_most, reserved_end;  ///< nullopt = not told
  int64_t before_frees = 0;                                              ///< frees of memory that no row allocates
  int64_t unsized_frees = 0;                                             ///< of them, those whose size nothing tells
  int64_t reused = 0;    ///< addresses allocated again without a free between
  int64_t unsized = 0;   ///< allocations without a size
  int64_t gaps = 0;      ///< times at which the allocator's own sum jumps beyond what the rows tell
  int64_t failures = 0;  ///< out of memory
  /// Equal parts of the recording: the most that was live and reserved (kUnknown = not told).
  struct Bucket {
    int64_t live = 0, reserved = 0;
  };
  std::vector<Bucket> curve;
  std::vector<MemoryOwner> owners;  ///< by bytes at the peak, most first
  /// Allocations by how long they lived: shorter than 100 us, 1 ms, 10 ms, 100 ms, 1 s, longer, and never freed.
  std::array<MemoryOwner::Amount, 7> lifetimes{};
};
inline constexpr std::array<int64_t, 5> kLifetimes = {100'000, 1'000'000, 10'000'000, 100'000'000, 1'000'000'000};

struct MemoryReport {
  std::vector<MemoryPlace> places;  ///< by peak, highest first; those beneath an allocator come last
  int64_t from = 0, to = 0;         ///< trace time of the first and the last allocation
  int64_t steps = 0;                ///< of training, as markers tell; 0 = no markers tell
  int64_t lost = 0;                 ///< allocations and frees that the recording lost
};

}  // namespace tacho::analysis
