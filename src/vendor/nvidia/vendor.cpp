// NVIDIA as a Vendor (vendor.h).
#include "vendor/vendor.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/format.h"
#include "vendor/nvidia/machine.h"
#include "vendor/nvidia/nvml.h"
#include "vendor/nvidia/permission.h"
#include "vendor/told_events.h"

namespace tacho::vendor {
namespace {

constexpr Injection kInjections[] = {
    {"CUDA_INJECTION64_PATH", Injection::Kind::kSole, "CUDA"},
    {"NVTX_INJECTION64_PATH", Injection::Kind::kSole, "NVTX"},
    {"NCCL_PROFILER_PLUGIN", Injection::Kind::kSole, "what NCCL says of its collectives"}};
constexpr const char* kNvidiaVariables[] = {"CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_ORDER",
                                            "CUDA_DEVICE_MAX_CONNECTIONS", "PYTORCH_CUDA_ALLOC_CONF"};

constexpr std::string_view kNvidiaPrefixes[] = {"NVIDIA ", "Tesla "};

bool tells_of_launches(std::string_view variable) {
  return variable == "CUDA_INJECTION64_PATH";
}

class Nvidia : public Vendor {
 public:
  std::string_view name() const override { return "nvidia"; }
  bool made(std::string_view maker) const override { return maker.find("NVIDIA") != std::string_view::npos; }
  std::span<const std::string_view> prefixes() const override { return kNvidiaPrefixes; }
  event::Domain api() const override { return event::Domain::kCudaRuntime; }
  bool grids_in_blocks() const override { return true; }
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
                               "GPU", device.multiprocessors, device.memory_bytes, status.driver, device.name});
    if (!status.driver_library) {
      found.sources.push_back({"cuda", "absent", status.problem});
    } else if (!status.problem.empty()) {
      found.sources.push_back({"cuda", status.devices.empty() ? "no device" : "unusable", status.problem});
    } else {
      found.sources.push_back(
          {"cuda", "ready",
           status.cupti.empty() ? std::string() : fmt::format("CUPTI {} ({})", status.cupti_version, status.cupti)});
      found.sources.push_back({"cuda counters", status.counters_refused ? "not permitted" : "permitted",
                               status.counters_refused
                                   ? kCountersRefused
                                   : "the driver lets every user profile, or you are an administrator"});
    }
    return found;
  }

  std::vector<Check> checks() const override {
    using State = Check::State;
    const bool module = std::filesystem::exists("/proc/driver/nvidia/version");
    const bool device = std::filesystem::exists("/dev/nvidiactl") || std::filesystem::exists("/dev/dxg");
    const bool gpu = pci_device_of(0x10de) || module || device;
    const NvidiaStatus status = inspect_nvidia();
    if (!gpu && !status.driver_library) return {{"NVIDIA", State::kNote, "no NVIDIA GPU in this machine", ""}};
    std::vector<Check> found;
    if (!module && !std::filesystem::exists("/dev/dxg"))
      found.push_back({"NVIDIA kernel module", gpu ? State::kBad : State::kNote,
                       gpu ? "there is an NVIDIA GPU, but the kernel module nvidia is not loaded"
                           : "libcuda.so.1 is installed, but this machine has no NVIDIA GPU",
                       gpu ? sudo() + "modprobe nvidia" : ""});
    else
      found.push_back(
          {"NVIDIA kernel module", State::kGood, status.driver.empty() ? "loaded" : "version " + status.driver, ""});
    if (module && !device)
      found.push_back({"NVIDIA devices", State::kBad, "the kernel module is loaded, but /dev/nvidiactl is not here",
                       container().empty() ? sudo() + "nvidia-modprobe -u -c=0"
                                           : "start the container with GPUs: docker run --gpus all ..."});
    if (!status.driver_library)
      found.push_back({"NVIDIA driver library", State::kBad, status.problem,
                       container().empty() ? install_command("libcuda1", "nvidia-driver-cuda-libs")
                                           : "start the container with GPUs: docker run --gpus all ..."});
    else
      found.push_back({"CUDA driver", status.devices.empty() ? gpu ? State::kBad : State::kNote : State::kGood,
                       status.devices.empty() && !status.problem.empty()
                           ? status.problem
                           : fmt::format("CUDA {}, {} GPU{}: {}", cuda_version_text(status.cuda_version),
                                         status.devices.size(), status.devices.size() == 1 ? "" : "s",
                                         status.devices.empty() ? "" : status.devices[0].name),
                       status.devices.empty() && gpu ? "nvidia-smi" : ""});
    if (status.devices.empty()) return found;
    const int major = status.cuda_version / 1000;
    if (status.cupti.empty())
      found.push_back({"CUPTI", State::kBad,
                       "no libcupti.so on the loader's path, in CUDA_HOME or /usr/local/cuda; only programs that bring "
                       "their own (PyTorch) are traced",
                       install_command(fmt::format("cuda-cupti-{}-{}", major, status.cuda_version % 1000 / 10))});
    else
      found.push_back(
          {"CUPTI", status.problem.empty() ? State::kGood : State::kBad,
           status.problem.empty() ? fmt::format("version {} ({})", status.cupti_version, status.cupti) : status.problem,
           status.problem.empty() ? "" : "update the NVIDIA driver to one for CUDA 11.8 or newer"});
    if (status.counters_refused)
      found.push_back(
          {"NVIDIA counters", State::kNote,
           "the driver lets only administrators read hardware counters, so tacho profile fails; traces work",
           container().empty()
               ? fmt::format("echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 | {}tee "
                             "/etc/modprobe.d/nvidia-profiling.conf   (then reboot)",
                             sudo())
               : "start the container with the capability: docker run --cap-add SYS_ADMIN --gpus all ..."});
    else
      found.push_back({"NVIDIA counters", State::kGood, "this user may read hardware counters", ""});
    return found;
  }

  std::span<const char* const> device_marks() const override {
    static constexpr const char* kMarks[] = {"/libcuda.so", "/dev/nvidia"};
    return kMarks;
  }
  std::string program_problem(const std::string& executable) const override { return cuda_problem(executable); }
  std::unique_ptr<GpuMonitor> monitor(std::vector<std::string>& problems) const override {
    return nvml_monitor(problems);
  }
};

}  // namespace

const Vendor& nvidia() {
  static const Nvidia vendor;
  return vendor;
}

bool tells_events(const Injection& way) {
  return way.kind == Injection::Kind::kSole && !tells_of_launches(way.variable);
}

}  // namespace tacho::vendor
