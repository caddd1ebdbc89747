// Listing OpenCL devices (devices.h).
#include "cli/devices.h"

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/format.h"

namespace tacho::cli {

OpenClLibrary::OpenClLibrary() {
  handle_ = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) return;
  platforms_ = reinterpret_cast<Platforms>(dlsym(handle_, "clGetPlatformIDs"));
  platform_info_ = reinterpret_cast<Info>(dlsym(handle_, "clGetPlatformInfo"));
  devices_ = reinterpret_cast<Devices>(dlsym(handle_, "clGetDeviceIDs"));
  device_info_ = reinterpret_cast<Info>(dlsym(handle_, "clGetDeviceInfo"));
}

std::vector<OpenClLibrary::Device> OpenClLibrary::list() const {
  std::vector<Device> found;
  uint32_t count = 0;
  if (platforms_(0, nullptr, &count) != 0 || count == 0 || count > 64) return found;
  std::vector<void*> platforms(count);
  if (platforms_(count, platforms.data(), nullptr) != 0) return found;
  for (void* platform : platforms) {
    constexpr uint64_t kAllTypes = 0xFFFFFFFF;
    uint32_t devices = 0;
    if (devices_(platform, kAllTypes, 0, nullptr, &devices) != 0 || devices == 0 || devices > 256) continue;
    std::vector<void*> ids(devices);
    if (devices_(platform, kAllTypes, devices, ids.data(), nullptr) != 0) continue;
    for (void* id : ids) {
      Device device;
      device.platform = text(platform_info_, platform, 0x0902);                 // CL_PLATFORM_NAME
      device.name = text(device_info_, id, 0x102B);                             // CL_DEVICE_NAME
      device.version = text(device_info_, id, 0x102F);                          // CL_DEVICE_VERSION
      device.driver = text(device_info_, id, 0x102D);                           // CL_DRIVER_VERSION
      device_info_(id, 0x1000, sizeof device.type, &device.type, nullptr);      // CL_DEVICE_TYPE
      device_info_(id, 0x1002, sizeof device.units, &device.units, nullptr);    // CL_DEVICE_MAX_COMPUTE_UNITS
      device_info_(id, 0x101F, sizeof device.memory, &device.memory, nullptr);  // CL_DEVICE_GLOBAL_MEM_SIZE
      found.push_back(std::move(device));
    }
  }
  return found;
}

std::string OpenClLibrary::text(Info info, void* object, uint32_t what) {
  size_t size = 0;
  if (info(object, what, 0, nullptr, &size) != 0 || size == 0 || size > 1 << 20) return {};
  std::string value(size, '\0');
  if (info(object, what, size, value.data(), nullptr) != 0) return {};
  value.resize(std::char_traits<char>::length(value.c_str()));
  while (!value.empty() && value.back() == ' ') value.pop_back();
  return value;
}

std::string opencl_type_name(uint64_t type) {
  if ((type & 4) != 0) return "GPU";
  if ((type & 8) != 0) return "accelerator";
  if ((type & 2) != 0) return "CPU";
  return "other";
}

std::string counter_devices() {
  namespace fs = std::filesystem;
  std::vector<std::string> gpus, others;
  std::error_code ignored;
  // Drivers tell their GPUs without a vendor library.
  for (const auto& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", ignored)) {
    std::ifstream file(entry.path() / "information");
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("Model:"))
        gpus.push_back(line.substr(std::min(line.find_first_not_of(" \t", 6), line.size())));
  }
  for (const auto& entry : fs::directory_iterator("/sys/class/kfd/kfd/topology/nodes", ignored)) {
    std::ifstream properties(entry.path() / "properties"), name(entry.path() / "name");
    std::string key, model;
    uint64_t value = 0, units = 0;
    while (properties >> key >> value)
      if (key == "simd_count") units = value;
    if (units > 0 && std::getline(name, model)) gpus.push_back("AMD " + model);
  }
  if (gpus.empty()) {
    const OpenClLibrary library;
    if (library.usable())
      for (const OpenClLibrary::Device& device : library.list())
        ((device.type & 4) != 0 ? gpus : others)
            .push_back(fmt::format("{} ({})", device.name, device.platform));
  }
  std::string text;
  for (const std::string& name : gpus.empty() ? others : gpus) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace tacho::cli
