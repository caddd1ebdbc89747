// The OpenCL runtimes (ICDs) of the process: their kind, their clock, and the slots of their tables that must not be
// called. The dispatch table at the start of every OpenCL object identifies its runtime.
//
// Some runtimes export their functions under the plain OpenCL names. Slots of their own table then resolve to the
// loader's functions (or to ours, when preloaded), which look into the table again, for ever. Oclgrind 21.10 does so
// with all functions since OpenCL 2.0. tacho detects such slots by the library they lie in. It calls the runtime's own
// function instead if the runtime exports one, and otherwise returns CL_INVALID_OPERATION.
#pragma once

#include "capture/source/opencl/core.h"

namespace tacho::capture::opencl {

enum class ClRuntime : uint8_t { kOther, kPocl, kOclgrind };

struct ClVendor {
  const void* dispatch;
  ClRuntime runtime;
  event::DeviceClock clock;
  bool clock_known;  // from the runtime's name; else measured at its first command
  uint32_t clock_error_ns;
  bool always_profiles;  // gives profiling times for queues that did not ask for them
  bool loops[192];       // by function number
  void* own[192];        // the runtime's own function for such a slot; null = it has none
};

/// The runtime of a platform or device. The first call for a runtime calls into it to describe it. nullptr when the
/// handle is null or there are too many runtimes.
ClVendor* vendor_of(cl_platform_id platform);
ClVendor* vendor_of(cl_device_id device);

/// Code of the runtimes. An exported function that is called from such a range was called by the runtime itself.
struct CodeRange {
  uint64_t begin, size;
};
inline constexpr uint32_t kMaxCodeRanges = 8;
extern CodeRange g_code_ranges[kMaxCodeRanges];
extern std::atomic<uint32_t> g_code_range_count;
/// Adds the library that contains `address`, unless the list has it or is full. Call without holding any of tacho's
/// locks.
void add_code_range(const void* address);
inline bool called_by_runtime(const void* caller) {
  const uint32_t count = g_code_range_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i)
    if (reinterpret_cast<uint64_t>(caller) - g_code_ranges[i].begin < g_code_ranges[i].size) return true;
  return false;
}

}  // namespace tacho::capture::opencl
