// rocprofv3's command line on top of tacho's tracing: what its options mean here, the runs and the files.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "analysis/stats.h"
#include "attach/target.h"
#include "base/files/name_claim.h"
#include "cli/command.h"
#include "cli/files/export_trace.h"
#include "cli/files/writer_names.h"
#include "cli/personalities/rocprofv3/counters.h"
#include "cli/personalities/rocprofv3/options.h"
#include "cli/personalities/rocprofv3/output.h"
#include "cli/personalities/rocprofv3/running.h"
#include "cli/personalities/rocprofv3/summary.h"
#include "cli/personalities/rocprofv3/without_effect.h"
#include "cli/shared/devices.h"
#include "cli/shared/regular_expression.h"
#include "cli/shared/suggest.h"
#include "counter/kept_input.h"
#include "launch/environment.h"
#include "launch/launcher.h"
#include "report/output.h"
#include "report/value.h"
#include "walk/names/names.h"

namespace tacho::cli {

int run_avail(int argc, char** argv);

namespace rocprofv3 {
namespace {

namespace fs = std::filesystem;
using report::JsonValue;
namespace column = event::column;
using event::Domain;
using event::Table;

constexpr uint64_t bit(Table table) {
  return 1ull << static_cast<unsigned>(table);
}
constexpr uint64_t bit(Domain domain) {
  return 1ull << static_cast<unsigned>(domain);
}

enum Level { kFatal, kError, kWarning, kInfo, kTrace };

// One run of the program.
struct Plan {
  launch::LaunchOptions launch;
  format::ExportOptions options;
  std::vector<const format::Writer*> writers;
  std::string directory, file, pass;
  std::string attempt;  // distinguishes a restarted job's files from those of earlier attempts; empty = no need
  SummaryRequest summary;
  std::string summary_output = "stderr";
  bool summarize = false, write_config = false, traces = false;
  bool one_of_several = false;  // runs of the program
  Level level = kWarning;
  std::optional<AttachPlan> attach;      // for --pid, which starts no program
  std::optional<CounterPlan> counters;   // for --pmc, which replaces tracing
  std::optional<SamplingPlan> sampling;  // for --pc-sampling-..., which do, too
  std::shared_ptr<const counter::SampledRun> sampled;
  std::string keep_trace;
  std::vector<std::string> remarks;  // for the user, printed before the start
  // Options that the user gave one by one, and what they should have recorded.
  struct Expected {
    std::string option, what;
    uint64_t tables, domains;
  };
  std::vector<Expected> expected;
};

void say(const Plan& plan, Level level, std::string_view text) {
  if (level <= plan.level) complain(0, text);
}

// Sources

struct Source {
  const char* option;
  const char* what;  // "no HIP call was made"
  uint64_t tables, domains, sources;
  bool runtime, system;  // belongs to --runtime-trace, --sys-trace
  const char* parent;    // the option that stands for several
};
constexpr uint64_t kApi = tape::source_bit::kApi;
constexpr Source kSources[] = {
    {"hip-runtime-trace", "no HIP call was made", bit(Table::kApi), bit(Domain::kHipRuntime), kApi, true, true,
     "hip-trace"},
    {"hip-compiler-trace", "no HIP compiler call was made", bit(Table::kApi), bit(Domain::kHipCompiler), kApi, false,
     true, "hip-trace"},
    {"opencl-trace", "no OpenCL call was made", bit(Table::kApi), bit(Domain::kOpenCL), kApi, true, true, nullptr},
    {"cuda-trace", "no CUDA call was made", bit(Table::kApi), bit(Domain::kCudaRuntime) | bit(Domain::kCudaDriver),
     kApi, true, true, nullptr},
    {"hsa-core-trace", "no HSA call was made", bit(Table::kApi), bit(Domain::kHsa), kApi, false, true, "hsa-trace"},
    {"hsa-amd-trace", "no HSA call was made", bit(Table::kApi), bit(Domain::kHsa), kApi, false, true, "hsa-trace"},
    {"hsa-image-trace", "no HSA call was made", bit(Table::kApi), bit(Domain::kHsa), kApi, false, true, "hsa-trace"},
    {"hsa-finalizer-trace", "no HSA call was made", bit(Table::kApi), bit(Domain::kHsa), kApi, false, true,
     "hsa-trace"},
    {"rccl-trace", "no RCCL call was made", bit(Table::kApi), bit(Domain::kRccl), kApi, true, true, nullptr},
    {"marker-trace", "the program set no marker", bit(Table::kMarker), 0, tape::source_bit::kMarker, true, true,
     nullptr},
    // The calls tell which thread launched (column Thread_Id); tacho writes their own rows only if the user asked for
    // them.
    {"kernel-trace", "no kernel ran", bit(Table::kDispatch), 0, tape::source_bit::kDispatch | kApi, true, true,
     nullptr},
    {"memory-copy-trace", "nothing was copied", bit(Table::kCopy) | bit(Table::kFill), 0, tape::source_bit::kCopy, true,
     true, nullptr},
    {"memory-allocation-trace", "no device memory was allocated", bit(Table::kAllocation), 0,
     tape::source_bit::kAllocation, true, true, nullptr},
};
void choose_sources(const Given& given, Plan& plan) {
  uint64_t tables = 0, domains = 0, sources = 0;
  const bool runtime = given.on("runtime-trace"), system = given.on("sys-trace"), kokkos = given.on("kokkos-trace");
  for (const Source& source : kSources) {
    auto wanted = given.flag(source.option);
    std::string named = source.option;
    if (!wanted && source.parent != nullptr) {
      wanted = given.flag(source.parent);
      named = source.parent;
    }
    if (wanted == true) {
      const auto known = std::find_if(plan.expected.begin(), plan.expected.end(),
                                      [&](const auto& expected) { return expected.option == named; });
      if (known == plan.expected.end())
        plan.expected.push_back({named, source.what, source.tables, source.domains});
      else
        known->domains |= source.domains;
    }
    if (!wanted)
      wanted = (runtime && source.runtime) || (system && source.system) ||
               (kokkos && source.option == std::string_view("marker-trace"));
    if (!*wanted) continue;
    tables |= source.tables;
    domains |= source.domains;
    sources |= source.sources;
  }
  if (runtime || system)
    for (const Domain domain :
         {Domain::kUnknown, Domain::kMarker, Domain::kPython, Domain::kMpi, Domain::kHost, Domain::kOperator})
      domains |= bit(domain);
  if (system) {
    tables |= bit(Table::kSync) | bit(Table::kOverhead) | bit(Table::kReading) | bit(Table::kSample);
    sources |= tape::source_bit::kSync | tape::source_bit::kOverhead;
  }
  plan.traces = sources != 0;
  plan.options.kernel_rename = given.flag("kernel-rename").value_or(kokkos);
  if (plan.options.kernel_rename && (tables & bit(Table::kDispatch)) != 0) sources |= tape::source_bit::kMarker;
  plan.options.tables = tables;
  plan.options.domains = domains;
  plan.launch.recording.sources = sources;
  plan.launch.recording.target.hsa_calls = (domains & bit(Domain::kHsa)) != 0;
  if (kokkos)
    plan.remarks.push_back("--kokkos-trace: tacho brings no Kokkos tool library; kernels are "
                           "named after the markers that the program sets");
}

// Numbers and lists in options

Result<double> positive(const std::string& text, std::string_view option, std::string_view whole) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < 0)
    return fail("--{} '{}': '{}' is not a number from 0", option, whole, text);
  return value;
}

Status choose_periods(const Given& given, Plan& plan) {
  const std::string unit = given.value("collection-period-unit", "sec");
  const double seconds = unit == "hour"   ? 3600
                         : unit == "min"  ? 60
                         : unit == "sec"  ? 1
                         : unit == "msec" ? 1e-3
                         : unit == "usec" ? 1e-6
                                          : 1e-9;
  if (given.has("collection-period-unit") && !given.has("collection-period"))
    return fail("--collection-period-unit is given without --collection-period");
  for (const std::string& text : given.list("collection-period")) {
    std::vector<std::string> parts;
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(':', begin), text.size());
      parts.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    if (parts.size() != 3) return fail("--collection-period '{}' is not delay:duration:repeat, as in 5:10:0", text);
    TACHO_ASSIGN(const double delay, positive(parts[0], "collection-period", text));
    TACHO_ASSIGN(const double duration, positive(parts[1], "collection-period", text));
    uint64_t repeat = 0;
    const auto [end, error] = std::from_chars(parts[2].data(), parts[2].data() + parts[2].size(), repeat);
    if (error != std::errc() || end != parts[2].data() + parts[2].size())
      return fail("--collection-period '{}': the repeat is not a whole number", text);
    if (duration == 0) return fail("--collection-period '{}': the duration is 0, so nothing would be recorded", text);
    plan.launch.recording.periods.push_back({delay * seconds, duration * seconds, repeat});
  }
  return {};
}

