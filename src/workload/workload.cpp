// Finding and reading a profile folder: which of its files hold counters, and how they go together.
#include "workload/workload.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/files/output_file.h"
#include "base/files/temporary.h"
#include "base/text/how_many.h"
#include "workload/layout/layout.h"
#include "workload/pc_samples/pc_samples.h"
#include "workload/pc_samples/sample_json.h"
#include "workload/runs.h"

namespace tacho::workload {

namespace fs = std::filesystem;

namespace {

struct Files {
  std::string joined;                     // pmc_perf.csv
  std::vector<std::string> passes;        // pmc_perf_<n>.csv, results_<n>.csv, or what out_of() finds
  std::vector<std::string> levels;        // SQ_*.csv
  std::vector<std::string> sampled;       // ps_file_kernel_trace.csv: dispatches of a run that only sampled, by process
  std::vector<std::string> sampled_json;  // ps_file_results.json, which holds them from 3.9 on
};

bool has_csv_ending(std::string_view name) {
  return name.ends_with(".csv") || name.ends_with(".csv.gz");
}

std::string_view stem(std::string_view name) {
  if (const size_t slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  if (name.ends_with(".gz")) name.remove_suffix(3);
  if (name.ends_with(".csv")) name.remove_suffix(4);
  return name;
}

// pmc_perf_2 before pmc_perf_10.
bool natural_less(std::string_view a, std::string_view b) {
  const auto number = [](std::string_view name) {
    const std::string_view digits = name.substr(name.find_last_not_of("0123456789") + 1);
    return digits.size() > 9 || digits.empty() ? -1L : std::stol(std::string(digits));
  };
  const std::string_view sa = stem(a), sb = stem(b);
  const std::string_view ta = sa.substr(0, sa.find_last_not_of("0123456789") + 1);
  const std::string_view tb = sb.substr(0, sb.find_last_not_of("0123456789") + 1);
  if (ta != tb) return ta < tb;
  return std::pair(number(sa), sa) < std::pair(number(sb), sb);
}

std::vector<std::string> entries_of(const std::string& folder, bool folders) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, fs::directory_options::skip_permission_denied, error), end;
       !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored) == folders) names.push_back(it->path().filename().string());
    if (names.size() > 100000) break;
  }
  std::sort(names.begin(), names.end());
  return names;
}

// rocprofv3's own files of each pass, which rocprof-compute leaves in out/<pass>/<host>/.
std::vector<std::string> out_of(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  auto entries = fs::recursive_directory_iterator(folder + "/out", error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    if (entries.depth() > 2) entries.disable_recursion_pending();
    if (stem(entries->path().filename().string()).ends_with("counter_collection") &&
        has_csv_ending(entries->path().filename().string()))
      found.push_back(entries->path().string());
  }
  return found;
}

Files files_of(const std::string& folder) {
  Files files;
  for (const std::string& name : entries_of(folder, false)) {
    const std::string path = folder + "/" + name;
    if (is_sample_file(name, "ps_file_results.json")) files.sampled_json.push_back(path);
    if (!has_csv_ending(name)) continue;
    const std::string_view base = stem(name);
    if (name == "pmc_perf.csv" || name == "pmc_perf.csv.gz") {
      files.joined = path;
    } else if (base.ends_with("_marker_api_trace") || base.ends_with("_converted")) {
      continue;
    } else if (base.starts_with("pmc_perf_") || base.starts_with("results_")) {
      files.passes.push_back(path);
    } else if (base.starts_with("SQ")) {
      files.levels.push_back(path);
    } else if (is_sample_file(name, "ps_file_kernel_trace.csv")) {
      files.sampled.push_back(path);
    }
  }
  std::sort(files.sampled.begin(), files.sampled.end(), natural_less);
  std::sort(files.sampled_json.begin(), files.sampled_json.end(), natural_less);
  std::error_code error;
  if (files.joined.empty() && files.passes.empty() && files.levels.empty() &&
      fs::exists(folder + "/sysinfo.csv", error))
    files.passes = out_of(folder);
  std::sort(files.passes.begin(), files.passes.end(), natural_less);
  return files;
}

bool has_counters(const std::string& folder) {
  const Files files = files_of(folder);
  if (!files.joined.empty() || !files.passes.empty() || !files.sampled.empty() || !files.sampled_json.empty())
    return true;
  // A run of ours that asked for what fits into level passes has no others.
  if (files.levels.empty()) return false;
  const auto runs = read_runs(folder);
  return runs && std::any_of(runs->begin(), runs->end(), [](const RunEntry& run) { return !run.files.empty(); });
}

