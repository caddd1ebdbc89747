// AMD as a Vendor (vendor.h).
#include "vendor/vendor.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/format.h"
#include "vendor/amd/runtime.h"
#include "vendor/amd/smi.h"

namespace tacho::vendor {
namespace {

constexpr const char* kAmdVariables[] = {
    "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_MAX_HW_QUEUES",  "HSA_XNACK",
    "HSA_TOOLS_LIB",       "AMD_SERIALIZE_KERNEL", "ROCP_TOOL_LIBRARIES"};

// AMD's own ROCTx is where the loader would find it.
bool rocm_roctx_installed(const std::string& library_path) {
  std::string folders = library_path;
  if (const char* rocm = std::getenv("ROCM_PATH"); rocm != nullptr)
    folders += std::string(":") + rocm + "/lib";
  folders += ":/opt/rocm/lib:/usr/lib/x86_64-linux-gnu:/usr/lib64:/lib64";
  for (size_t begin = 0; begin < folders.size();) {
    size_t end = folders.find(':', begin);
    if (end == std::string::npos) end = folders.size();
    const std::string folder = folders.substr(begin, end - begin);
    for (const char* name :
         {"libroctx64.so", "libroctx64.so.4", "librocprofiler-sdk-roctx.so", "librocprofiler-sdk-roctx.so.1"})
      if (!folder.empty() && access((folder + "/" + name).c_str(), R_OK) == 0) return true;
    begin = end + 1;
  }
  return false;
}

constexpr std::string_view kAmdPrefixes[] = {"AMD ", "Instinct "};

class Amd : public Vendor {
 public:
  std::string_view name() const override { return "amd"; }
  bool made(std::string_view maker) const override {
    return maker.find("AMD") != std::string_view::npos ||
           maker.find("Advanced Micro") != std::string_view::npos;
  }
  std::span<const std::string_view> prefixes() const override { return kAmdPrefixes; }
  event::Domain api() const override { return event::Domain::kHipRuntime; }
  std::span<const char* const> recorded_variables() const override { return kAmdVariables; }

  // Programs that open ROCTx by name on a machine without ROCm find stand-ins that pass on to libtacho.so.
  void prepare(EnvironmentBlock& variables, const std::string& library) const override {
    const std::string stand_ins = library.substr(0, library.rfind('/')) + "/roctx";
    const std::string path = variables.get("LD_LIBRARY_PATH");
    if (access((stand_ins + "/libroctx64.so").c_str(), R_OK) == 0 && !rocm_roctx_installed(path))
      variables.set("LD_LIBRARY_PATH", path.empty() ? stand_ins : path + ":" + stand_ins);
    // The HSA runtime's list of tools is separated by spaces; ours comes first, so that others see what it replaced.
    const std::string tools = variables.get("HSA_TOOLS_LIB");
    if (tools.find(library) == std::string::npos)
      variables.set("HSA_TOOLS_LIB", tools.empty() ? library : library + " " + tools);
  }

  Inspection inspect() const override {
    Inspection found;
    const AmdRuntime runtime = find_amd_runtime();
    if (runtime.hsa.empty())
      found.sources.push_back({"rocm", "absent",
                               "no libhsa-runtime64.so.1 where the loader looks; a program may bring its own "
                               "(PyTorch's wheels do), and is traced then"});
    else if (access("/dev/kfd", R_OK | W_OK) != 0)
      found.sources.push_back(
          {"rocm", errno == ENOENT ? "no device" : "not permitted",
           errno == ENOENT ? "no /dev/kfd: load the amdgpu driver, or hand the device to the container "
                             "(--device /dev/kfd --device /dev/dri)"
                           : "/dev/kfd cannot be opened: add yourself to the groups render and video"});
    else
      found.sources.push_back({"rocm", "ready", describe_road(runtime)});
    return found;
  }

  std::vector<std::string> installed_gpus() const override {
    std::vector<std::string> gpus;
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::directory_iterator("/sys/class/kfd/kfd/topology/nodes", ignored)) {
      std::ifstream properties(entry.path() / "properties"), name(entry.path() / "name");
      std::string key, model;
      uint64_t value = 0, units = 0;
      while (properties >> key >> value)
        if (key == "simd_count") units = value;
      if (units > 0 && std::getline(name, model)) gpus.push_back("AMD " + model);
    }
    return gpus;
  }