Status check_iterations(const Given& given) {
  TACHO_ASSIGN(const RegularExpression list,
               RegularExpression::make(R"(\[?[1-9][0-9]*(-[1-9][0-9]*)?\]?(,\[?[1-9][0-9]*(-[1-9][0-9]*)?\]?)*)"));
  for (const std::string& range : given.list("kernel-iteration-range"))
    if (!list.matches(range))
      return fail("--kernel-iteration-range '{}' is not a list like [1-2],[5] (counted from 1)", range);
  for (const char* option : {"kernel-include-regex", "kernel-exclude-regex"}) {
    if (!given.has(option)) continue;
    if (const auto pattern = RegularExpression::make(given.value(option)); !pattern)
      return fail("--{} '{}': {}", option, given.value(option), pattern.error().message);
  }
  return {};
}

Status choose_formats(const Given& given, Plan& plan) {
  std::vector<std::string> names = given.list("output-format");
  if (names.empty()) names = {"csv"};
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) {
    if (name == "otf2") return fail("--output-format otf2: tacho writes no OTF2; pftrace streams traces of any size");
    // rocprofv3's json is not Chrome's.
    const auto writer = writer_of(name == "json" ? "rocprofv3" : name);
    if (!writer) return fail("--output-format: {}", writer.error().message);
    plan.writers.push_back(*writer);
  }
  if (given.on("stats") && std::find(names.begin(), names.end(), "csv") == names.end())
    plan.remarks.push_back(fmt::format("--stats writes its files with --output-format csv alone; {} has none of them",
                                       fmt::join(names, " and ")));
  return {};
}

