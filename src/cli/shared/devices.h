// This machine's devices: OpenCL devices, from the ICD loader if there is one, and GPUs that drivers list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tacho::cli {

// Lists devices with the few OpenCL functions that this takes, loaded at run time: tacho does not link an OpenCL
// library.
class OpenClLibrary {
 public:
  OpenClLibrary();
  bool found() const { return handle_ != nullptr; }
  bool usable() const {
    return platforms_ != nullptr && platform_info_ != nullptr && devices_ != nullptr && device_info_ != nullptr;
  }

  struct Device {
    std::string platform, name, version, driver;
    uint64_t type = 0;
    uint32_t units = 0;
    uint64_t memory = 0;
  };
  /// Asks in a child process, so that a driver that crashes, aborts or hangs takes down only the child. The list is
  /// then empty and `problem`, if given, gets a sentence. Call it from a single-threaded process.
  std::vector<Device> list(std::string* problem = nullptr) const;

 private:
  std::vector<Device> ask() const;
  using Platforms = int32_t (*)(uint32_t, void**, uint32_t*);
  using Devices = int32_t (*)(void*, uint64_t, uint32_t, void**, uint32_t*);
  using Info = int32_t (*)(void*, uint32_t, size_t, void*, size_t*);

  static std::string text(Info info, void* object, uint32_t what);

  void* handle_ = nullptr;
  Platforms platforms_ = nullptr;
  Info platform_info_ = nullptr, device_info_ = nullptr;
  Devices devices_ = nullptr;
};

/// "GPU", "CPU", "accelerator" or "other" for a cl_device_type.
std::string opencl_type_name(uint64_t type);

/// The GPUs that a vendor's kernel driver reports for this machine, according to the system's files.
std::vector<std::string> installed_gpus();

/// The devices that can supply counters, in words for a sentence: "H200 (NVIDIA), MI300X (AMD)". Only the GPUs, if
/// there are any; empty if the machine has no device.
std::string counter_devices();

}  // namespace tacho::cli
