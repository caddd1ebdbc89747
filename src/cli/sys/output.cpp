// Folders, files and messages of system profiling (output.h).
#include "cli/sys/output.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "analysis/stats.h"
#include "base/files/output_file.h"
#include "base/files/run_name.h"
#include "base/job_rank.h"
#include "base/text/placeholders.h"
#include "cli/command.h"
#include "cli/files/export_trace.h"
#include "cli/files/writer_names.h"
#include "cli/output/summary.h"
#include "cli/shared/command_line.h"
#include "cli/target/run_target.h"
#include "format/timemory/timemory.h"
#include "report/output.h"
#include "report/value.h"
#include "trace/read/rows.h"

namespace tacho::cli::sys {

namespace fs = std::filesystem;
namespace column = event::column;
using event::Table;
using report::JsonValue;

namespace {

// When the process that started this one was started itself, seconds since 1970; 0 = unknown. For a rank that is its
// launcher.
double start_of_launcher() {
  std::ifstream stat(fmt::format("/proc/{}/stat", getppid()));
  std::string line;
  if (!std::getline(stat, line)) return 0;
  // The name in brackets may hold anything; 20 fields later stands the start in ticks since boot.
  std::istringstream fields(line.substr(std::min(line.rfind(')') + 1, line.size())));
  std::string field;
  for (int i = 0; i < 20; ++i)
    if (!(fields >> field)) return 0;
  const double started = std::strtod(field.c_str(), nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
  // Not by /proc/uptime, which is up to 10 ms late: a rank may begin sooner after its launcher than that.
  const auto read = [](clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  return started > 0 ? read(CLOCK_REALTIME) - read(CLOCK_BOOTTIME) + started : 0;
}

// A text with placeholders, as of the moment before the start.
std::string expand(const std::string& text, const Request& request) {
  PlaceholderFacts facts = placeholder_facts(request.command);
  facts.pid = getpid();
  facts.time_format = request.settings.text("TIME_FORMAT");
  facts.setting = [&](std::string_view name) {
    const Setting* const setting = find_setting(name);
    return setting != nullptr ? request.settings.text(setting->name) : std::string();
  };
  std::string with_time = text;
  if (const double launched = facts.job.known() ? start_of_launcher() : 0; launched > 0) {
    // Of the job, not of this rank: the ranks agree on a folder also where a minute ends between them.
    const auto seconds = static_cast<time_t>(launched);
    tm parts{};
    localtime_r(&seconds, &parts);
    char stamp[256];
    stamp[strftime(stamp, sizeof stamp, facts.time_format.c_str(), &parts)] = '\0';
    constexpr std::string_view kName = "%launch_time%";
    for (size_t at = 0; (at = with_time.find(kName, at)) != std::string::npos; at += strlen(stamp))
      with_time.replace(at, kName.size(), stamp);
  }
  return expand_placeholders(with_time, PlaceholderDialect::kRocprofSys, facts);
}

// Whether the folder is of this rank's job: made since the launcher started, and without a file of this rank.
bool is_of_this_job(const std::string& folder, int64_t rank) {
  struct statx made {};
  const double launched = start_of_launcher();
  if (launched == 0 || statx(AT_FDCWD, folder.c_str(), 0, STATX_BTIME | STATX_MTIME, &made) != 0) return false;
  const statx_timestamp& at = (made.stx_mask & STATX_BTIME) != 0 ? made.stx_btime : made.stx_mtime;
  constexpr double kTick = 0.01;  // s: files get the time of the kernel's last tick
  if (static_cast<double>(at.tv_sec) + static_cast<double>(at.tv_nsec) * 1e-9 < launched - kTick) return false;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error))
    if (file->path().stem().string().ends_with(fmt::format("-{}", rank))) return false;
  return !error;
}

// A name that is free, since the same minute may see two runs, or that of the folder that another rank of this job has
// made.
std::string free_folder(const std::string& folder) {
  const JobRank job = job_rank();
  std::error_code ignored;
  if (!fs::exists(folder, ignored) || fs::is_empty(folder, ignored)) return folder;
  if (job.known() && is_of_this_job(folder, job.rank)) return folder;
  for (int i = 1;; ++i)
    if (const std::string candidate = fmt::format("{}-{}", folder, i);
        !fs::exists(candidate, ignored) || (job.known() && is_of_this_job(candidate, job.rank)))
      return candidate;
}

struct Usage {
  double cpu_s, peak_bytes;
};
Usage children_usage() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime), static_cast<double>(usage.ru_maxrss) * 1024};
}