// Runs that count or take PC samples record kernels alone.
void restrict_tables(Plan& plan) {
  if (plan.counters) {
    if (plan.traces) {
      const uint64_t also = plan.options.tables & ~(bit(Table::kDispatch) | bit(Table::kCounterValue));
      if (also != 0)
        plan.remarks.push_back(
            "--pmc: counters are collected in runs of their own, in which only kernels are recorded; for the other "
            "records run again without --pmc");
    } else {
      plan.options.tables = 0;
    }
    plan.options.tables = (plan.options.tables & bit(Table::kDispatch)) | bit(Table::kCounterValue);
    plan.traces = true;
    plan.expected.clear();
  }
  if (plan.sampling) {
    if (plan.traces && (plan.options.tables & ~bit(Table::kDispatch)) != 0)
      plan.remarks.push_back("--pc-sampling-method: in a run that takes PC samples only kernels are recorded; for the "
                             "other records run again without it");
    plan.options.tables = bit(Table::kDispatch);
    plan.traces = true;
    plan.expected.clear();
  }
}

Status choose_export(const Given& given, Plan& plan) {
  plan.options.mangled = given.on("mangled-kernels");
  plan.options.truncate = given.on("truncate-kernels");
  if (plan.options.mangled && plan.options.truncate)
    return fail("--mangled-kernels and --truncate-kernels contradict each other: choose one");
  plan.options.statistics = given.on("stats");
  plan.options.extra_columns = given.on("extra-columns");
  plan.options.group_by_queue = given.on("group-by-queue");
  const std::string index = given.value("agent-index", "relative");
  plan.options.agent_index = index == "absolute"   ? walk::AgentIndex::kAbsolute
                             : index == "relative" ? walk::AgentIndex::kRelative
                                                   : walk::AgentIndex::kTypeRelative;
  if (given.has("minimum-output-data")) {
    TACHO_ASSIGN(const double kilobytes, positive(given.value("minimum-output-data"), "minimum-output-data",
                                                  given.value("minimum-output-data")));
    plan.options.minimum_bytes = static_cast<uint64_t>(kilobytes * 1024);
  }
  plan.options.overwrite = given.on("overwrite");
  plan.options.gpu_model = false;  // as rocprofv3 writes it
  return {};
}

std::string_view from_environment(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr ? value : "";
}

Status choose_outputs(const Given& given, Plan& plan) {
  plan.summary.all = given.on("summary");
  plan.summary.per_domain = given.on("summary-per-domain");
  plan.summary.groups = given.list("summary-groups");
  TACHO_TRY(check_groups(plan.summary.groups));
  plan.summary.unit = given.value("summary-units", "nsec");
  plan.summary_output = given.value("summary-output-file", "stderr");
  plan.summarize = plan.summary.all || plan.summary.per_domain || !plan.summary.groups.empty();
  plan.write_config = given.on("output-config");
  plan.keep_trace = given.value("keep-trace");
  // As under rocprofv3, variables stand for options that are not given.
  plan.directory = given.value("output-directory", from_environment("ROCPROF_OUTPUT_PATH"));
  plan.file = given.value("output-file", from_environment("ROCPROF_OUTPUT_FILE_NAME"));
  for (const char* option : {"output-directory", "output-file", "summary-output-file"})
    if (given.has(option) && given.value(option).empty()) return fail("--{} is empty", option);

  if (!plan.traces) {
    for (const char* option : {"stats", "summary", "summary-per-domain", "summary-groups", "output-config"})
      if (given.has(option) && (option == std::string_view("summary-groups") || given.on(option)))
        return fail("--{} has nothing to show: no tracing option is on; add --kernel-trace or --sys-trace", option);
  }
  return {};
}

