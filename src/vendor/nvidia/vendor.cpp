// NVIDIA as a Vendor (vendor.h).
#include "vendor/vendor.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/format.h"
#include "vendor/nvidia/machine.h"
#include "vendor/nvidia/nvml.h"
#include "vendor/nvidia/permission.h"

namespace tacho::vendor {
namespace {

constexpr Injection kInjections[] = {{"CUDA_INJECTION64_PATH", Injection::Kind::kSole, "CUDA"},
                                     {"NVTX_INJECTION64_PATH", Injection::Kind::kSole, "NVTX"}};
constexpr const char* kNvidiaVariables[] = {"CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING",
                                            "CUDA_DEVICE_ORDER", "CUDA_DEVICE_MAX_CONNECTIONS",
                                            "PYTORCH_CUDA_ALLOC_CONF"};

constexpr std::string_view kNvidiaPrefixes[] = {"NVIDIA ", "Tesla "};

class Nvidia : public Vendor {
 public:
  std::string_view name() const override { return "nvidia"; }
  bool made(std::string_view maker) const override { return maker.find("NVIDIA") != std::string_view::npos; }
  std::span<const std::string_view> prefixes() const override { return kNvidiaPrefixes; }
  event::Domain api() const override { return event::Domain::kCudaRuntime; }
  std::span<const Injection> injections() const override { return kInjections; }
  std::span<const char* const> recorded_variables() const override { return kNvidiaVariables; }

  std::vector<std::string> installed_gpus() const override {
    std::vector<std::string> gpus;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", ignored)) {
      std::ifstream file(entry.path() / "information");
      for (std::string line; std::getline(file, line);)
        if (line.starts_with("Model:"))
          gpus.push_back(line.substr(std::min(line.find_first_not_of(" \t", 6), line.size())));
    }
    return gpus;
  }

  Inspection inspect() const override {
    const NvidiaStatus status = inspect_nvidia();
    Inspection found;
    for (const NvidiaDevice& device : status.devices)
      found.devices.push_back({"CUDA",
                               fmt::format("CUDA {}, sm_{}{}", cuda_version_text(status.cuda_version),
                                           device.capability_major, device.capability_minor),
                               "GPU", device.multiprocessors, device.memory_bytes, status.driver,
                               device.name});
    if (!status.driver_library) {
      found.sources.push_back({"cuda", "absent", status.problem});
    } else if (!status.problem.empty()) {
      found.sources.push_back({"cuda", status.devices.empty() ? "no device" : "unusable", status.problem});
    } else {
      found.sources.push_back({"cuda", "ready",
                               status.cupti.empty()
                                   ? std::string()
                                   : fmt::format("CUPTI {} ({})", status.cupti_version, status.cupti)});
      found.sources.push_back({"cuda counters", status.counters_refused ? "not permitted" : "permitted",
                               status.counters_refused
                                   ? kCountersRefused
                                   : "the driver lets every user profile, or you are an administrator"});
    }
    return found;
  }

  std::string program_problem(const std::string& executable) const override {
    return cuda_problem(executable);
  }
  std::unique_ptr<GpuMonitor> monitor(std::vector<std::string>& problems) const override {
    return nvml_monitor(problems);
  }
};

}  // namespace

const Vendor& nvidia() {
  static const Nvidia vendor;
  return vendor;
}

}  // namespace tacho::vendor