// Prints what the program would have printed, had it written the file itself.
void say(const Request& request, const std::string& text) {
  if (!talks(request) || request.quiet) return;
  report::print_error("{}\n", text);
}

Status write_text(const std::string& path, std::string_view text, std::vector<std::string>& written) {
  TACHO_ASSIGN(OutputFile file, OutputFile::create(path, true));
  file.write(text);
  TACHO_TRY(file.commit());
  written.push_back(path);
  return {};
}

std::string metadata_json(const trace::Trace& trace, const Request& request, int64_t process,
                          const std::vector<std::string>& written) {
  const auto property = [&](const char* key) { return JsonValue(trace.property(Table::kEnd, 0, key).value_or("")); };
  const auto of = trace::row<event::row::Process>(trace, process);
  JsonValue chosen = JsonValue::member_lines(), environment = JsonValue::object({});
  for (const Setting& setting : settings())
    if (setting.use != SettingUse::kUnsupported)
      chosen.set(std::string(kPrefix) + std::string(setting.name), request.settings.text(setting.name));
  for (int64_t row = 1; row < trace.rows(Table::kProperty); ++row)
    if (const std::string_view key = trace::text<column::Property::key>(trace, row); key.starts_with("env."))
      environment.set(key.substr(4), trace::text<column::Property::value>(trace, row));
  JsonValue metadata = JsonValue::member_lines();
  metadata.set("info", JsonValue::object({{"TOOL", "tacho"},
                                          {"TOOL_VERSION", TACHO_PROGRAM_VERSION},
                                          {"PID", of.pid},
                                          {"PPID", of.parent_pid},
                                          {"CMD", trace.string(of.command)},
                                          {"HOSTNAME", property("host")},
                                          {"SYSTEM", property("kernel")},
                                          {"MACHINE", property("machine")},
                                          {"CPUS", property("cpus")},
                                          {"PWD", property("working_directory")},
                                          {"LAUNCH_UNIX_NS", property("started_unix_ns")},
                                          {"EXIT_CODE", property("exit_code")},
                                          {"WALL_SECONDS", property("target_seconds")}}));
  metadata.set("settings", std::move(chosen));
  metadata.set("environment", std::move(environment));
  metadata.set("output", JsonValue::list_of(written));
  return JsonValue::object({{"rocprofiler-systems", JsonValue::object({{"metadata", std::move(metadata)}})}}).text() +
         "\n";
}

// Writes the tables of one process; `name(component, ending)` gives a file's path.
template <typename Name>
Status write_tables(const trace::Trace& trace, const Request& request, const Plan& plan,
                    const format::timemory::Options& options, Name name, std::vector<std::string>& written) {
  std::vector<format::timemory::Component> components;
  if (plan.profile) {
    TACHO_ASSIGN(const auto wall, format::timemory::wall_clock(trace, options));
    for (const std::string& component : plan.components)
      components.push_back(component == "wall_clock" ? wall : format::timemory::trip_count(wall));
    if (plan.sampling) {
      TACHO_ASSIGN(auto sampled, format::timemory::sampled(trace, options));
      for (auto& component : sampled) components.push_back(std::move(component));
    }
  }
  for (const auto& component : components) {
    const std::string text = format::timemory::to_text(component, options);
    if (request.settings.on("COUT_OUTPUT")) report::put(text, report::Stream::kError);
    if (!request.settings.on("FILE_OUTPUT")) continue;
    if (request.settings.on("TEXT_OUTPUT")) TACHO_TRY(write_text(name(component.name, ".txt"), text, written));
    if (request.settings.on("JSON_OUTPUT"))
      TACHO_TRY(write_text(name(component.name, ".json"), format::timemory::to_json(component, options), written));
  }
  return {};
}