Result<Plan> make_plan(const InputJob& job, const std::vector<std::string>& command) {
  const Given& given = job.given;
  Plan plan;
  plan.launch.command = command;
  const std::string level = given.value("log-level", "warning");
  plan.level = level == "fatal"   ? kFatal
               : level == "error" ? kError
               : level == "info"  ? kInfo
               : level == "trace" ? kTrace
                                  : kWarning;
  TACHO_ASSIGN(plan.attach, plan_attach(job, !command.empty()));
  if (plan.attach) plan.launch.command = attach::command_of(plan.attach->pid);
  if (plan.attach && plan.launch.command.empty()) plan.launch.command = {fmt::format("process-{}", plan.attach->pid)};
  TACHO_TRY(check_iterations(given));
  TACHO_ASSIGN(plan.sampling, plan_sampling(given));
  TACHO_ASSIGN(plan.counters, plan_counters(job));
  choose_sources(given, plan);
  restrict_tables(plan);
  TACHO_TRY(choose_formats(given, plan));
  TACHO_TRY(choose_periods(given, plan));
  plan.launch.recording.start_paused = given.on("selected-regions");
  plan.launch.recording.paused_option = "--selected-regions";
  plan.launch.recording.resume_calls = "no roctxProfilerResume()";
  if (plan.launch.recording.start_paused && !plan.launch.recording.periods.empty())
    return fail("--selected-regions and --collection-period both say when to record: choose one");

  TACHO_TRY(choose_export(given, plan));
  plan.pass = job.folder;
  TACHO_TRY(choose_outputs(given, plan));
  TACHO_ASSIGN(std::vector<std::string> remarks, options_without_effect(job));
  std::move(remarks.begin(), remarks.end(), std::back_inserter(plan.remarks));
  if (plan.counters && !plan.counters->plan.unavailable.empty())
    plan.remarks.push_back(fmt::format("--pmc: {} has no {}, which the files will lack",
                                       plan.counters->chosen.device.name,
                                       fmt::join(plan.counters->plan.unavailable, ", ")));
  return plan;
}

// Before the start: what can be known now must not fail after hours

Status check_writable(const std::string& folder) {
  const std::string shown = folder.empty() ? "." : folder;
  if (!folder.empty()) TACHO_TRY(create_folders(folder));
  if (access(shown.c_str(), W_OK | X_OK) != 0) return fail("cannot write into {}: {}", shown, strerror(errno));
  return {};
}

bool ours(const std::string& name) {
  for (const char* ending : {".csv", ".json", ".pftrace", ".db", ".txt"})
    if (name.ends_with(ending)) return true;
  return false;
}

// True if files with this prefix exist.
bool taken(const OutputPlace& place) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(place.folder.empty() ? "." : place.folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(place.prefix + "_") && ours(name)) return true;
  }
  return false;
}

// Where a process's files should go. Ranks of one job never share a name.
OutputPlace wanted_place(const Plan& plan, const PlaceholderFacts& facts) {
  OutputPlace place = place_of(plan.directory, plan.file, plan.pass, facts);
  if (!plan.directory.empty() || !plan.file.empty()) {
    const std::string text = plan.directory + "/" + (plan.file.empty() ? "%hostname%/%pid%" : plan.file);
    if (const int64_t rank = missing_rank(text, facts); rank >= 0) place.prefix += fmt::format("_{}", rank);
  }
  place.prefix += plan.attempt;
  return place;
}

