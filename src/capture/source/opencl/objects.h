// The OpenCL source's view of the program's objects: devices, contexts, kernels, memory. It finds an object by handle
// without a lock. If it did not see the creation of a handle, it asks the runtime about it at first use.
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
/// Writes clock pairs for every device whose clock needs them.
void write_clock_pairs();

/// Describes the devices of a new context.
void context_created(cl_context context);
/// The number of the context's device if it has exactly one; else 0.
uint32_t device_number_of(cl_context context);

/// What clSetKernelArg has set, in the order of first setting; only where arguments are recorded.
struct KernelArguments {
  uint32_t count;
  event::KernelArgument set[event::kMostKernelArguments];
};
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
  KernelArguments* arguments;
};
Kernel* kernel_of(cl_kernel handle);
void kernel_created(cl_kernel handle);
/// The program has set an argument. `pointer`: `value` itself is it, not where it lies.
void argument_set(cl_kernel handle, cl_uint index, size_t size, const void* value, bool pointer);
/// The arguments as they are now, for Command::arguments.
uint16_t kept_arguments_of(const Kernel& kernel);
/// The number of the kernel's description on `device`.
uint32_t kernel_number(Kernel& kernel, Device& device, event::DispatchKind kind);
/// The number of a description for a launch without a kernel object (native kernel, command buffer).
uint32_t pseudo_kernel(std::string_view name, event::DispatchKind kind);

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
/// nullptr when tacho does not see how the object is made (interoperation).
Memory* memory_of(cl_mem handle);
/// Remembers the extent of a mapping until it is unmapped. `written`: unmapping copies data back to the device.
void mapped(Memory& memory, const void* at, uint64_t bytes, bool written);
/// Forgets the mapping at `at` and returns it; all 0 when unknown.
Mapping unmapped(Memory& memory, const void* at);

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

void write_allocation(const Times& times, event::AllocationOperation operation, event::MemoryKind kind, uint32_t device,
                      uint64_t bytes, uint64_t address, uint32_t name);

void install_objects(cl_icd_dispatch& hooks);

}  // namespace tacho::capture::opencl