Status write_folder_files(const trace::Trace& trace, Request& request, Plan& plan, const launch::RunResult& result) {
  const Settings& settings = request.settings;
  std::vector<int64_t> processes = processes_with_records(trace, plan.exports);
  int64_t main_row = 0;
  for (int64_t row = 1; row < trace.rows(Table::kProcess); ++row)
    if (trace.cell(Table::kProcess, row, column::Process::pid) == result.pid) main_row = row;
  if (main_row != 0 && std::find(processes.begin(), processes.end(), main_row) == processes.end())
    processes.insert(processes.begin(), main_row);
  if (processes.empty()) processes = {0};
  const bool combine = settings.on("COLLAPSE_PROCESSES") || settings.on("PERFETTO_COMBINE_TRACES");
  const format::Writer* perfetto = nullptr;
  const format::Writer* rocpd = nullptr;
  for (const format::Writer& writer : format::writers()) {
    if (writer.name == "pftrace") perfetto = &writer;
    if (writer.name == "rocpd") rocpd = &writer;
  }
  const auto of_process = [&](int64_t row) {
    const int64_t pid = row != 0 ? trace.cell(Table::kProcess, row, column::Process::pid) : result.pid;
    std::string number = std::to_string(pid > 0 ? pid : result.pid);
    if (const int64_t rank = trace.cell(Table::kProcess, row, column::Process::rank);
        row != 0 && rank != event::kUnknown)
      number = std::to_string(rank);
    else if (const JobRank job = job_rank(); row == 0 && job.known())
      number = std::to_string(job.rank);
    return number;
  };
  std::set<std::string> given;  // the names of this run's files
  const auto path_of = [&](int64_t row, const std::string& name, const std::string& ending) {
    std::string file = plan.prefix + name;
    if (settings.on("USE_PID")) file += "-" + of_process(row);
    // Two processes may share a name: without numbers, as images of one process (exec), or within one rank.
    const std::string wanted = (fs::path(plan.folder) / (file + ending)).string();
    std::string path = wanted;
    std::error_code ignored;
    if (!settings.on("USE_PID") && fs::exists(path, ignored)) path = free_name(path);
    for (int i = 1; !given.insert(path).second; ++i)
      path = (fs::path(plan.folder) / fmt::format("{}.{}{}", file, i, ending)).string();
    return path;
  };
  // Splits "perfetto-trace.proto" into name and ending.
  const fs::path trace_file(settings.text("PERFETTO_FILE"));
  std::vector<std::string> all;
  bool combined = false;
  for (const int64_t row : processes) {
    std::vector<std::string> written;
    if (plan.trace && !(combine && combined)) {
      format::ExportOptions options = plan.exports;
      options.process = combine ? 0 : row;
      format::ExportTarget target;
      target.file = path_of(combine ? main_row : row, trace_file.stem().string(), trace_file.extension().string());
      TACHO_TRY(perfetto->write(trace, target, options, written));
    }
    if (plan.rocpd && rocpd != nullptr && !(combine && combined)) {
      format::ExportOptions options = plan.exports;
      options.process = combine ? 0 : row;
      format::ExportTarget target;
      target.file = path_of(combine ? main_row : row, "rocpd", ".db");
      TACHO_TRY(rocpd->write(trace, target, options, written));
    }
    combined = true;
    format::timemory::Options tables = plan.tables;
    tables.process = row;
    tables.name = fs::path(request.command[0]).filename().string();
    TACHO_TRY(write_tables(
        trace, request, plan, tables,
        [&](const std::string& name, const char* ending) { return path_of(row, name, ending); }, written));
    TACHO_TRY(write_text(path_of(row, "metadata", ".json"), metadata_json(trace, request, row, written), written));
    for (const std::string& path : written)
      say(request, fmt::format("[rocprof-sys][{}] Outputting '{}'... Done", of_process(row), path));
    all.insert(all.end(), written.begin(), written.end());
  }
  if (plan.rocpd && rocpd == nullptr)
    request.remarks.push_back(
        "ROCPROFSYS_USE_ROCPD: this build writes no rocpd databases; tacho export lists its formats");
  {
    const std::string path = path_of(main_row, "tacho", ".tacho");
    std::error_code error;
    fs::rename(plan.launch.recording.output, path, error);
    if (error == std::errc::cross_device_link) {
      fs::copy_file(plan.launch.recording.output, path, error);
      if (!error) fs::remove(plan.launch.recording.output, error);
    }
    if (error) return fail("{}: {}; the recording is kept in {}", path, error.message(), plan.launch.recording.output);
    say(request, fmt::format("[rocprof-sys][{}] Outputting '{}'... Done", of_process(main_row), path));
    if (trace.rows(Table::kSample) > 0)
      say(request,
          fmt::format("[rocprof-sys][{}] Call stacks: tacho stats {} --by line (function, stack), or tacho flame",
                      of_process(main_row), path));
  }
  return {};
}