void collect_workloads(const std::string& folder, int depth, std::vector<std::string>& found) {
  if (depth == 0 || found.size() > 64) return;
  for (const std::string& name : entries_of(folder, true)) {
    if (name == "perfmon" || name == "out" || name.starts_with(".")) continue;
    const std::string path = folder + "/" + name;
    if (has_counters(path)) {
      found.push_back(path);
    } else {
      collect_workloads(path, depth - 1, found);
    }
  }
}

constexpr std::string_view kEmpty = "it is empty";

// A guess at the kind of a folder without counters, as the end of a sentence.
std::string guess(const std::string& folder, int depth = 4) {
  bool any = false;
  for (const std::string& name : entries_of(folder, false)) {
    any = true;
    if (name.ends_with("_kernel_trace.csv") || name.ends_with("_hip_api_trace.csv") ||
        name.ends_with("_counter_collection.csv"))
      return fmt::format("it holds output of rocprofv3 ({}), which `tacho stats` reads", name);
    if (name.ends_with(".rpd") || name.ends_with(".tacho") || name.ends_with(".db"))
      return fmt::format("it holds a trace ({}), which `tacho stats` reads", name);
    if (name.ends_with(".ncu-rep") || name.ends_with(".nsys-rep"))
      return fmt::format("it holds output of NVIDIA's tools ({})", name);
    if (name == "sysinfo.csv") {
      std::error_code ignored;
      if (std::filesystem::exists(folder + "/roofline.csv", ignored) &&
          !std::filesystem::exists(folder + "/profiling_config.yaml", ignored))
        return "it has the roofs of the device alone (roofline.csv), as profile --bench-only leaves them";
      std::string why = "the profile run did not finish";
      if (const auto runs = read_runs(folder); runs && !runs->empty())
        why = runs->back().exit_code != 0
                  ? fmt::format("the program ended with code {} before a kernel was measured", runs->back().exit_code)
                  : "the program launched no kernel, or none that passed the filters (log.txt says which)";
      return "it has a sysinfo.csv, but no counter file: " + why;
    }
  }
  if (!any && depth > 0)
    for (const std::string& name : entries_of(folder, true)) {
      std::string inside = guess(folder + "/" + name, depth - 1);
      if (inside != kEmpty) return fmt::format("{}{}{}", name, inside.starts_with("it ") ? ": " : "/", inside);
    }
  return any ? "it holds nothing that rocprof-compute writes" : std::string(kEmpty);
}

// Of a folder with several runs of tacho profile only the files of those that go together are read, the newest first.
void choose_files(const std::string& folder, const std::vector<RunEntry>& runs, const std::vector<size_t>& chosen,
                  Files& files, Workload& workload) {
  files = {};
  bool everything = false, roofline_only = true;
  for (const size_t index : chosen) {
    const RunEntry& run = runs[index];
    workload.estimated = workload.estimated || run.estimated;
    everything = everything || run.blocks.empty();
    roofline_only = roofline_only && run.roofline_only;
    if (run.exit_code != 0)
      workload.warnings.push_back(
          fmt::format("{}: the program ended with code {} (run {}); what it had not finished by then is missing",
                      folder, run.exit_code, run.number));
    if (run.measured < run.seen)
      workload.warnings.push_back(
          fmt::format("{}: counts and sums of kernels are of the {} dispatches that were measured, of {} (run {})",
                      folder, run.measured, run.seen, run.number));
    for (const std::string& block : run.blocks)
      if (std::find(workload.recorded_blocks.begin(), workload.recorded_blocks.end(), block) ==
          workload.recorded_blocks.end())
        workload.recorded_blocks.push_back(block);
    for (const std::string& file : run.files) {
      if (file.find('/') != std::string::npos) continue;
      (stem(file).starts_with("SQ") ? files.levels : files.passes).push_back(folder + "/" + file);
    }
  }
  if (everything) workload.recorded_blocks.clear();
  // sysinfo.csv was written by the first run that came here.
  std::string command;
  for (const std::string& word : runs[chosen.front()].command) command += (command.empty() ? "" : " ") + word;
  workload.sysinfo.set("command", std::move(command));
  workload.sysinfo.set("timestamp", runs[chosen.front()].timestamp);
  workload.sysinfo.set("ip_blocks", roofline_only ? "roofline" : "all");
  std::string others;
  size_t count = 0;
  for (size_t i = 0; i < runs.size(); ++i)
    if (std::find(chosen.begin(), chosen.end(), i) == chosen.end() && ++count <= 5)
      others += (others.empty() ? "" : "; ") + describe(runs[i]);
  if (count > 0)
    workload.warnings.push_back(fmt::format("{}: {} of its {} runs had another command or other filters and are left "
                                            "out (--run N selects one): {}{}",
                                            folder, count, runs.size(), others, count > 5 ? "; ..." : ""));
  if (workload.estimated)
    workload.warnings.push_back(
        fmt::format("{}: the counts are estimates from some of the work-groups (profile --max-time)", folder));
}