Result<std::string> prepare_outputs(Plan& plan) {
  const PlaceholderFacts facts = facts_before_start(plan.launch.command);
  std::string folder;  // for the recording while it grows
  if (plan.directory.empty() && plan.file.empty()) {
    folder = plan.pass;
    TACHO_TRY(check_writable(folder));
  } else {
    const std::string file = plan.file.empty() ? "%hostname%/%pid%" : plan.file;
    if (!differs_by_process(plan.directory)) folder = (fs::path(expanded(plan.directory, facts)) / plan.pass).string();
    TACHO_TRY(check_writable(folder));
    if (!differs_by_process(plan.directory) && !differs_by_process(file)) {
      const OutputPlace place = wanted_place(plan, facts);
      TACHO_TRY(check_writable(place.folder));
      // The files are from the same job before it was requeued, so this attempt gets a number.
      OutputPlace again = place;
      for (int attempt = restarts(); attempt > 0 && !plan.options.overwrite && taken(again); ++attempt) {
        plan.attempt = fmt::format(".{}", attempt);
        again.prefix = place.prefix + plan.attempt;
      }
      if (!plan.attempt.empty())
        plan.remarks.push_back(fmt::format("{}_* exists in {}: those of this restart are called {}_*", place.prefix,
                                           place.folder.empty() ? "." : place.folder, again.prefix));
      if (!plan.options.overwrite && taken(again))
        return fail(
            "{}_* exists in {}; pass --overwrite to replace it, or give another -o or -d (%pid% in it makes it unique)",
            place.prefix, place.folder.empty() ? "." : place.folder);
    }
  }
  if (plan.summarize && plan.summary_output != "stderr" && plan.summary_output != "stdout" &&
      plan.summary_output.find('/') != std::string::npos)
    return fail("--summary-output-file {}: a name without a folder; it goes beside the other files as <prefix>_{}.txt",
                plan.summary_output, plan.summary_output.substr(plan.summary_output.rfind('/') + 1));
  if (const char* temporary = std::getenv("ROCPROF_TMPDIR"); temporary != nullptr && *temporary != '\0') {
    folder = temporary;
    TACHO_TRY(check_writable(folder));
  }
  if (!plan.keep_trace.empty()) {
    std::error_code ignored;
    if (!plan.options.overwrite && fs::exists(plan.keep_trace, ignored))
      return fail("--keep-trace {} exists; give another name, or --overwrite", plan.keep_trace);
    return plan.keep_trace;
  }
  return (fs::path(folder) / fmt::format(".rocprofv3-{}-{}-{}.tacho", facts.host, getpid(),
                                         static_cast<uint64_t>(time(nullptr))))
      .string();  // several machines may share the folder
}

// After the run: files and tables

std::string config_text(const Given& given, const Plan& plan) {
  JsonValue options = JsonValue::object({}), formats = JsonValue::list(), records = JsonValue::list();
  for (const auto& [name, words] : given.all()) {
    const OptionKind kind = find_option(name)->kind;
    options.set(name, kind == OptionKind::kFlag    ? JsonValue(words.front() == "1")
                      : kind == OptionKind::kValue ? JsonValue(words.front())
                                                   : JsonValue::list_of(words));
  }
  for (const format::Writer* writer : plan.writers) formats.add(std::string_view(writer->name));
  for (const Source& source : kSources)
    if ((plan.options.tables & source.tables) == source.tables &&
        (plan.options.domains & source.domains) == source.domains)
      records.add(source.option);
  return JsonValue::object({{"producer", fmt::format("tacho {}", TACHO_PROGRAM_VERSION)},
                            {"command", JsonValue::list_of(plan.launch.command)},
                            {"options", std::move(options)},
                            {"output_formats", std::move(formats)},
                            {"records", std::move(records)}})
             .text() +
         "\n";
}

Status write_text(const std::string& path, std::string_view text, bool overwrite) {
  TACHO_ASSIGN(OutputFile file, OutputFile::create(path, overwrite));
  file.write(text);
  return file.commit();
}

// Finds a prefix that no file has and no other process is about to use, so that no record is lost to a clash: first the
// wanted one, then with the pid, then with numbers. The claim holds it until the files exist.
NameClaim claim_prefix(OutputPlace& place, int64_t pid, bool overwrite, bool as_wanted) {
  const std::string wanted = place.prefix;
  for (int i = as_wanted ? -1 : 0;; ++i) {
    place.prefix = i < 0    ? wanted
                   : i == 0 ? fmt::format("{}_{}", wanted, pid)
                            : fmt::format("{}_{}.{}", wanted, pid, i);
    if (!overwrite && taken(place)) continue;
    NameClaim claim(place.folder, place.prefix);
    if (claim.held() && (overwrite || !taken(place))) return claim;
  }
}

