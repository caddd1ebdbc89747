// AMD as a Vendor (vendor.h).
#include "vendor/vendor.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/format.h"
#include "vendor/amd/runtime.h"
#include "vendor/amd/smi.h"

namespace tacho::vendor {
namespace {

constexpr const char* kAmdVariables[] = {"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_MAX_HW_QUEUES",
                                         "HSA_XNACK",           "HSA_TOOLS_LIB",        "AMD_SERIALIZE_KERNEL",
                                         "ROCP_TOOL_LIBRARIES"};

// AMD's own ROCTx is where the loader would find it.
bool rocm_roctx_installed(const std::string& library_path) {
  std::string folders = library_path;
  if (const char* rocm = std::getenv("ROCM_PATH"); rocm != nullptr) folders += std::string(":") + rocm + "/lib";
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

// "gfx942" of the topology's 90402.
std::string architecture_of(uint64_t target) {
  return target == 0 ? std::string() : fmt::format("gfx{}{:x}{:x}", target / 10'000, target / 100 % 100, target % 100);
}

// A GPU, or a partition of one, as the kernel driver shows it.
struct Node {
  std::string name;  // "gfx942"; with the driver's own word for the chip if it has one
  uint64_t card = 0, dies = 0;
  uint64_t units = 0;   // compute units
  uint64_t memory = 0;  // bytes
};

std::vector<Node> gpu_nodes() {
  std::vector<Node> nodes;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/kfd/kfd/topology/nodes", ignored)) {
    std::ifstream properties(entry.path() / "properties"), name(entry.path() / "name");
    std::string key, model;
    uint64_t value = 0, simds = 0, simds_per_unit = 0, target = 0;
    Node node;
    while (properties >> key >> value) {
      if (key == "simd_count") simds = value;
      if (key == "simd_per_cu") simds_per_unit = value;
      if (key == "gfx_target_version") target = value;
      if (key == "unique_id") node.card = value;
      if (key == "num_xcc") node.dies = value;
    }
    if (simds == 0) continue;
    node.units = simds_per_unit == 0 ? 0 : simds / simds_per_unit;
    for (const auto& bank : std::filesystem::directory_iterator(entry.path() / "mem_banks", ignored)) {
      std::ifstream facts(bank.path() / "properties");
      while (facts >> key >> value)
        if (key == "size_in_bytes") node.memory += value;
    }
    std::getline(name, model);
    node.name = architecture_of(target);
    if (!model.empty() && model != "ip discovery")  // newer drivers give every chip that name
      node.name = node.name.empty() ? model : model + " (" + node.name + ")";
    nodes.push_back(std::move(node));
  }
  return nodes;
}

// "8 x gfx942 (8 XCDs each)"; partitions of a card share its id.
std::string summary_of(const std::vector<Node>& nodes) {
  std::string text;
  for (size_t at = 0; at < nodes.size();) {
    const Node& first = nodes[at];
    size_t end = at;
    std::set<uint64_t> cards;
    for (; end < nodes.size() && nodes[end].name == first.name && nodes[end].dies == first.dies; ++end)
      cards.insert(nodes[end].card);
    const size_t count = end - at;
    text += (text.empty() ? "" : ", ") + (count > 1 ? fmt::format("{} x ", count) : "") + "AMD " + first.name;
    std::string more;
    if (first.dies > 1) more = fmt::format("{} XCDs{}", first.dies, count > 1 ? " each" : "");
    if (first.card != 0 && cards.size() < count)
      more += fmt::format("{}partitions of {} card{}", more.empty() ? "" : ", ", cards.size(),
                          cards.size() == 1 ? "" : "s");
    if (!more.empty()) text += " (" + more + ")";
    at = end;
  }
  return text;
}

// The HIP runtime where the loader looks by default: its file with the version in the name; "" = none.
std::string installed_hip() {
  std::error_code ignored;
  for (const char* const folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/lib64"})
    for (const char* const name : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}) {
      const std::filesystem::path path = std::filesystem::path(folder) / name;
      if (!std::filesystem::exists(path, ignored)) continue;
      const std::filesystem::path real = std::filesystem::canonical(path, ignored);
      return ignored ? path.string() : real.string();
    }
  return {};
}

class Amd : public Vendor {
 public:
  std::string_view name() const override { return "amd"; }
  bool made(std::string_view maker) const override {
    return maker.find("AMD") != std::string_view::npos || maker.find("Advanced Micro") != std::string_view::npos;
  }
  std::span<const std::string_view> prefixes() const override { return kAmdPrefixes; }
  event::Domain api() const override { return event::Domain::kHipRuntime; }
  std::span<const char* const> recorded_variables() const override { return kAmdVariables; }
  std::span<const char* const> device_marks() const override {
    static constexpr const char* kMarks[] = {"/libamdhip64.so", "/libhsa-runtime64.so", "/dev/kfd", "/dev/dri/renderD"};
    return kMarks;
  }

  // Programs that open ROCTx by name on a machine without ROCm find stand-ins that pass on to libtacho.so.
  void prepare(EnvironmentBlock& variables, const std::string& library) const override {
    const std::string stand_ins = library.substr(0, library.rfind('/')) + "/roctx";
    const std::string path = variables.get("LD_LIBRARY_PATH");
    // libtacho-watch.so has no markers.
    if (!library.ends_with("libtacho-watch.so") && access((stand_ins + "/libroctx64.so").c_str(), R_OK) == 0 &&
        !rocm_roctx_installed(path))
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
      found.sources.push_back({"rocm", errno == ENOENT ? "no device" : "not permitted",
                               errno == ENOENT
                                   ? "no /dev/kfd: load the amdgpu driver, or hand the device to the container "
                                     "(--device /dev/kfd --device /dev/dri)"
                                   : "/dev/kfd cannot be opened: add yourself to the groups render and video"});
    else
      found.sources.push_back({"rocm", "ready", describe_road(runtime)});
    if (!runtime.hsa.empty() && access("/dev/kfd", R_OK | W_OK) == 0) {
      std::ifstream file("/sys/module/amdgpu/version");
      std::string driver;
      if (std::getline(file, driver)) driver = "amdgpu " + driver;
      for (const Node& node : gpu_nodes())
        found.devices.push_back(
            {"HIP", node.name, "GPU", static_cast<int64_t>(node.units), node.memory, driver, "AMD " + node.name});
    }
    return found;
  }

  std::vector<std::string> installed_gpus() const override {
    std::vector<std::string> gpus;
    for (const Node& node : gpu_nodes()) gpus.push_back("AMD " + node.name);
    return gpus;
  }

  std::vector<Check> checks() const override {
    using State = Check::State;
    const bool module = access("/sys/module/amdgpu", F_OK) == 0, kfd = access("/dev/kfd", F_OK) == 0;
    const std::vector<Node> gpus = gpu_nodes();
    if (!pci_device_of(0x1002) && !kfd && gpus.empty())
      return {{"AMD", State::kNote, "no AMD GPU in this machine", ""}};
    std::vector<Check> found;
    const std::string names = summary_of(gpus);
    if (!module && !kfd)
      found.push_back({"AMD kernel module", State::kBad,
                       "there is an AMD GPU, but the kernel module amdgpu is not loaded", sudo() + "modprobe amdgpu"});
    else
      found.push_back({"AMD kernel module", State::kGood, names.empty() ? "loaded" : names, ""});
    if (!kfd) {
      found.push_back({"/dev/kfd", State::kBad, "the compute interface of the driver is not here",
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
      found.push_back({"/dev/dri", State::kBad,
                       render ? "this user may not open a render device" : "there is no render device",
                       render ? sudo() + "usermod -aG render,video $USER   (then log in again)"
                              : "start the container with GPUs: docker run --device /dev/kfd --device /dev/dri ..."});
    const char* const home = std::getenv("ROCM_PATH");
    const std::string rocm = home != nullptr && *home != '\0' ? home : "/opt/rocm";
    std::ifstream file(rocm + "/.info/version");
    std::string version;
    if (std::getline(file, version))
      found.push_back({"ROCm", State::kGood, version + " in " + rocm, ""});
    else if (const std::string hip = installed_hip(); !hip.empty())
      found.push_back({"ROCm", State::kGood, "the distribution's: " + hip, ""});
    else
      found.push_back({"ROCm", State::kNote, "not found in " + rocm + "; set ROCM_PATH when it is elsewhere",
                       install_command("rocm-hip-runtime")});
    const AmdRuntime runtime = find_amd_runtime();
    const std::string other = "tacho traces kernels, copies and HIP calls through HSA's interface for tools";
    if (!runtime.hsa.empty() && !runtime.registers)
      found.push_back({"rocprofiler-sdk", State::kNote,
                       "of no use here: " + runtime.hsa + " is built without rocprofiler-register; " + other, ""});
    else if (runtime.sdk.empty())
      found.push_back({"rocprofiler-sdk", State::kNote, "not found; " + other, install_command("rocprofiler-sdk")});
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