// Rows of the result in the order given; dispatches and every pass alike.
Status keep_rows(Workload& workload, const std::vector<uint32_t>& rows) {
  std::vector<Dispatch> dispatches;
  for (const uint32_t row : rows) dispatches.push_back(workload.dispatches[row]);
  workload.dispatches = std::move(dispatches);
  for (Pass& pass : workload.passes) {
    TACHO_ASSIGN(pass.counters, pass.counters.reordered(rows));
  }
  return {};
}

// Leaves out dispatches with contradictory numbers, counts them and names them.
Status drop_contradictions(Workload& workload, const std::string& file, bool compat) {
  const CounterTable& counters = workload.passes.front().counters;
  const auto start = counters.column("Start_Timestamp");
  const auto end = counters.column("End_Timestamp");
  const auto active = counters.column("GRBM_GUI_ACTIVE");
  const size_t count = workload.dispatches.size();
  const bool roofline_only = workload.sysinfo.get("ip_blocks") == "roofline";
  std::vector<uint32_t> kept;
  size_t idle = 0, backwards = 0, first_idle = 0, first_backwards = 0;
  for (uint32_t r = 0; r < count; ++r) {
    const bool is_idle = !active.empty() && active[r] == 0 && !roofline_only;
    const bool is_backwards = !compat && !start.empty() && !end.empty() && end[r] < start[r];
    if (is_idle && idle++ == 0) first_idle = r;
    if (is_backwards && backwards++ == 0) first_backwards = r;
    if (!is_idle && !is_backwards) kept.push_back(r);
  }
  if (idle > 0 && (compat || kept.empty()))
    return fail("{}: row {}: GRBM_GUI_ACTIVE is 0 in {} of {} dispatches, so nothing was counted there{}", file,
                first_idle + 2, idle, count,
                compat ? " (rocprof-compute 3.3 stops here; without --compat they are left out)" : "");
  if (idle > 0)
    workload.warnings.push_back(fmt::format("{}: {} GRBM_GUI_ACTIVE = 0 (first: row {}), so "
                                            "nothing was counted there; {} left out",
                                            file,
                                            how_many_of(idle, how_many(count, "dispatch", "dispatches"), "has", "have"),
                                            first_idle + 2, idle == 1 ? "it was" : "they were"));
  if (backwards > 0 && kept.empty())
    return fail("{}: row {}: End_Timestamp is before Start_Timestamp in every dispatch", file, first_backwards + 2);
  if (backwards > 0)
    workload.warnings.push_back(fmt::format("{}: {} (first: row {}); {} left out", file,
                                            how_many_of(backwards, how_many(count, "dispatch", "dispatches"),
                                                        "ends before it starts", "end before they start"),
                                            first_backwards + 2, backwards == 1 ? "it was" : "they were"));
  if (kept.size() != count) return keep_rows(workload, kept);
  return {};
}

}  // namespace

const Pass* Workload::pass(std::string_view name) const {
  for (const Pass& pass : passes)
    if (pass.name == name) return &pass;
  return nullptr;
}

bool is_workload(const std::string& folder) {
  std::error_code error;
  return fs::is_directory(folder, error) && has_counters(folder);
}

Result<std::string> find_workload(const std::string& given) {
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return fail("{}: there is no such folder", given);
  if (!fs::is_directory(status)) return fail("{}: is a file; give the folder that the profile run wrote", given);
  if (has_counters(path)) return path;
  std::vector<std::string> found;
  collect_workloads(path, 4, found);
  if (found.size() == 1) return found.front();
  if (found.empty()) return fail("{}: no profiling data found: {}", given, guess(path));
  std::string list;
  for (size_t i = 0; i < found.size() && i < 12; ++i) list += (i == 0 ? "" : ", ") + found[i];
  if (found.size() > 12) list += ", ...";
  return fail("{}: holds no counter data itself but {} profile folders; give one of them with -p: {}", given,
              found.size(), list);
}

// The names listed in perfmon/<pass>.yaml under "extrapolated:".
static void read_extrapolated(const std::string& folder, const std::vector<std::string>& passes,
                              std::vector<std::string>& out) {
  for (const std::string& path : passes) {
    std::ifstream file(fmt::format("{}/perfmon/{}.yaml", folder, stem(path)));
    bool listed = false;
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("  - "))
        listed = line == "extrapolated:";
      else if (listed)
        out.push_back(line.substr(4));
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
}

