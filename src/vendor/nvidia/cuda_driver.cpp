// Loading of libcuda (cuda_driver.h).
#include "vendor/nvidia/cuda_driver.h"

#include <dlfcn.h>

#include <fstream>
#include <mutex>

namespace tacho::vendor {
namespace {

struct Loaded {
  CudaDriver driver;
  std::string why;
  bool good = false;
};

Loaded load() {
  Loaded loaded;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    loaded.why = "no libcuda.so.1, so no NVIDIA driver";
    return loaded;
  }
  CudaDriver& d = loaded.driver;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && loaded.why.empty()) loaded.why = fmt::format("libcuda.so.1 has no {}", name);
  };
  find(d.Init, "cuInit");
  find(d.DriverGetVersion, "cuDriverGetVersion");
  find(d.DeviceGetCount, "cuDeviceGetCount");
  find(d.DeviceGet, "cuDeviceGet");
  find(d.DeviceGetName, "cuDeviceGetName");
  find(d.DeviceGetAttribute, "cuDeviceGetAttribute");
  find(d.DeviceTotalMem, "cuDeviceTotalMem_v2");
  find(d.PrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  find(d.PrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
  find(d.CtxSetCurrent, "cuCtxSetCurrent");
  find(d.CtxSynchronize, "cuCtxSynchronize");
  find(d.MemGetInfo, "cuMemGetInfo_v2");
  find(d.MemAlloc, "cuMemAlloc_v2");
  find(d.MemFree, "cuMemFree_v2");
  find(d.MemcpyHtoD, "cuMemcpyHtoD_v2");
  find(d.MemcpyDtoH, "cuMemcpyDtoH_v2");
  find(d.MemcpyDtoD, "cuMemcpyDtoD_v2");
  find(d.MemsetD32, "cuMemsetD32_v2");
  find(d.ModuleLoadDataEx, "cuModuleLoadDataEx");
  find(d.ModuleUnload, "cuModuleUnload");
  find(d.ModuleGetFunction, "cuModuleGetFunction");
  find(d.LaunchKernel, "cuLaunchKernel");
  find(d.FuncSetAttribute, "cuFuncSetAttribute");
  find(d.Occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  find(d.EventCreate, "cuEventCreate");
  find(d.EventRecord, "cuEventRecord");
  find(d.EventSynchronize, "cuEventSynchronize");
  find(d.EventElapsedTime, "cuEventElapsedTime");
  find(d.EventDestroy, "cuEventDestroy_v2");
  find(d.GetErrorName, "cuGetErrorName");
  find(d.GetErrorString, "cuGetErrorString");
  if (!loaded.why.empty()) return loaded;
  if (const CudaDriver::Code code = d.Init(0); code != 0) {
    loaded.why = d.describe("cuInit", code);
    return loaded;
  }
  loaded.good = true;
  return loaded;
}

}  // namespace

const CudaDriver* CudaDriver::get(std::string& why) {
  static const Loaded loaded = load();
  why = loaded.why;
  return loaded.good ? &loaded.driver : nullptr;
}

std::string CudaDriver::describe(const char* call, Code code) const {
  const char *name = nullptr, *text = nullptr;
  if (GetErrorName == nullptr || GetErrorName(code, &name) != 0 || name == nullptr) name = "unknown";
  if (GetErrorString == nullptr || GetErrorString(code, &text) != 0 || text == nullptr) text = "error";
  return fmt::format("{}: {} ({} {})", call, text, name, code);
}

std::string nvidia_driver_version() {
  std::string version;
  std::ifstream("/sys/module/nvidia/version") >> version;
  if (!version.empty()) return version;
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  ..."
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;)
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
  return {};
}

}  // namespace tacho::vendor
