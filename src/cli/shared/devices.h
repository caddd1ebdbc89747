// The OpenCL devices of this machine, from the ICD loader if there is one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tacho::cli {

// The few functions of OpenCL that listing devices needs, declared here so that tacho links no OpenCL
// library.
class OpenClLibrary {
 public:
  OpenClLibrary();
  bool found() const { return handle_ != nullptr; }
  bool usable() const {
    return platforms_ != nullptr && platform_info_ != nullptr && devices_ != nullptr &&
           device_info_ != nullptr;
  }

  struct Device {
    std::string platform, name, version, driver;
    uint64_t type = 0;
    uint32_t units = 0;
    uint64_t memory = 0;
  };
  /// Asks in a child process, so that a driver that crashes, aborts or hangs only takes that child down. Then the list is
  /// empty and `problem`, if given, gets a sentence. The caller must be single-threaded.
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

/// "GPU", "CPU", "accelerator", "other" for a cl_device_type.
std::string opencl_type_name(uint64_t type);

/// GPUs that a vendor's kernel driver has in this machine, according to the system's files.
std::vector<std::string> installed_gpus();

/// The devices that counters would come from, in words for a sentence: "H200 (NVIDIA), MI300X
/// (AMD)"; GPUs first, and only those when there are any. Empty when the machine has none.
std::string counter_devices();

}  // namespace tacho::cli