Status write_outputs(const trace::Trace& trace, const Given& given, Plan& plan) {
  const auto processes = processes_with_records(trace, plan.options);
  for (const int64_t process : processes) {
    const PlaceholderFacts facts = facts_of(trace, process, plan.launch.command);
    OutputPlace place = wanted_place(plan, facts);
    if (!place.folder.empty()) TACHO_TRY(create_folders(place.folder));
    const std::string wanted = place.prefix;
    // A later process of this run must not replace the files of the first one.
    const bool as_wanted =
        !plan.options.overwrite || process == processes.front() || differs_by_process(plan.directory + plan.file);
    const NameClaim claim = claim_prefix(place, facts.pid, plan.options.overwrite, as_wanted);
    if (place.prefix != wanted && !plan.options.overwrite)
      say(plan, kWarning,
          fmt::format("files {}_* exist: those of process {} are called {}_*", wanted, facts.pid, place.prefix));
    plan.options.process = process;
    plan.options.owners = false;  // the files are rocprofv3's
    std::vector<std::string> written;
    if (plan.sampled && process == processes.front()) {
      const auto writes = [&](std::string_view name) {
        return std::any_of(plan.writers.begin(), plan.writers.end(),
                           [&](const format::Writer* each) { return each->name == name; });
      };
      TACHO_TRY(counter::write_sampled_run(*plan.sampled, (fs::path(place.folder) / place.prefix).string(),
                                           {.samples = writes("csv"), .json = writes("rocprofv3")},
                                           plan.options.overwrite));
      if (processes.size() > 1)
        say(plan, kWarning, fmt::format("the PC samples of all processes are in the files {}_*", place.prefix));
    }
    for (const format::Writer* writer : plan.writers) {
      if (plan.sampled && writer->name == "rocprofv3") continue;  // written with the samples
      format::ExportTarget target;
      target.folder = place.folder;
      target.prefix = place.prefix;
      const bool named = writer->extension.starts_with("_results");
      const std::string name = fmt::format("{}{}{}", place.prefix, named ? "" : "_results", writer->extension);
      target.file = (fs::path(place.folder) / name).string();
      report::Progress progress(fmt::format("writing {} of process {}", writer->name, facts.pid));
      plan.options.progress = &progress;
      const Status done = writer->write(trace, target, plan.options, written);
      plan.options.progress = nullptr;
      TACHO_TRY(done);
    }
    if (plan.options.minimum_bytes > 0) {
      // The size of a single file is known only once it exists.
      std::erase_if(written, [&](const std::string& path) {
        std::error_code ignored;
        return !path.ends_with(".csv") && fs::file_size(path, ignored) < plan.options.minimum_bytes &&
               fs::remove(path, ignored);
      });
    }
    if (plan.write_config) {
      const std::string path = (fs::path(place.folder) / (place.prefix + "_config.json")).string();
      TACHO_TRY(write_text(path, config_text(given, plan), plan.options.overwrite));
      written.push_back(path);
    }
    if (plan.summarize) {
      std::vector<std::string> unmatched;
      plan.summary.indented = plan.summary_output == "stdout" || plan.summary_output == "stderr";
      TACHO_ASSIGN(std::string text, summary_tables(trace, plan.summary, plan.options, unmatched));
      for (const std::string& group : unmatched)
        say(plan, kWarning, fmt::format("--summary-groups '{}' matches no domain that has records", group));
      if (processes.size() > 1) text = fmt::format("Process {}\n\n", facts.pid) + text;
      if (plan.summary.indented) {
        report::put(text, plan.summary_output == "stdout" ? report::Stream::kOut : report::Stream::kError);
        report::flush_output();
      } else {
        const std::string path =
            (fs::path(place.folder) / fmt::format("{}_{}.txt", place.prefix, plan.summary_output)).string();
        TACHO_TRY(write_text(path, text, plan.options.overwrite));
        written.push_back(path);
      }
    }
    for (const std::string& path : written) say(plan, kInfo, fmt::format("wrote {}", path));
  }
  if (processes.empty() && plan.traces)
    say(plan, kWarning, "nothing that the options ask for was recorded, so no file is written");
  return {};
}

// Says which records none of the chosen formats holds: waits, which rocprofv3 has no word for.
void tell_left_out(const trace::Trace& trace, const Plan& plan) {
  if (plan.writers.empty() || !plan.keep_trace.empty()) return;
  std::string names;
  format::Writer all = *plan.writers.front();
  for (const format::Writer* writer : plan.writers) {
    all.holds |= writer->holds;
    names += fmt::format("{}{}", names.empty() ? "" : " ", writer->name == "rocprofv3" ? "json" : writer->name);
  }
  all.name = names;
  walk::EventFilter filter = plan.options;
  filter.process = 0;
  if (const std::string sentence = format::left_out(all, trace, filter); !sentence.empty())
    say(plan, kInfo, sentence + " (--keep-trace FILE)");
}