// rocprof-sys: a folder; while the program runs it, or ROCPROFSYS_TMPDIR, also holds the recording.
Status choose_folder(const Request& request, Plan& plan) {
  const Settings& settings = request.settings;
  std::string folder = expand(settings.text("OUTPUT_PATH"), request);
  plan.prefix = expand(settings.text("OUTPUT_PREFIX"), request);
  if (settings.on("TIME_OUTPUT")) folder = (fs::path(folder) / expand("%launch_time%", request)).string();
  plan.folder = settings.on("TIME_OUTPUT") ? free_folder(folder) : folder;
  TACHO_TRY(create_folders(plan.folder));
  const std::string meanwhile = settings.text("TMPDIR");
  std::error_code ignored;
  if (!meanwhile.empty() && !fs::is_directory(meanwhile, ignored))
    return fail("ROCPROFSYS_TMPDIR={}: there is no such folder", meanwhile);
  launch::Recording& recording = plan.launch.recording;
  recording.output =
      (fs::path(meanwhile.empty() ? plan.folder : meanwhile) / fmt::format(".tacho-{}.tacho", getpid())).string();
  recording.writer.overwrite = true;
  return {};
}

// tacho: only the .tacho file.
Status choose_file(const Request& request, Plan& plan) {
  launch::Recording& recording = plan.launch.recording;
  const std::string base = run_name(request.command);
  std::string name = of_rank(request.output.empty() ? base + ".tacho" : request.output);
  if (const format::Writer* const writer = writer_of_ending(name); writer != nullptr) {
    TACHO_TRY(format::check_recording(*writer, false, recording.target.sampler != event::Sampler::kOff));
    plan.also_by = writer;
    plan.also = {name, "", fs::path(name).parent_path().string(), ""};
    if (writer->folder) {
      plan.also.prefix = without_ending(fs::path(name).filename().string());
    } else {
      TACHO_TRY(may_write(name, request.overwrite));
      plan.also.file = name;
    }
    name = without_ending(name) + ".tacho";
  }
  if (!request.output.empty() || request.overwrite) {
    TACHO_ASSIGN(plan.claim, OutputClaim::exactly(name, request.overwrite));
  } else {
    TACHO_ASSIGN(plan.claim, OutputClaim::numbered(name));
  }
  recording.output = plan.claim.name();
  recording.writer.overwrite = request.overwrite;
  return {};
}

