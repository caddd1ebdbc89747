// The part of CUDA's driver API that the benchmarks call, declared here and loaded with dlopen, so that a tacho built
// without CUDA also measures NVIDIA GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace tacho::vendor {

struct CudaDriver {
  using Code = int;
  using Pointer = uint64_t;
  using Handle = void*;

  // Attributes of a device (CUdevice_attribute).
  enum Attribute : int {
    kMaxSharedPerBlock = 8,
    kClockRate = 13,  // kHz
    kMultiprocessors = 16,
    kMemoryClockRate = 36,  // kHz
    kBusWidth = 37,         // bits
    kL2Size = 38,
    kPciBus = 33,
    kPciDevice = 34,
    kMajor = 75,
    kMinor = 76,
    kSharedPerMultiprocessor = 81,
    kPciDomain = 50,
  };

  Code (*Init)(unsigned) = nullptr;
  Code (*DriverGetVersion)(int*) = nullptr;
  Code (*DeviceGetCount)(int*) = nullptr;
  Code (*DeviceGet)(int*, int) = nullptr;
  Code (*DeviceGetName)(char*, int, int) = nullptr;
  Code (*DeviceGetAttribute)(int*, int, int) = nullptr;
  Code (*DeviceTotalMem)(size_t*, int) = nullptr;
  Code (*PrimaryCtxRetain)(Handle*, int) = nullptr;
  Code (*PrimaryCtxRelease)(int) = nullptr;
  Code (*CtxSetCurrent)(Handle) = nullptr;
  Code (*CtxSynchronize)() = nullptr;
  Code (*MemGetInfo)(size_t*, size_t*) = nullptr;
  Code (*MemAlloc)(Pointer*, size_t) = nullptr;
  Code (*MemFree)(Pointer) = nullptr;
  Code (*MemcpyHtoD)(Pointer, const void*, size_t) = nullptr;
  Code (*MemcpyDtoH)(void*, Pointer, size_t) = nullptr;
  Code (*MemcpyDtoD)(Pointer, Pointer, size_t) = nullptr;
  Code (*MemsetD32)(Pointer, unsigned, size_t) = nullptr;
  Code (*ModuleLoadDataEx)(Handle*, const void*, unsigned, int*, void**) = nullptr;
  Code (*ModuleUnload)(Handle) = nullptr;
  Code (*ModuleGetFunction)(Handle*, Handle, const char*) = nullptr;
  Code (*LaunchKernel)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**,
                       void**) = nullptr;
  Code (*FuncSetAttribute)(Handle, int, int) = nullptr;
  Code (*Occupancy)(int*, Handle, int, size_t) = nullptr;
  Code (*EventCreate)(Handle*, unsigned) = nullptr;
  Code (*EventRecord)(Handle, Handle) = nullptr;
  Code (*EventSynchronize)(Handle) = nullptr;
  Code (*EventElapsedTime)(float*, Handle, Handle) = nullptr;
  Code (*EventDestroy)(Handle) = nullptr;
  Code (*GetErrorName)(Code, const char**) = nullptr;
  Code (*GetErrorString)(Code, const char**) = nullptr;

  /// The driver, loaded and initialised once. nullptr, with the reason in `why`, if it is missing or does not start.
  static const CudaDriver* get(std::string& why);

  /// "cuMemAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY)"
  std::string describe(const char* call, Code code) const;
  Status check(const char* call, Code code) const {
    if (code == 0) return {};
    return fail("{}", describe(call, code));
  }
};

/// "580.159.04" as the kernel module reports it; empty if it does not.
std::string nvidia_driver_version();

}  // namespace tacho::vendor