namespace {

// The passes of a folder without a joined file. `levels_joined`: whether those of levels are among them.
Result<RawTable> read_passes(Files& files, bool of_tacho, const ReadOptions& options, NameTable& kernels,
                             Workload& workload, bool& levels_joined) {
  std::vector<char> is_long;
  for (const std::string& path : files.passes) {
    TACHO_ASSIGN(const bool each, is_long_form(path));
    is_long.push_back(each);
  }
  const bool any_long = std::find(is_long.begin(), is_long.end(), true) != is_long.end();
  const bool any_wide = std::find(is_long.begin(), is_long.end(), false) != is_long.end();
  // Other tools' long form has its levels in the same files.
  if (any_long && !any_wide && !of_tacho) files.levels.clear();
  workload.long_form = any_long && !any_wide && files.levels.empty();
  if (workload.long_form) {
    std::vector<CsvSource> sources;
    for (const std::string& path : files.passes) sources.push_back({path});
    // Of values given twice the last one counts; runs of ours come with the newest first.
    if (of_tacho) std::reverse(sources.begin(), sources.end());
    return read_long(sources, options, kernels, workload.warnings);
  }
  std::vector<RawTable> passes;
  for (size_t i = 0; i < files.passes.size(); ++i) {
    TACHO_ASSIGN(RawTable pass, is_long[i]
                                    ? read_long({CsvSource{files.passes[i]}}, options, kernels, workload.warnings)
                                    : read_wide({files.passes[i]}, options, kernels, workload.warnings));
    passes.push_back(std::move(pass));
  }
  for (const std::string& path : files.levels) {
    TACHO_ASSIGN(RawTable pass, read_wide({path}, options, kernels, workload.warnings));
    passes.push_back(std::move(pass));
  }
  levels_joined = true;
  return join_passes(std::move(passes), kernels, workload.warnings);
}

// For every dispatch of `main` its row in a level pass.
std::vector<uint32_t> rows_in_level(const RawTable& main, const RawTable& level, const NameTable& kernels, bool compat,
                                    bool& same) {
  std::vector<uint32_t> order(main.dispatches.size(), CounterTable::kNoRow);
  same = level.dispatches.size() == order.size();
  for (size_t r = 0; r < order.size() && r < level.dispatches.size(); ++r) {
    order[r] = static_cast<uint32_t>(r);
    same = same && plain_kernel_name(kernels.names()[main.dispatches[r].kernel]) ==
                       plain_kernel_name(kernels.names()[level.dispatches[r].kernel]);
  }
  if (!same && !compat) order = match_rows(main, level, kernels);
  return order;
}

// The dispatches of a run that only sampled, from its JSON: as the kernel trace that older versions wrote beside it.
Result<RawTable> read_json_dispatches(const std::string& path, const ReadOptions& options, NameTable& kernels,
                                      std::vector<std::string>& warnings) {
  TACHO_ASSIGN(const std::string text, kernel_trace_of_json(path));
  TACHO_ASSIGN(const TemporaryFolder place, TemporaryFolder::create(temporary_folder() + "/tacho-samples-"));
  const std::string trace = place.path() + "/kernel_trace.csv";
  TACHO_ASSIGN(OutputFile file, OutputFile::create(trace, false));
  file.write(text);
  TACHO_TRY(file.commit());
  std::vector<std::string> of_trace;
  auto read = read_wide({trace}, options, kernels, of_trace);
  for (std::string& warning : of_trace) {
    if (warning.starts_with(trace)) warning = path + warning.substr(trace.size());
    warnings.push_back(std::move(warning));
  }
  if (!read) return fail("{}: names no kernels that ran", path);
  read->file = path;
  return read;
}

// The pass of one level, which several runs may have read, each with the counters that it asked for. Nothing if no
// file of it can be read.
Result<std::optional<Pass>> read_level(const std::string& name, const Files& files, const RawTable& main,
                                       const ReadOptions& options, NameTable& kernels, bool tell_faults,
                                       Workload& workload) {
  std::vector<std::string> level_warnings;
  std::vector<RawTable> tables;
  for (const std::string& path : files.levels) {
    if (level_name(stem(path)) != name) continue;
    if (auto read = read_wide({path}, options, kernels, level_warnings))
      tables.push_back(std::move(*read));
    else
      workload.warnings.push_back(fmt::format("{}; metrics of that pass are not computable", read.error().message));
  }
  if (tables.empty()) return std::nullopt;
  const std::string path = tables.front().file;
  auto read = tables.size() == 1 ? Result<RawTable>(std::move(tables.front()))
                                 : join_passes(std::move(tables), kernels, level_warnings);
  if (!read) {
    workload.warnings.push_back(fmt::format("{}; metrics of {} are not computable", read.error().message, name));
    return std::nullopt;
  }
  if (tell_faults) workload.warnings.insert(workload.warnings.end(), level_warnings.begin(), level_warnings.end());
  bool same = false;
  const std::vector<uint32_t> order = rows_in_level(main, *read, kernels, options.compat, same);
  if (!same && !options.compat) {
    const auto missing = std::count(order.begin(), order.end(), CounterTable::kNoRow);
    if (missing > 0)
      workload.warnings.push_back(
          fmt::format("{}: {} of the {} dispatches of {} {} not in this pass; its metrics leave {} out", path, missing,
                      order.size(), main.file, missing == 1 ? "is" : "are", missing == 1 ? "it" : "them"));
  }
  if (same) return Pass{name, std::move(read->counters)};
  TACHO_ASSIGN(CounterTable matched, read->counters.reordered(order));
  return Pass{name, std::move(matched)};
}

}  // namespace

