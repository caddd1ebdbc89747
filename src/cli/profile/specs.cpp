// Collects the facts for sysinfo.csv (specs.h).
#include "cli/profile/specs.h"

#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text/csv.h"
#include "report/table.h"
#include "workload/workload.h"
#include "workload/writer.h"

namespace tacho::cli {

namespace {

// The value after "key" and a separator, in a file of such lines.
std::string value_in(const char* path, std::string_view key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    std::string value = line.substr(at + 1);
    value.erase(0, value.find_first_not_of(" \t\""));
    while (!value.empty() && (value.back() == '"' || value.back() == ' ')) value.pop_back();
    return value;
  }
  return {};
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<std::pair<std::string, std::string>> facts(const counter::Device& device) {
  std::vector<std::pair<std::string, std::string>> list;
  utsname system{};
  uname(&system);
  list.emplace_back("timestamp", now_text());
  list.emplace_back("version", fmt::format("tacho {}", TACHO_PROGRAM_VERSION));
  list.emplace_back("hostname", system.nodename);
  list.emplace_back("cpu_model", value_in("/proc/cpuinfo", "model name", ':'));
  list.emplace_back("sbios", first_line("/sys/class/dmi/id/bios_version"));
  list.emplace_back("linux_distro", value_in("/etc/os-release", "PRETTY_NAME", '='));
  list.emplace_back("linux_kernel_version", system.release);
  list.emplace_back("cpu_memory", value_in("/proc/meminfo", "MemTotal", ':'));
  for (const auto& entry : device.sysinfo) list.push_back(entry);
  const auto has = [&](std::string_view name) {
    for (const auto& [key, value] : list)
      if (key == name) return true;
    return false;
  };
  if (!has("gpu_model")) list.emplace_back("gpu_model", device.model);
  if (!has("gpu_arch")) list.emplace_back("gpu_arch", device.architecture);
  return list;
}

}  // namespace

std::string now_text() {
  const time_t now = time(nullptr);
  tm parts{};
  localtime_r(&now, &parts);
  char text[64];
  strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

std::string sysinfo_csv(const counter::Device& device, const std::string& name, const std::string& command,
                        bool roofline_only) {
  std::vector<std::pair<std::string, std::string>> list = {
      {"workload_name", name}, {"command", command}, {"ip_blocks", roofline_only ? "roofline" : "all"}};
  for (auto& entry : facts(device)) list.push_back(std::move(entry));
  std::string header, row;
  for (const auto& [key, value] : list) {
    header += (header.empty() ? "" : ",") + csv_field(key);
    row += (&value == &list.front().second ? "" : ",") + csv_field(value);
  }
  return header + "\n" + row + "\n";
}

std::string specs_text(const counter::Device& device) {
  report::PrintedTable table;
  table.columns = {{"Property"}, {"Value"}};
  for (auto& [key, value] : facts(device))
    if (!value.empty()) table.rows.push_back({key, value});
  return report::to_text(table, {});
}

Status check_same_device(const std::string& folder, const counter::Device& device) {
  std::error_code error;
  if (!std::filesystem::exists(folder + "/sysinfo.csv", error)) return {};
  TACHO_ASSIGN(const workload::SysInfo info, workload::read_sysinfo(folder));
  if (info.get("gpu_arch") == device.architecture) return {};
  return fail("{}: holds a profile of {}, this one is of {}; choose another folder, or --overwrite to replace it",
              folder, info.get("gpu_arch"), device.architecture);
}

}  // namespace tacho::cli
