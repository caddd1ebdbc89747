// The kernels of the loaded code objects, for kernel replay (replay.h).
#pragma once

#include "capture/counter_spool.h"
#include "capture/source/rocm/code_object.h"
#include "vendor/amd/sdk_sampling.h"

namespace tacho::capture::rocm::replay {

/// A code object is loaded, or about to be unloaded; a kernel of one, by its mangled name without ".kd". `filter`
/// chooses kernels.
void see_code_object(const vendor::sdk::CodeObject& code, bool loaded);
void see_kernel(uint64_t code_object, const char* name, const counter::CounterSpool& filter);
/// Grows with each code object that is loaded.
uint32_t codes_loaded();

struct KnownKernel {
  size_t number;
  const char* name;  // stays
  const KernelArguments*
      arguments;    // stays; nullptr = unknown, or not the same in all code that has a kernel of that name
  bool wanted;      // by the user's filter
  bool collective;  // it waits for other GPUs or processes
  bool waits;       // note_waiting() was called for it
};
/// False if no kernel of that name has been loaded.
bool find_kernel(const char* name, KnownKernel& out);
/// The kernel did not end on its own.
void note_waiting(size_t number);

}  // namespace tacho::capture::rocm::replay