Result<Workload> read_workload(const std::string& folder, SysInfo sysinfo, const ReadOptions& options) {
  Files files = files_of(folder);
  Workload workload;
  workload.path = folder;
  TACHO_ASSIGN(const std::vector<RunEntry> runs, read_runs(folder));
  TACHO_ASSIGN(const std::vector<size_t> chosen, choose_runs(runs, options.run, folder));
  workload.sysinfo = std::move(sysinfo);
  if (!chosen.empty()) choose_files(folder, runs, chosen, files, workload);
  read_extrapolated(folder, files.passes, workload.extrapolated);
  NameTable kernels;
  RawTable main;
  bool levels_joined = false;
  if (!files.joined.empty()) {
    TACHO_ASSIGN(workload.long_form, is_long_form(files.joined));
    if (workload.long_form) {
      TACHO_ASSIGN(main, read_long({CsvSource{files.joined}}, options, kernels, workload.warnings));
    } else {
      TACHO_ASSIGN(main, read_wide({files.joined}, options, kernels, workload.warnings));
    }
  } else if (!files.passes.empty() || (!chosen.empty() && !files.levels.empty())) {
    TACHO_ASSIGN(main, read_passes(files, !chosen.empty(), options, kernels, workload, levels_joined));
  } else if (const bool json = files.sampled.empty(); !files.sampled.empty() || !files.sampled_json.empty()) {
    const std::vector<std::string>& sampled = json ? files.sampled_json : files.sampled;
    if (json) {
      TACHO_ASSIGN(main, read_json_dispatches(sampled.front(), options, kernels, workload.warnings));
    } else {
      TACHO_ASSIGN(main, read_wide({sampled.front()}, options, kernels, workload.warnings));
    }
    if (sampled.size() > 1)
      workload.warnings.push_back(
          fmt::format("{}: {} processes were sampled; the dispatches are those of the first ({}), the samples of all",
                      folder, sampled.size(), sampled.front()));
  } else {
    return fail("{}: no profiling data found: {}", folder, guess(folder));
  }

  std::vector<Pass> levels;
  if (!workload.long_form) {
    std::vector<std::string> names;
    for (const std::string& path : files.levels)
      if (std::find(names.begin(), names.end(), level_name(stem(path))) == names.end())
        names.emplace_back(level_name(stem(path)));
    for (const std::string& name : names) {
      TACHO_ASSIGN(std::optional<Pass> level,
                   read_level(name, files, main, options, kernels, !levels_joined, workload));
      if (level) levels.push_back(std::move(*level));
    }
  }
  workload.kernels = kernels.names();
  workload.dispatches = std::move(main.dispatches);
  workload.passes.push_back({"pmc_perf", std::move(main.counters)});
  for (Pass& level : levels) workload.passes.push_back(std::move(level));
  TACHO_TRY(drop_contradictions(workload, main.file, options.compat));
  workload.ceilings = read_ceilings(folder + "/roofline.csv", workload.warnings);
  if (const std::string why =
          foreign_ceilings(workload.ceilings, workload.sysinfo.get("gpu_arch"), workload.sysinfo.get("gpu_model"));
      !why.empty())
    workload.warnings.push_back(fmt::format("{}/roofline.csv: {}", folder, why));
  if (chosen.empty())
    if (const Result<std::string> config = read_config(folder))
      workload.recorded_blocks = parse_recorded_blocks(*config);
  return workload;
}

}  // namespace tacho::workload
