// The OpenCL source's view of the program's kernels and of the arguments that they are given.
#pragma once

#include "capture/source/opencl/objects/devices.h"

namespace tacho::capture::opencl {

/// The arguments that clSetKernelArg has set, in the order of first setting; only where arguments are recorded.
struct SetArguments {
  uint32_t count;
  event::KernelArgument set[event::kMostKernelArguments];
};
struct KernelObject {
  std::atomic<uint32_t> references;  // the program's
  bool included;                     // by the user's filter
  std::atomic<bool> told;            // if not included: a launch was
  uint32_t name;                     // string
  cl_kernel handle;
  struct OnDevice {
    std::atomic<uint32_t> device;  // 0 = free; stored last
    uint32_t number;               // of the KernelRecord
  };
  OnDevice on_device[4];
  SetArguments* arguments;
};
KernelObject* kernel_of(cl_kernel handle);
void kernel_created(cl_kernel handle);
/// The program has set an argument. `pointer`: `value` itself is it, not where it lies.
void argument_set(cl_kernel handle, cl_uint index, size_t size, const void* value, bool pointer);
/// The arguments as they are now, for Command::arguments.
uint16_t kept_arguments_of(const KernelObject& kernel);
/// A launch of a kernel that the user's filter leaves out.
void leave_out(KernelObject& kernel);
/// The number of the kernel's description on `device`.
uint32_t kernel_number(KernelObject& kernel, ClDevice& device, event::DispatchKind kind);
/// The number of a description for a launch without a kernel object (native kernel, command buffer).
uint32_t pseudo_kernel(std::string_view name, event::DispatchKind kind);

/// Forgets all kernels and their descriptions: their numbers belong to a pool that is gone.
void forget_kernels();
void install_kernel_hooks(cl_icd_dispatch& hooks);

}  // namespace tacho::capture::opencl