  std::vector<Check> checks() const override {
    using State = Check::State;
    const bool module = access("/sys/module/amdgpu", F_OK) == 0, kfd = access("/dev/kfd", F_OK) == 0;
    const std::vector<std::string> gpus = installed_gpus();
    if (!pci_device_of(0x1002) && !kfd && gpus.empty())
      return {{"AMD", State::kNote, "no AMD GPU in this machine", ""}};
    std::vector<Check> found;
    std::string names;
    for (const std::string& gpu : gpus) names += (names.empty() ? "" : ", ") + gpu;
    if (!module && !kfd)
      found.push_back({"AMD kernel module", State::kBad,
                       "there is an AMD GPU, but the kernel module amdgpu is not loaded",
                       sudo() + "modprobe amdgpu"});
    else
      found.push_back({"AMD kernel module", State::kGood, names.empty() ? "loaded" : names, ""});
    if (!kfd) {
      found.push_back(
          {"/dev/kfd", State::kBad, "the compute interface of the driver is not here",
           container().empty()
               ? install_command("amdgpu-dkms")
               : "start the container with GPUs: docker run --device /dev/kfd --device /dev/dri ..."});
      return found;
    }
    if (access("/dev/kfd", R_OK | W_OK) != 0)
      found.push_back(
          {"/dev/kfd", State::kBad, "this user may not open it: the groups render and video are missing",
           container().empty()
               ? sudo() + "usermod -aG render,video $USER   (then log in again)"
               : "start the container with the groups: docker run --group-add video --group-add render ..."});
    else
      found.push_back({"/dev/kfd", State::kGood, "this user may open it", ""});
    std::error_code ignored;
    bool render = false, render_open = false;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/dri", ignored))
      if (entry.path().filename().string().starts_with("renderD")) {
        render = true;
        render_open = render_open || access(entry.path().c_str(), R_OK | W_OK) == 0;
      }
    if (!render_open)
      found.push_back(
          {"/dev/dri", State::kBad,
           render ? "this user may not open a render device" : "there is no render device",
           render ? sudo() + "usermod -aG render,video $USER   (then log in again)"
                  : "start the container with GPUs: docker run --device /dev/kfd --device /dev/dri ..."});
    const char* const home = std::getenv("ROCM_PATH");
    const std::string rocm = home != nullptr && *home != '\0' ? home : "/opt/rocm";
    std::ifstream file(rocm + "/.info/version");
    std::string version;
    if (std::getline(file, version))
      found.push_back({"ROCm", State::kGood, version + " in " + rocm, ""});
    else
      found.push_back({"ROCm", State::kNote, "not found in " + rocm + "; set ROCM_PATH when it is elsewhere",
                       install_command("rocm-hip-runtime")});
    const AmdRuntime runtime = find_amd_runtime();
    const std::string other = "tacho traces kernels, copies and HIP calls through HSA's interface for tools";
    if (!runtime.hsa.empty() && !runtime.registers)
      found.push_back({"rocprofiler-sdk", State::kNote,
                       "of no use here: " + runtime.hsa + " is built without rocprofiler-register; " + other,
                       ""});
    else if (runtime.sdk.empty())
      found.push_back(
          {"rocprofiler-sdk", State::kNote, "not found; " + other, install_command("rocprofiler-sdk")});
    else
      found.push_back({"rocprofiler-sdk", State::kGood,
                       (runtime.sdk_version.empty() ? "" : runtime.sdk_version + " in ") + runtime.sdk, ""});
    return found;
  }

  std::unique_ptr<GpuMonitor> monitor(std::vector<std::string>& problems) const override {
    std::unique_ptr<GpuMonitor> found = amd_smi_monitor(problems);
    return found != nullptr ? std::move(found) : rocm_smi_monitor(problems);
  }
};

}  // namespace

const Vendor& amd() {
  static const Amd vendor;
  return vendor;
}

}  // namespace tacho::vendor
