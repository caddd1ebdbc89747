// Reading the topology of the kernel driver (machine.h).
#include "counter/provider/amd/machine.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/format.h"
#include "metric/catalog/builtin/builtin.h"

namespace tacho::counter::amd {

namespace {

namespace fs = std::filesystem;
using Facts = std::map<std::string, uint64_t>;

Facts facts_in(const fs::path& file) {
  Facts facts;
  std::ifstream in(file);
  std::string key;
  for (uint64_t value = 0; in >> key >> value;) facts[key] = value;
  return facts;
}

std::string line_in(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// Instruction and scalar caches, which two compute units share: also where one of the two is switched off.
uint64_t scalar_caches(std::string_view architecture, Facts& node, uint64_t units) {
  if (architecture == "gfx908") return 64;
  if (architecture == "gfx90a") return 56;
  if (architecture == "gfx950") return units / 2;
  return node["array_count"] * node["cu_per_simd_array"] / 2;
}

Device device_from_node(const fs::path& folder, Facts& node, const metric::Architecture& architecture, size_t ordinal) {
  const auto per = [](uint64_t value, uint64_t divisor) { return divisor == 0 ? 0 : value / divisor; };
  Device device;
  device.id = std::to_string(ordinal);
  device.vendor = architecture.vendor;
  device.architecture = architecture.name;
  device.facts = architecture;
  device.model = architecture.family;
  device.name = "AMD Instinct " + device.model;
  std::error_code ignored;
  uint64_t memory = 0, memory_clock = 0, l1 = 0, l2 = 0;
  for (const auto& bank : fs::directory_iterator(folder / "mem_banks", ignored)) {
    Facts facts = facts_in(bank.path() / "properties");
    memory += facts["size_in_bytes"];
    memory_clock = std::max(memory_clock, facts["mem_clk_max"]);
  }
  for (const auto& cache : fs::directory_iterator(folder / "caches", ignored)) {
    Facts facts = facts_in(cache.path() / "properties");
    if (facts["level"] == 1) l1 = std::max(l1, facts["size"]);
    if (facts["level"] == 2) l2 = std::max(l2, facts["size"]);
  }
  const uint64_t units = per(node["simd_count"], node["simd_per_cu"]), dies = std::max<uint64_t>(node["num_xcc"], 1);
  const double banks = architecture.number("l2.banks");
  const uint64_t channels = banks > 0 ? static_cast<uint64_t>(banks) * dies : 0;
  const auto add = [&](std::string_view key, uint64_t value) {
    if (value != 0) device.sysinfo.emplace_back(key, std::to_string(value));
  };
  device.sysinfo = {{"gpu_series", device.model}, {"gpu_model", device.model}, {"gpu_arch", device.architecture}};
  const char* const home = std::getenv("ROCM_PATH");
  const std::string rocm = line_in(fs::path(home != nullptr && *home != '\0' ? home : "/opt/rocm") / ".info/version");
  if (!rocm.empty()) device.sysinfo.emplace_back("rocm_version", rocm);
  if (const std::string driver = line_in("/sys/module/amdgpu/version"); !driver.empty())
    device.sysinfo.emplace_back("amd_gpu_kernel_version", driver);
  const fs::path card = fmt::format("/sys/class/drm/renderD{}/device", node["drm_render_minor"]);
  if (const std::string mode = line_in(card / "current_compute_partition"); !mode.empty())
    device.sysinfo.emplace_back("compute_partition", mode);
  if (const std::string mode = line_in(card / "current_memory_partition"); !mode.empty())
    device.sysinfo.emplace_back("memory_partition", mode);
  if (const std::string vbios = line_in(card / "vbios_version"); !vbios.empty())
    device.sysinfo.emplace_back("vbios", vbios);
  add("gpu_chip_id", node["device_id"]);
  add("gpu_memory", memory >> 20);
  add("gpu_l1", l1);
  add("gpu_l2", l2);
  add("cu_per_gpu", units);
  add("simd_per_cu", node["simd_per_cu"]);
  add("se_per_gpu", per(node["array_count"], node["simd_arrays_per_engine"]));
  add("wave_size", node["wave_front_size"]);
  device.sysinfo.emplace_back("workgroup_max_size", "1024");
  add("max_waves_per_cu", node["max_waves_per_simd"] * node["simd_per_cu"]);
  for (const char* key : {"max_sclk", "cur_sclk"}) add(key, node["max_engine_clk_fcompute"]);
  for (const char* key : {"max_mclk", "cur_mclk"}) add(key, memory_clock);
  add("total_l2_chan", channels);
  device.sysinfo.emplace_back("lds_banks_per_cu", "32");
  add("sqc_per_gpu", scalar_caches(architecture.name, node, units));
  device.sysinfo.emplace_back("pipes_per_gpu", "4");
  add("num_xcd", dies);
  add("num_hbm_channels", channels);
  return device;
}

}  // namespace

std::string architecture_named_by(uint64_t target_version) {
  const uint64_t major = target_version / 10000, minor = target_version / 100 % 100, step = target_version % 100;
  return fmt::format("gfx{}{}{:x}", major, minor, step);
}

std::vector<Device> devices_of(const std::string& nodes, std::vector<std::string>& unknown) {
  std::vector<std::pair<int, fs::path>> folders;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(nodes, ignored))
    folders.emplace_back(std::atoi(entry.path().filename().c_str()), entry.path());
  std::sort(folders.begin(), folders.end());
  std::vector<Device> devices;
  size_t ordinal = 0;
  for (const auto& [number, folder] : folders) {
    Facts node = facts_in(folder / "properties");
    if (node["simd_count"] == 0) continue;
    const size_t gpu = ordinal++;
    const std::string name = architecture_named_by(node["gfx_target_version"]);
    const auto architecture = metric::built_in_architecture(name);
    if (architecture && architecture->vendor == "amd" && architecture->metrics)
      devices.push_back(device_from_node(folder, node, *architecture, gpu));
    else
      unknown.push_back(name);
  }
  return devices;
}

std::string find_sdk() {
  std::string folders;
  for (const char* variable : {"LD_LIBRARY_PATH", "ROCM_PATH"})
    if (const char* const value = std::getenv(variable); value != nullptr && *value != '\0')
      folders += std::string(value) + (std::string_view(variable) == "ROCM_PATH" ? "/lib:" : ":");
  folders += "/opt/rocm/lib:/usr/lib/x86_64-linux-gnu:/usr/lib64:/usr/lib:/lib64";
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string folder = folders.substr(begin, end - begin);
    for (const char* name : {"librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0"})
      if (const std::string file = folder + "/" + name; !folder.empty() && access(file.c_str(), R_OK) == 0) return file;
    begin = end + 1;
  }
  return {};
}

}  // namespace tacho::counter::amd
