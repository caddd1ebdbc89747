// The OpenCL source's view of the program's memory: objects, their mappings, and shared allocations.
#pragma once

#include "capture/source/opencl/core.h"

namespace tacho::capture::opencl {

struct HostMapping {
  HostMapping* next;
  const void* at;
  uint64_t bytes;
  bool written;  // unmapping brings the data back to the device
};
struct ClMemory {
  std::atomic<uint32_t> references;  // the program's, and one per sub-buffer
  event::MemoryKind kind;
  uint32_t element_bytes;  // of an image
  uint32_t device;
  uint32_t name;  // string: "buffer", "image2D" ...
  uint64_t bytes;
  ClMemory* parent;
  cl_mem handle;
  HostMapping* mappings;  // under g_wiped->objects
};
/// nullptr when tacho does not see how the object is made (interoperation).
ClMemory* memory_of(cl_mem handle);
/// Remembers the extent of a mapping until it is unmapped. `written`: unmapping copies data back to the device.
void mapped(ClMemory& memory, const void* at, uint64_t bytes, bool written);
/// Forgets the mapping at `at` and returns it; all 0 when unknown.
HostMapping unmapped(ClMemory& memory, const void* at);

/// An allocation known by pointer: SVM or unified shared memory.
struct SharedMemory {
  uint64_t begin;
  uint64_t bytes;
  event::MemoryKind kind;
  uint32_t device;
};
void shared_allocated(const void* at, uint64_t bytes, event::MemoryKind kind, uint32_t device);
/// False when `at` is unknown.
bool shared_freed(const void* at, SharedMemory* was);
/// The allocation that contains `at`; kind kUnknown when none does.
SharedMemory shared_at(const void* at);

void write_allocation(const CallTimes& times, event::AllocationOperation operation, event::MemoryKind kind,
                      uint32_t device, uint64_t bytes, uint64_t address, uint32_t name);

/// Forgets all memory: numbers of its texts and devices belong to a pool that is gone.
void forget_memory();
void install_memory_hooks(cl_icd_dispatch& hooks);

}  // namespace tacho::capture::opencl
