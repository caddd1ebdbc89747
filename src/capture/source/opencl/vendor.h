// The runtimes (ICDs) of the process, told apart by the dispatch table that every OpenCL object starts with:
// what they are, in which clock they count, and which slots of their tables must not be called.
//
// Some runtimes export their functions under the plain OpenCL names, so that slots of their own table resolve
// to the loader's functions (or to ours, when preloaded), which look into the table again, for ever.
// Oclgrind 21.10 does so with all functions since OpenCL 2.0. Such slots are found by looking in which
// library they lie, and are answered with the runtime's own function where it exports one, else with
// CL_INVALID_OPERATION.
#pragma once

#include "capture/source/opencl/core.h"

namespace tacho::capture::opencl {

enum class Runtime : uint8_t { kOther, kPocl, kOclgrind };

struct Vendor {
  const void* dispatch;
  Runtime runtime;
  event::DeviceClock clock;
  bool clock_known;  // from the runtime's name; else measured at its first command
  uint32_t clock_error_ns;
  bool always_profiles;  // tells profiling times of queues that did not ask for them
  bool loops[192];       // by function number
  void* own[192];        // the runtime's own function for such a slot; null = it has none
};

/// The runtime of a platform or device, described at the first call for it, which calls into the runtime;
/// nullptr when the handle is null or there are too many runtimes.
Vendor* vendor_of(cl_platform_id platform);
Vendor* vendor_of(cl_device_id device);

/// Where the runtimes' code lies, for the exported functions: a call from there is the runtime's own,
/// whatever it calls.
struct CodeRange {
  uint64_t begin, size;
};
inline constexpr uint32_t kMaxCodeRanges = 8;
extern CodeRange g_code_ranges[kMaxCodeRanges];
extern std::atomic<uint32_t> g_code_range_count;
/// Adds the library that `address` lies in. Under no lock of ours; a full list or a library in it already is
/// fine.
void add_code_range(const void* address);
inline bool called_by_runtime(const void* caller) {
  const uint32_t count = g_code_range_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i)
    if (reinterpret_cast<uint64_t>(caller) - g_code_ranges[i].begin < g_code_ranges[i].size) return true;
  return false;
}

}  // namespace tacho::capture::opencl