// Prints one line about options that the user gave one by one and that found nothing.
void tell_missing(const trace::Trace& trace, const Plan& plan) {
  std::string missing;
  for (const Plan::Expected& expected : plan.expected) {
    format::ExportOptions only;
    only.tables = expected.tables;
    if (expected.domains != 0) only.domains = expected.domains;
    if (processes_with_records(trace, only).empty())
      missing += fmt::format("{}--{} ({})", missing.empty() ? "" : ", ", expected.option, expected.what);
  }
  if (!missing.empty()) say(plan, kWarning, fmt::format("nothing recorded for {}", missing));
}

// Runs the program and records it. One of several runs reads the same standard input as the others.
tl::expected<launch::RunResult, launch::LaunchError> record(Plan& plan) {
  if (plan.attach)
    return record_running(*plan.attach, plan.launch.recording,
                          [&](std::string_view sentence) { say(plan, kWarning, sentence); });
  if (!plan.one_of_several) return launch::run(plan.launch);
  counter::InputOfRun input;
  TACHO_TRY(input.begin());
  launch::LaunchOptions options = plan.launch;
  options.started = [&input](const std::string&) { input.started(); };
  return launch::run(options);
}

int run_plan(const Given& given, Plan& plan) {
  if (plan.level >= kInfo || given.value("log-level") == "config")
    complain(0, fmt::format("configuration: {}", config_text(given, plan)));
  if (given.value("log-level") == "env")
    for (const auto& [name, value] : launch::recorded_environment())
      complain(0, fmt::format("environment: {}={}", name, value));
  const auto say_remarks = [&] {
    for (const std::string& remark : plan.remarks) say(plan, kWarning, remark);
    plan.remarks.clear();
  };
  say_remarks();
  if (!plan.traces) {
    if (plan.attach)
      return complain(kOwnError, fmt::format("no tracing option is given: nothing of process {} would be recorded; add "
                                             "--kernel-trace or --sys-trace",
                                             plan.attach->pid));
    // Like rocprofv3: without a tracing option there is no profile, and the program runs as it is.
    say(plan, kWarning, "no tracing option is given: the program runs unrecorded; add --kernel-trace or --sys-trace");
    const auto executable = launch::find_executable(plan.launch.command[0]);
    if (!executable) return complain(executable.error().exit_code, executable.error().message);
    std::vector<char*> words;
    for (std::string& word : plan.launch.command) words.push_back(word.data());
    words.push_back(nullptr);
    execv(executable->c_str(), words.data());
    return complain(kNotExecutable, fmt::format("{}: {}", *executable, strerror(errno)));
  }
  const auto recording = prepare_outputs(plan);
  if (!recording) return complain(kOwnError, recording.error().message);
  say_remarks();
  plan.launch.recording.output = *recording;
  plan.launch.recording.writer.overwrite = plan.options.overwrite;
  plan.launch.recording.writer.durable = !plan.keep_trace.empty();
  int exit_code = kOk;
  bool began = true;
  if (plan.sampling) {
    const auto sampled = collect_samples(*plan.sampling, plan.launch.command, plan.launch.recording.output,
                                         [&](std::string_view sentence) { say(plan, kWarning, sentence); });
    if (!sampled) return complain(sampled.error().exit_code, sampled.error().message);
    std::tie(plan.sampled, exit_code) = *sampled;
  } else if (plan.counters) {
    const auto counted = collect_counters(*plan.counters, plan.launch.command, plan.launch.recording.output,
                                          [&](std::string_view sentence) { say(plan, kWarning, sentence); });
    if (!counted) return complain(counted.error().exit_code, counted.error().message);
    exit_code = *counted;
  } else {
    const auto outcome = record(plan);
    if (!outcome) return complain(outcome.error().exit_code, outcome.error().message);
    for (const std::string& warning : outcome->warnings) say(plan, kWarning, warning);
    if (!outcome->written) complain(0, outcome->written.error().message);
    began = outcome->began;
    exit_code = outcome->written ? outcome->exit_code : static_cast<int>(kOwnError);
  }
  ignore_output_signals();
  const auto trace = trace::Trace::open(plan.launch.recording.output);
  if (!trace) return complain(kOwnError, trace.error().message);
  if (const Status done = write_outputs(**trace, given, plan); !done)
    return complain(kOwnError, fmt::format("{}; the recording is kept in {} (tacho export writes it anew)",
                                           done.error().message, plan.launch.recording.output));
  // A warning has said why nothing was recorded.
  if (began) tell_missing(**trace, plan);
  tell_left_out(**trace, plan);
  for (const std::string& sentence : analysis::loss_sentences(**trace)) say(plan, kWarning, sentence);
  if (plan.keep_trace.empty()) unlink(plan.launch.recording.output.c_str());
  return exit_code;
}

