// The OpenCL source's view of the program's devices and contexts. It finds an object by handle without a lock. If it
// did not see the creation of a handle, it asks the runtime about it at first use.
#pragma once

#include "capture/source/opencl/core.h"
#include "capture/source/opencl/vendor.h"

namespace tacho::capture::opencl {

struct ClDevice {
  uint32_t number;  // of its DeviceRecord
  bool has_timer;   // clGetDeviceAndHostTimer answers
  cl_device_id handle;
  ClVendor* vendor;
  uint64_t last_pair;  // host ticks of the last ClockPairRecord
};
/// Describes the device at the first call. nullptr without memory.
ClDevice* device_of(cl_device_id handle);
/// Writes a pair of device and host time, if the device has a timer.
void write_clock_pair(ClDevice& device);
/// Writes clock pairs for every device whose clock needs them.
void write_clock_pairs();

/// Describes the devices of a new context.
void context_created(cl_context context);
/// The number of the context's device if it has exactly one; else 0.
uint32_t device_number_of(cl_context context);

/// Forgets all devices and contexts: their numbers belong to a pool that is gone.
void forget_devices();
void install_device_hooks(cl_icd_dispatch& hooks);

}  // namespace tacho::capture::opencl
