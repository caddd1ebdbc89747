// Lists this machine's devices (devices.h).
#include "cli/shared/devices.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/format.h"
#include "vendor/vendor.h"

namespace tacho::cli {

OpenClLibrary::OpenClLibrary() {
  handle_ = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) return;
  platforms_ = reinterpret_cast<Platforms>(dlsym(handle_, "clGetPlatformIDs"));
  platform_info_ = reinterpret_cast<Info>(dlsym(handle_, "clGetPlatformInfo"));
  devices_ = reinterpret_cast<Devices>(dlsym(handle_, "clGetDeviceIDs"));
  device_info_ = reinterpret_cast<Info>(dlsym(handle_, "clGetDeviceInfo"));
}

namespace {

// Between the child that asks and tacho: these end fields and devices, and kEnd ends the list.
constexpr char kField = '\x1f', kDevice = '\x1e', kEnd = '\x04';

// Everything from a pipe until it is closed, or until `seconds` have passed.
std::string read_all(int file, int seconds) {
  std::string text;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wait{file, POLLIN, 0};
    const int ready = poll(&wait, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return text;
    char part[4096];
    const ssize_t size = read(file, part, sizeof part);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(part, static_cast<size_t>(size));
  }
}

}  // namespace

std::vector<OpenClLibrary::Device> OpenClLibrary::list(std::string* problem) const {
  constexpr int kPatience = 60;  // seconds; a driver may compile when it first starts
  int channel[2];
  if (pipe2(channel, O_CLOEXEC) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_DUMPABLE, 0);  // no core file
    const int nowhere = ::open("/dev/null", O_RDWR);
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, stream);
    std::string text;
    for (const Device& device : ask()) {
      for (const std::string& field : {device.platform, device.name, device.version, device.driver})
        text += field + kField;
      text += fmt::format("{}{}{}{}{}{}", device.type, kField, device.units, kField, device.memory, kField);
      text += kDevice;
    }
    text += kEnd;
    for (size_t at = 0; at < text.size();) {
      const ssize_t size = write(channel[1], text.data() + at, text.size() - at);
      if (size <= 0) break;
      at += static_cast<size_t>(size);
    }
    _exit(0);
  }
  close(channel[1]);
  std::string text;
  if (child > 0) text = read_all(channel[0], kPatience);
  close(channel[0]);
  const bool whole = text.ends_with(kEnd);
  int status = 0;
  if (child > 0) {
    if (!whole) kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (!whole) {
    if (problem != nullptr)
      *problem =
          child > 0 && WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL
              ? fmt::format("an OpenCL driver crashes when it is asked for its devices ({}): see /etc/OpenCL/vendors "
                            "for which are installed, and remove or update the broken one",
                            strsignal(WTERMSIG(status)))
              : fmt::format("an OpenCL driver does not answer within {} s, or ends the program, when it is asked for "
                            "its devices: see /etc/OpenCL/vendors for which are installed",
                            kPatience);
    return {};
  }
  std::vector<Device> found;
  for (size_t at = 0, end; (end = text.find(kDevice, at)) != std::string::npos; at = end + 1) {
    std::vector<std::string> fields;
    for (size_t from = at, to; from < end && (to = text.find(kField, from)) != std::string::npos; from = to + 1)
      fields.push_back(text.substr(from, to - from));
    if (fields.size() != 7) continue;
    found.push_back({fields[0], fields[1], fields[2], fields[3], strtoull(fields[4].c_str(), nullptr, 10),
                     static_cast<uint32_t>(strtoul(fields[5].c_str(), nullptr, 10)),
                     strtoull(fields[6].c_str(), nullptr, 10)});
  }
  return found;
}

std::vector<OpenClLibrary::Device> OpenClLibrary::ask() const {
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

std::vector<std::string> installed_gpus() {
  std::vector<std::string> gpus;
  for (const vendor::Vendor* const vendor : vendor::vendors())
    for (std::string& model : vendor->installed_gpus()) gpus.push_back(std::move(model));
  return gpus;
}

std::string counter_devices() {
  std::vector<std::string> gpus = installed_gpus(), others;
  if (gpus.empty()) {
    const OpenClLibrary library;
    if (library.usable())
      for (const OpenClLibrary::Device& device : library.list())
        ((device.type & 4) != 0 ? gpus : others).push_back(fmt::format("{} ({})", device.name, device.platform));
  }
  std::string text;
  for (const std::string& name : gpus.empty() ? others : gpus) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace tacho::cli
