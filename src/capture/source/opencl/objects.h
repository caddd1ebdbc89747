// What the OpenCL source knows about the program's objects: devices, contexts, kernels, memory. It finds everything by
// handle without a lock, and asks the runtime about a handle whose creation it did not see at the handle's first use.
#pragma once

#include "capture/source/opencl/core.h"
#include "capture/source/opencl/vendor.h"

namespace tacho::capture::opencl {

struct Device {
  uint32_t number;  // of its DeviceRecord
  bool has_timer;   // clGetDeviceAndHostTimer answers
  cl_device_id handle;
  Vendor* vendor;
  uint64_t last_pair;  // host ticks of the last ClockPairRecord
};
/// Describes the device at the first call. nullptr without memory.
Device* device_of(cl_device_id handle);
/// Writes a pair of device and host time, if the device has a timer.
void write_clock_pair(Device& device);
/// Clock pairs of every device whose clock needs them.
void write_clock_pairs();

/// Describes the devices of a new context.
void context_created(cl_context context);
/// The number of the context's device if it has only one; else 0.
uint32_t device_number_of(cl_context context);

struct Kernel {
  std::atomic<uint32_t> references;  // the program's
  bool included;                     // by the user's filter
  uint32_t name;                     // string
  cl_kernel handle;
  struct OnDevice {
    std::atomic<uint32_t> device;  // 0 = free; stored last
    uint32_t number;               // of the KernelRecord
  };
  OnDevice on_device[4];
};
Kernel* kernel_of(cl_kernel handle);
void kernel_created(cl_kernel handle);
/// The number of the kernel's description on `device`.
uint32_t kernel_number(Kernel& kernel, Device& device, event::DispatchKind kind);
/// A description of something that is launched but is no kernel object (native kernel, command buffer).
uint32_t pseudo_kernel(std::string_view name, event::DispatchKind kind);
bool name_included(std::string_view name);
/// Compiles the user's filter.
void read_filter();

struct Mapping {
  Mapping* next;
  const void* at;
  uint64_t bytes;
  bool written;  // unmapping brings the data back to the device
};
struct Memory {
  std::atomic<uint32_t> references;  // the program's, and one per sub-buffer
  event::MemoryKind kind;
  uint32_t element_bytes;  // of an image
  uint32_t device;
  uint32_t name;  // string: "buffer", "image2D" ...
  uint64_t bytes;
  Memory* parent;
  cl_mem handle;
  Mapping* mappings;  // under g_wiped->objects
};
/// nullptr when the object was made in a way that we do not see (interoperation).
Memory* memory_of(cl_mem handle);
/// Remembers what a mapping covers, for its unmapping. `written`: unmapping brings data back to the device.
void mapped(Memory& memory, const void* at, uint64_t bytes, bool written);
/// What `at` mapped; all 0 when unknown.
Mapping unmapped(Memory& memory, const void* at);

/// Memory by pointer: SVM and unified shared memory.
struct SharedMemory {
  uint64_t begin;
  uint64_t bytes;
  event::MemoryKind kind;
  uint32_t device;
};
void shared_allocated(const void* at, uint64_t bytes, event::MemoryKind kind, uint32_t device);
/// False when it was not known.
bool shared_freed(const void* at, SharedMemory* was);
/// The allocation that `at` lies in; kind kUnknown when in none.
SharedMemory shared_at(const void* at);

void write_allocation(const Times& times, event::AllocationOperation operation, event::MemoryKind kind,
                      uint32_t device, uint64_t bytes, uint64_t address, uint32_t name);

void install_objects(cl_icd_dispatch& hooks);

}  // namespace tacho::capture::opencl
