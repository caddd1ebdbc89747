// Counters of other tools as a profile folder (import.h).
#include "workload/import.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

#include "base/format.h"
#include "base/text/csv.h"
#include "workload/layout/layout.h"
#include "workload/workload.h"
#include "workload/writer.h"

namespace tacho::workload {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 4;
constexpr size_t kMostImported = 10'000;

// "pass_2" before "pass_10": numbers compare as numbers.
bool by_number(const std::string& a, const std::string& b) {
  size_t i = 0, j = 0;
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      size_t p = i, q = j;
      while (p < a.size() && digit(a[p])) ++p;
      while (q < b.size() && digit(b[q])) ++q;
      const std::string x = a.substr(i, p - i), y = b.substr(j, q - j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      i = p;
      j = q;
    } else if (a[i] != b[j]) {
      return a[i] < b[j];
    } else {
      ++i;
      ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

std::vector<std::string> header_of(const std::string& path) {
  std::vector<std::string> names;
  auto reader = CsvReader::open(path);
  std::vector<std::string_view> fields;
  if (!reader) return names;
  if (const auto any = reader->next(fields); any && *any)
    for (const std::string_view field : fields) names.emplace_back(canonical_column(field));
  return names;
}

// Columns of a kernel's row that are not counters.
bool tells_of_dispatch(std::string_view name) {
  static const std::set<std::string_view> kKnown = {"Kernel_Name",
                                                    "Dispatch_ID",
                                                    "GPU_ID",
                                                    "queue-id",
                                                    "Queue_ID",
                                                    "queue-index",
                                                    "Queue_Index",
                                                    "pid",
                                                    "PID",
                                                    "tid",
                                                    "TID",
                                                    "sig",
                                                    "SIG",
                                                    "obj",
                                                    "OBJ",
                                                    "wave_size",
                                                    "Wave_Size",
                                                    "DispatchNs",
                                                    "CompleteNs",
                                                    "DurationNs",
                                                    "Agent_Id",
                                                    "Queue_Id",
                                                    "Process_Id",
                                                    "Thread_Id",
                                                    "Correlation_Id",
                                                    "Correlation_ID",
                                                    "Kernel_ID",
                                                    "Kernel_Id",
                                                    "XCC_ID",
                                                    "thread-id",
                                                    "fbar",
                                                    "rtn"};
  return kKnown.contains(name) || is_id_column(name);
}

enum class Holds { kNothing, kCounters, kAgents };

Holds what_holds(const std::string& path) {
  if (path.ends_with("agent_info.csv")) return Holds::kAgents;
  if (!path.ends_with(".csv") && !path.ends_with(".csv.gz")) return Holds::kNothing;
  const std::vector<std::string> names = header_of(path);
  const auto has = [&](std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  if (!has("Kernel_Name")) return Holds::kNothing;
  if (has("Counter_Name") && has("Counter_Value")) return Holds::kCounters;
  if (!has("Dispatch_ID") || has("Kind")) return Holds::kNothing;  // Kind: rocprofv3's traces
  return std::all_of(names.begin(), names.end(), [](const std::string& name) { return tells_of_dispatch(name); })
             ? Holds::kNothing
             : Holds::kCounters;
}

// The first "gfx..." in a text: rocprof v1 leaves rocminfo's output in results.sysinfo.txt.
std::string architecture_in(const std::string& path) {
  if (std::error_code error; !fs::is_regular_file(path, error)) return {};
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (const size_t at = line.find("gfx"); at != std::string::npos) {
      const size_t end = line.find_first_not_of("0123456789abcdef", at + 3);
      const std::string name = line.substr(at, end == std::string::npos ? end : end - at);
      if (name.size() >= 6) return name;
    }
  return {};
}

// The first GPU of an agent_info.csv, by column.
std::vector<std::pair<std::string, std::string>> gpu_of(const std::string& path) {
  std::vector<std::pair<std::string, std::string>> out;
  auto reader = CsvReader::open(path);
  if (!reader) return out;
  std::vector<std::string_view> fields;
  std::vector<std::string> names;
  for (;;) {
    const auto more = reader->next(fields);
    if (!more || !*more) return out;
    if (names.empty()) {
      names.assign(fields.begin(), fields.end());
      continue;
    }
    bool gpu = false;
    for (size_t i = 0; i < fields.size() && i < names.size(); ++i)
      gpu = gpu || (names[i] == "Agent_Type" && fields[i] == "GPU");
    if (!gpu) continue;
    for (size_t i = 0; i < fields.size() && i < names.size(); ++i) out.emplace_back(names[i], fields[i]);
    return out;
  }
}

// Columns of agent_info.csv and their names in sysinfo.csv.
constexpr std::pair<std::string_view, std::string_view> kFacts[] = {
    {"Product_Name", "gpu_model"},
    {"Cu_Count", "cu_per_gpu"},
    {"Simd_Per_Cu", "simd_per_cu"},
    {"Num_Shader_Banks", "se_per_gpu"},
    {"Wave_Front_Size", "wave_size"},
    {"Workgroup_Max_Size", "workgroup_max_size"},
    {"Max_Waves_Per_Cu", "max_waves_per_cu"},
    {"Max_Engine_Clk_Fcompute", "max_sclk"},
    {"Num_Xcc", "num_xcd"},
};

std::string sysinfo_of(const ForeignCounters& found, const std::string& source, const std::string& architecture) {
  std::vector<std::pair<std::string, std::string>> fields = {{"workload_name", fs::path(source).filename().string()},
                                                             {"command", "imported from " + source},
                                                             {"ip_blocks", "all"},
                                                             {"gpu_arch", architecture}};
  std::string dies = "1";
  for (const auto& [name, value] : gpu_of(found.agents))
    for (const auto& [theirs, ours] : kFacts)
      if (name == theirs && !value.empty() && value != "0") {
        fields.emplace_back(ours, value);
        if (ours == "num_xcd") dies = value;
      }
  // Channels of the L2 cache: 32 on MI100 and MI200, 16 on each die since MI300.
  const bool chiplets = architecture.starts_with("gfx94") || architecture.starts_with("gfx95");
  if (chiplets && !found.agents.empty())
    fields.emplace_back("total_l2_chan", fmt::format("{}", 16 * std::max(std::atoi(dies.c_str()), 1)));
  else if (!chiplets)
    fields.emplace_back("total_l2_chan", "32");
  fields.emplace_back("lds_banks_per_cu", "32");
  std::string names, values;
  for (const auto& [name, value] : fields) {
    names += (names.empty() ? "" : ",") + name;
    values += (values.empty() ? "" : ",") + csv_field(value);
  }
  return names + "\n" + values + "\n";
}

Status copy_one(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error) return fail("{}: cannot be copied to {}: {}", from.string(), to.string(), error.message());
  return {};
}

// Of a complete folder everything that is a plain file, and perfmon/.
Status copy_folder(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::create_directories(to + "/perfmon", error);
  if (error) return fail("{}: cannot be made: {}", to, error.message());
  for (const std::string part : {"", "/perfmon"})
    for (const auto& entry : fs::directory_iterator(from + part, error)) {
      std::error_code ignored;
      if (entry.is_regular_file(ignored))
        TACHO_TRY(copy_one(entry.path(), to + part + "/" + entry.path().filename().string()));
    }
  if (fs::is_empty(to + "/perfmon", error)) fs::remove(to + "/perfmon", error);
  return {};
}

}  // namespace

bool holds_counters(const std::string& path) {
  return what_holds(path) == Holds::kCounters;
}

ForeignCounters find_foreign_counters(const std::string& folder) {
  ForeignCounters found;
  std::error_code error;
  size_t seen = 0;
  const auto look = [&](const auto& self, const std::string& where, int depth) -> void {
    if (fs::is_regular_file(where + "/sysinfo.csv", error)) {
      if (const auto inside = find_workload(where); inside && *inside == where) {
        found.folders.push_back(where);
        return;
      }
    }
    std::vector<std::string> below;
    for (const auto& entry : fs::directory_iterator(where, fs::directory_options::skip_permission_denied, error)) {
      if (++seen > kMostImported) return;
      std::error_code ignored;
      const std::string path = entry.path().string();
      if (entry.is_directory(ignored)) {
        below.push_back(path);
      } else if (path.ends_with("sysinfo.txt")) {
        if (found.architecture.empty()) found.architecture = architecture_in(path);
      } else if (const Holds holds = what_holds(path); holds == Holds::kCounters) {
        found.passes.push_back(path);
      } else if (holds == Holds::kAgents && found.agents.empty()) {
        found.agents = path;
      }
    }
    if (depth < kDeepest)
      for (const std::string& path : below) self(self, path, depth + 1);
  };
  look(look, folder, 0);
  std::sort(found.passes.begin(), found.passes.end(), by_number);
  std::sort(found.folders.begin(), found.folders.end(), by_number);
  for (const auto& [name, value] : gpu_of(found.agents))
    if (name == "Name" && value.starts_with("gfx")) found.architecture = value.substr(0, value.find(':'));
  return found;
}

Status import_counters(const ForeignCounters& found, const std::string& source, const std::string& output,
                       std::string architecture, bool overwrite) {
  std::error_code error;
  if (fs::exists(output, error) && !overwrite)
    return fail("{}: exists; choose another name with -o, or --overwrite replaces it", output);
  if (found.passes.empty()) return copy_folder(found.folders.front(), output);
  if (architecture.empty()) architecture = found.architecture;
  if (architecture.empty())
    return fail("{}: no file says which GPU the counters are of; name it: tacho import {} --arch gfx90a", source,
                source);
  TACHO_ASSIGN(const FolderWriter writer, FolderWriter::open(output, overwrite));
  RunEntry run;
  run.number = 1;
  run.command = {"imported from " + source};
  run.tool = "import";
  for (size_t i = 0; i < found.passes.size(); ++i) {
    const std::string& from = found.passes[i];
    // Level passes keep their names, by which analyze knows them.
    const std::string own = fs::path(from).filename().string();
    const std::string name =
        own.starts_with("SQ") ? own : fmt::format("pmc_perf_{}{}", i, from.ends_with(".gz") ? ".csv.gz" : ".csv");
    TACHO_TRY(copy_one(from, output + "/" + name));
    run.files.push_back(name);
  }
  TACHO_TRY(writer.write("sysinfo.csv", sysinfo_of(found, source, architecture), true));
  TACHO_TRY(writer.add_run(run));
  writer.started();
  return {};
}

}  // namespace tacho::workload