// --profile-mpi-ranks 0-3,8: does it include this rank?
Result<bool> rank_selected(const std::string& text) {
  const PlaceholderFacts facts = facts_before_start({});
  bool selected = false;
  for (const std::string& part : words_of(text)) {
    int64_t first = 0, last = 0;
    const char* const end = part.data() + part.size();
    auto [at, error] = std::from_chars(part.data(), end, first);
    last = first;
    if (error == std::errc() && at != end && *at == '-') {
      const auto second = std::from_chars(at + 1, end, last);
      at = second.ptr;
      error = second.ec;
    }
    if (error != std::errc() || at != end || last < first)
      return fail("--profile-mpi-ranks '{}' is not a list of ranks like 0-3,8", text);
    selected |= facts.job.known() && facts.job.rank >= first && facts.job.rank <= last;
  }
  return selected || !facts.job.known();
}

// --mpi-world-rank-variable and its twin: passed on under the names that upstream uses, which base/job_rank.cpp reads
// here and in the program.
Status choose_rank_variables(const Given& given) {
  constexpr std::pair<const char*, const char*> kNames[] = {{"mpi-world-rank-variable", "ROCPROF_MPI_RANK_VAR"},
                                                            {"mpi-world-size-variable", "ROCPROF_MPI_SIZE_VAR"}};
  if (given.has(kNames[0].first) != given.has(kNames[1].first))
    return fail("--{} and --{} belong together: give both", kNames[0].first, kNames[1].first);
  for (const auto& [option, variable] : kNames)
    if (given.has(option)) setenv(variable, given.value(option).c_str(), 1);
  return {};
}

int run(int argc, char** argv) {
  auto line = parse_command_line(argc, argv);
  if (!line) return complain(kOwnError, line.error().message);
  if (line->help) {
    report::print("{}", help_text());
    return kOk;
  }
  if (line->version) {
    report::print("rocprofv3 (tacho {})\n", TACHO_PROGRAM_VERSION);
    return kOk;
  }
  if (line->given.on("list-avail")) {
    char name[] = "avail";
    char* words[] = {name, nullptr};
    run_avail(1, words);
    report::print("\nCounters\n{}", available_counters());
    return kOk;
  }
  auto jobs = jobs_of(*line);
  if (!jobs) return complain(kOwnError, jobs.error().message);
  const bool attaches = std::any_of(jobs->begin(), jobs->end(), is_about_attaching);
  if (line->command.empty() && !attaches)
    return complain(kOwnError, "no program to run; write it after --, as in: rocprofv3 --sys-trace -- ./app");
  if (line->given.on("echo")) {
    for (const std::string& word : line->command) report::print("{} ", word);
    report::print("\n");
    return kOk;
  }
  // Checks every job before running the first one.
  std::vector<std::pair<Given, Plan>> plans;
  for (const InputJob& job : *jobs) {
    const Given& given = job.given;
    if (const Status chosen = choose_rank_variables(given); !chosen) return complain(kOwnError, chosen.error().message);
    auto plan = make_plan(job, line->command);
    if (!plan) return complain(kOwnError, plan.error().message);
    if (const std::string ranks = given.value("profile-mpi-ranks", from_environment("ROCPROF_MPI_RANKS"));
        !ranks.empty()) {
      const auto selected = rank_selected(ranks);
      if (!selected) return complain(kOwnError, selected.error().message);
      if (!*selected) {
        plan->traces = false;
        plan->level = kError;  // thousands of ranks must not all print it
      }
    }
    plans.emplace_back(given, std::move(*plan));
  }
  if (line->given.has("preload") ||
      std::any_of(plans.begin(), plans.end(), [](const auto& plan) { return plan.first.has("preload"); })) {
    std::string libraries;
    for (const std::string& library : plans.front().first.list("preload")) libraries += library + ":";
    const char* const before = std::getenv("LD_PRELOAD");
    libraries += before != nullptr ? before : "";
    while (!libraries.empty() && libraries.back() == ':') libraries.pop_back();
    setenv("LD_PRELOAD", libraries.c_str(), 1);
  }
  int code = kOk;
  for (auto& [given, plan] : plans) {
    plan.one_of_several = plans.size() > 1;
    code = run_plan(given, plan);
    if (code != kOk) break;
  }
  return code;
}

}  // namespace
}  // namespace rocprofv3

int personality_rocprofv3(int argc, char** argv) {
  return rocprofv3::run(argc, argv);
}

}  // namespace tacho::cli