bool write_folder(const trace::Trace& trace, Request& request, Plan& plan, const launch::RunResult& outcome) {
  const Settings& settings = request.settings;
  const Status done = write_folder_files(trace, request, plan, outcome);
  if (!done) complain(kOwnError, done.error().message);
  const Usage usage = children_usage();
  const std::string unit = settings.text("MEMORY_UNITS");
  const double factor = unit == "B" ? 1 : unit == "KB" ? 1e3 : unit == "GB" ? 1e9 : 1e6;
  say(request,
      fmt::format("[rocprof-sys][{}] rocprof-sys/process/{} : {:.6f} sec wall_clock, {:.3f} {} "
                  "peak_rss, {:.6f} sec cpu_clock, {:.1f} % cpu_util [laps: 1]",
                  outcome.pid, outcome.pid, outcome.seconds, usage.peak_bytes / factor, factor == 1e6 ? "MB" : unit,
                  usage.cpu_s, outcome.seconds > 0 ? 100 * usage.cpu_s / outcome.seconds : 0));
  if (!talks(request)) return done.has_value();
  for (const std::string& remark : request.remarks) complain(0, remark);
  for (const std::string& loss : analysis::loss_sentences(trace)) complain(0, loss);
  for (const std::string& warning : outcome.warnings) complain(0, warning);
  return done.has_value();
}

Status write_beside(const trace::Trace& trace, const Request& request, const Plan& plan,
                    std::vector<std::string>& written) {
  const fs::path base = fs::path(plan.launch.recording.output);
  const auto beside = [&](const std::string& ending) {
    return (base.parent_path() / (base.stem().string() + ending)).string();
  };
  if (plan.trace) {
    std::string path = beside(".pftrace");
    if (!request.overwrite) path = free_name(path);
    for (const format::Writer& writer : format::writers())
      if (writer.name == "pftrace") TACHO_TRY(writer.write(trace, {path, "", ""}, plan.exports, written));
  }
  if (plan.also_by != nullptr && plan.also_by->stacks && trace.rows(Table::kSample) == 0) {
    complain(kOk, fmt::format("no call stack was sampled, so there is no {}", plan.also.file));
  } else if (plan.also_by != nullptr) {
    std::vector<std::string> remarks;
    format::ExportOptions options = plan.exports;
    options.overwrite = request.overwrite;
    options.statistics = true;
    options.remarks = &remarks;
    TACHO_TRY(export_trace(trace, *plan.also_by, plan.also, options, written));
    for (const std::string& remark : remarks) complain(kOk, remark);
  }
  if (!plan.profile) return {};
  for (const int64_t row : processes_with_records(trace, plan.exports)) {
    format::timemory::Options tables = plan.tables;
    tables.process = row;
    const int64_t pid = trace.cell(Table::kProcess, row, column::Process::pid);
    TACHO_TRY(write_tables(
        trace, request, plan, tables,
        [&](const std::string& name, const char* ending) { return beside(fmt::format("-{}-{}{}", name, pid, ending)); },
        written));
  }
  return {};
}

}  // namespace

bool talks(const Request& request) {
  return request.settings.number("VERBOSE") >= 0;
}

Status choose_outputs(const Request& request, Plan& plan) {
  return request.face == Face::kRocprofSys ? choose_folder(request, plan) : choose_file(request, plan);
}

bool write_outputs(const trace::Trace& trace, Request& request, Plan& plan, const launch::RunResult& outcome) {
  if (request.face == Face::kRocprofSys) return write_folder(trace, request, plan, outcome);
  SummaryOptions options;
  options.kept = true;
  const Status done = write_beside(trace, request, plan, options.written);
  if (!done)
    complain(kOwnError,
             fmt::format("{}; the recording is kept in {}", done.error().message, plan.launch.recording.output));
  if (request.quiet || !talks(request)) return done.has_value();
  const std::string text = summary_of_run(trace, options, request.ranks);
  report::put(text, report::Stream::kError);
  return done.has_value();
}

}  // namespace tacho::cli::sys
