// The table of settings, and how their values combine (settings.h).
#include "cli/sys/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>

#include "base/format.h"
#include "cli/shared/suggest.h"

extern char** environ;

namespace tacho::cli::sys {
namespace {

using enum SettingKind;
constexpr SettingUse kUsed = SettingUse::kUsed, kNo = SettingUse::kUnsupported;

constexpr Setting kSettings[] = {
    // what is recorded
    {"ENABLED", kBool, "true", "core", kUsed, false, "record at all; off: the program just runs"},
    {"MODE", kText, "trace", "core", kUsed, true, "preset: trace, or sampling (call stacks on)"},
    {"TRACE", kBool, "true", "core perfetto", kUsed, false, "write a Perfetto trace"},
    {"PROFILE", kBool, "false", "core timemory", kUsed, false,
     "write tables of calls (text and JSON); default: the opposite of TRACE"},
    {"USE_SAMPLING", kBool, "false", "core sampling", kUsed, false, "call stacks of the host"},
    {"USE_PROCESS_SAMPLING", kBool, "true", "core process_sampling", kUsed, false,
     "telemetry of the machine, the processes and GPUs"},
    {"USE_ROCM", kBool, "true", "core rocm", kUsed, false, "API calls and kernels of GPU runtimes (CUDA, OpenCL)"},
    {"USE_AMD_SMI", kBool, "true", "core amd_smi", kUsed, false, "telemetry of GPUs through AMD SMI, ROCm SMI or NVML"},
    {"USE_ROCPD", kBool, "false", "core rocpd io", kUsed, false, "write a rocpd database"},
    {"ROCM_DOMAINS", kText, "hip_runtime_api,marker_api,kernel_dispatch,memory_copy,scratch_memory", "rocm", kUsed,
     false,
     "what of the GPU runtimes: hip_runtime_api (any runtime's calls), hsa_api, marker_api, kernel_dispatch, "
     "memory_copy, memory_allocation, scratch_memory"},
    {"ROCM_GROUP_BY_QUEUE", kBool, "false", "rocm perfetto", kUsed, false,
     "lines of the trace are queues, not streams"},
    {"ENABLE_CATEGORIES", kText, "", "core perfetto", kUsed, true,
     "only these categories (rocprof-sys-avail --list-categories)"},
    {"DISABLE_CATEGORIES", kText, "", "core perfetto", kUsed, true, "not these categories"},
    // when
    {"TRACE_DELAY", kReal, "0", "perfetto timing", kUsed, false, "seconds before recording starts"},
    {"TRACE_DURATION", kReal, "0", "perfetto timing", kUsed, false, "seconds of recording; 0 = to the end"},
    {"TRACE_PERIODS", kText, "", "perfetto timing", kUsed, false,
     "DELAY:DURATION[:REPEAT[:CLOCK]] separated by spaces or semicolons"},
    {"TRACE_PERIOD_CLOCK_ID", kText, "CLOCK_REALTIME", "perfetto timing", kUsed, false,
     "clock of the three above: realtime, monotonic or boottime (CPU clocks are refused)"},
    // call stacks
    {"SAMPLING_FREQ", kReal, "300", "sampling", kUsed, false, "samples a second and thread"},
    {"SAMPLING_CPUTIME", kBool, "false", "sampling", kUsed, true, "sample by CPU time"},
    {"SAMPLING_REALTIME", kBool, "false", "sampling", kUsed, true, "sample by wall time, threads that wait too"},
    {"SAMPLING_CPUTIME_FREQ", kReal, "-1", "sampling", kUsed, true,
     "samples a second of CPU time; <= 0: SAMPLING_FREQ"},
    {"SAMPLING_REALTIME_FREQ", kReal, "-1", "sampling", kUsed, true,
     "samples a second of wall time; <= 0: SAMPLING_FREQ"},
    {"SAMPLING_DELAY", kReal, "0.5", "sampling timing", kUsed, false, "seconds before the first sample"},
    {"SAMPLING_CPUTIME_DELAY", kReal, "-1", "sampling timing", kUsed, true,
     "the same by CPU time; <= 0: SAMPLING_DELAY"},
    {"SAMPLING_REALTIME_DELAY", kReal, "-1", "sampling timing", kUsed, true,
     "the same by wall time; <= 0: SAMPLING_DELAY"},
    {"SAMPLING_DURATION", kReal, "0", "sampling timing", kUsed, false, "seconds of sampling; 0 = to the end"},
    {"SAMPLING_TIDS", kText, "", "sampling", kUsed, true, "only these threads by number (main = 0); empty = all"},
    {"SAMPLING_CPUTIME_TIDS", kText, "", "sampling", kUsed, true, "the same by CPU time"},
    {"SAMPLING_REALTIME_TIDS", kText, "", "sampling", kUsed, true, "the same by wall time"},
    {"SAMPLING_KEEP_INTERNAL", kBool, "true", "sampling", kNo, true,
     "keep the profiler's own frames; tacho never has them in its stacks"},
    {"SAMPLING_INCLUDE_INLINES", kBool, "false", "sampling", kNo, true, "own entries for inlined functions"},
    {"SAMPLING_ALLOCATOR_SIZE", kInteger, "8", "sampling", kNo, true,
     "threads served by one background allocator; tacho has none"},
    {"SAMPLING_OVERFLOW", kBool, "false", "sampling", kNo, true, "sampling by hardware events"},
    {"SAMPLING_OVERFLOW_FREQ", kReal, "-1", "sampling", kNo, true, "events between two samples"},
    {"SAMPLING_OVERFLOW_TIDS", kText, "", "sampling", kNo, true, "threads sampled by hardware events"},
    {"SAMPLING_OVERFLOW_EVENT", kText, "perf::PERF_COUNT_HW_CACHE_REFERENCES", "sampling", kNo, false, "the event"},
    {"SAMPLING_CPUTIME_SIGNAL", kInteger, "27", "sampling", kNo, true,
     "tacho takes a real-time signal that the program does not use"},
    {"SAMPLING_REALTIME_SIGNAL", kInteger, "34", "sampling", kNo, true, "likewise"},
    {"SAMPLING_OVERFLOW_SIGNAL", kInteger, "35", "sampling", kNo, true, "likewise"},
    // telemetry
    {"CPU_FREQ_ENABLED", kBool, "false", "process_sampling", kUsed, false,
     "telemetry of the machine and the processes: frequency, memory, faults, context switches, CPU time"},
    {"PROCESS_SAMPLING_FREQ", kReal, "0", "process_sampling", kUsed, false,
     "telemetry readings a second; 0 = SAMPLING_FREQ, at most 50"},
    {"PROCESS_SAMPLING_DURATION", kReal, "-1", "process_sampling timing", kUsed, false,
     "seconds of telemetry; < 0: SAMPLING_DURATION"},
    {"SAMPLING_CPUS", kText, "none", "process_sampling", kUsed, false,
     "cores whose frequency and use are read (0,2-4), all, none"},
    {"SAMPLING_GPUS", kText, "all", "process_sampling", kUsed, false, "GPUs that are read (0,2-4), all, none"},
    {"AMD_SMI_METRICS", kText, "busy, temp, power, mem_usage", "amd_smi", kUsed, false,
     "busy, temp, power, mem_usage; tacho's: clock, pcie, link, energy; empty = all, none"},
    // Perfetto
    {"PERFETTO_FILE", kText, "perfetto-trace.proto", "perfetto io", kUsed, true, "name of the trace file"},
    {"PERFETTO_ANNOTATIONS", kBool, "true", "perfetto", kUsed, true, "arguments of events"},
    {"PERFETTO_COMBINE_TRACES", kBool, "false", "perfetto", kUsed, true, "one trace for all processes"},
    {"PERFETTO_BUFFER_SIZE_KB", kInteger, "1024000", "perfetto", kUsed, false,
     "size of the ring with FILL_POLICY ring_buffer; with discard, if set, the most that is recorded"},
    {"PERFETTO_FILL_POLICY", kText, "discard", "perfetto", kUsed, false,
     "discard (fill): drop new events once the buffer is full; ring_buffer: drop the oldest"},
    {"PERFETTO_BACKEND", kText, "inprocess", "perfetto", kNo, false, "system tracing daemon"},
    {"PERFETTO_SHMEM_SIZE_HINT_KB", kInteger, "4096", "perfetto", kNo, true,
     "shared memory of Perfetto's SDK; tacho does not use it"},
    // tables
    {"TIMEMORY_COMPONENTS", kText, "wall_clock", "timemory", kUsed, false, "wall_clock, trip_count"},
    {"FLAT_PROFILE", kBool, "false", "timemory", kUsed, false, "tables without the hierarchy of calls"},
    {"TIMELINE_PROFILE", kBool, "false", "timemory", kUsed, false, "one line per call instead of one per place"},
    {"COLLAPSE_THREADS", kBool, "false", "timemory", kUsed, false, "adds threads up"},
    {"COLLAPSE_PROCESSES", kBool, "false", "timemory", kUsed, false, "adds processes up"},
    {"MAX_DEPTH", kInteger, "65535", "timemory", kUsed, false, "levels of the hierarchy"},
    {"MAX_WIDTH", kInteger, "120", "timemory", kUsed, false, "characters of a label; 0 = all"},
    {"PRECISION", kInteger, "-1", "timemory", kUsed, false, "digits after the point; -1 = 6"},
    {"TIMING_PRECISION", kInteger, "-1", "timemory", kUsed, true, "the same for times"},
    {"TIMING_UNITS", kText, "sec", "timemory", kUsed, false, "sec, msec, usec, nsec, min"},
    {"MEMORY_UNITS", kText, "MB", "timemory", kUsed, false, "B, KB, MB, GB (of the line at the end)"},
    {"TIMING_SCIENTIFIC", kBool, "false", "timemory", kUsed, true, "times as 1.2e-03"},
    {"TEXT_OUTPUT", kBool, "true", "timemory io", kUsed, false, "tables as .txt"},
    {"JSON_OUTPUT", kBool, "true", "timemory io", kUsed, false, "tables as .json"},
    {"COUT_OUTPUT", kBool, "false", "timemory io", kUsed, false, "tables on standard error at the end"},
    {"FILE_OUTPUT", kBool, "true", "timemory io", kUsed, false, "write files of tables"},
    {"DIFF_OUTPUT", kBool, "false", "timemory io", kNo, false,
     "differences to an earlier run; tacho diff and tacho flame -b compare"},
    {"TREE_OUTPUT", kBool, "true", "timemory io", kUsed, false, "the hierarchical form in JSON beside the flat one"},
    {"INPUT_PATH", kText, "", "timemory io", kNo, false, "earlier run for DIFF_OUTPUT"},
    {"INPUT_PREFIX", kText, "", "timemory io", kNo, false, "likewise"},
    {"INPUT_EXTENSIONS", kText, "json,xml", "timemory io", kNo, true, "likewise"},
    // names of files
    {"OUTPUT_PATH", kText, "rocprof-sys-%tag%-output", "io filename", kUsed, false,
     "folder; %tag%, %pid%, %env{X}% ... are replaced"},
    {"OUTPUT_PREFIX", kText, "", "io filename", kUsed, false, "beginning of every file's name"},
    {"TIME_OUTPUT", kBool, "true", "io filename", kUsed, false, "a folder named after the time of the launch"},
    {"TIME_FORMAT", kText, "%F_%H.%M", "io filename", kUsed, false, "its form, as in strftime"},
    {"USE_PID", kBool, "true", "io filename", kUsed, false, "the process's number (or rank) in every file's name"},
    {"TMPDIR", kText, "", "io filename", kUsed, true,
     "where the recording lies while the program runs; empty = the output folder"},
    // behaviour
    {"VERBOSE", kInteger, "0", "core debug", kUsed, false, "how much is said; -1 = nothing"},
    {"DEBUG", kBool, "false", "core debug", kUsed, false, "say everything"},
    {"MONOCHROME", kBool, "false", "core debug", kUsed, true, "no colours (tacho never writes any)"},
    {"CONFIG_FILE", kText, "", "core", kUsed, false, "config files, separated by spaces or semicolons"},
    {"STRICT_CONFIG", kBool, "true", "core", kUsed, true, "unknown keys in config files are errors"},
    {"SUPPRESS_CONFIG", kBool, "false", "core", kUsed, true, "do not read ~/.rocprof-sys.cfg"},
    {"SUPPRESS_PARSING", kBool, "false", "core", kUsed, true, "read no config file at all"},
    {"ENABLE_SIGNAL_HANDLER", kBool, "true", "core", kNo, true,
     "tacho installs none: a program that dies leaves its trace all the same"},
    {"CI", kBool, "false", "core debug", kNo, true, "self-checks of rocprof-sys"},
    {"DL_VERBOSE", kInteger, "0", "core debug", kNo, true, "messages of the preloaded library"},
    {"NUM_THREADS_HINT", kInteger, "1", "core", kNo, true, "threads to expect; tacho needs no hint"},
    {"THREAD_POOL_SIZE", kInteger, "2", "core", kNo, true, "background threads in the program; tacho has none there"},
    {"USE_TEMPORARY_FILES", kBool, "true", "io", kNo, true, "tacho always records to disk while the program runs"},
    {"CPU_AFFINITY", kBool, "false", "core", kNo, true, "pin threads"},
    // what tacho does not record
    {"USE_CAUSAL", kBool, "false", "causal", kNo, false, "causal profiling"},
    {"USE_KOKKOSP", kBool, "false", "kokkos", kNo, false, "Kokkos Tools"},
    {"USE_MPIP", kBool, "true", "mpi", kNo, false, "MPI calls"},
    {"USE_RCCLP", kBool, "false", "rccl", kNo, false, "RCCL calls through wrappers"},
    {"USE_OMPT", kBool, "false", "ompt", kNo, false, "OpenMP regions"},
    {"USE_CODE_COVERAGE", kBool, "false", "coverage", kNo, true, "code coverage"},
    {"KOKKOSP_KERNEL_LOGGER", kBool, "false", "kokkos", kNo, true, "log Kokkos kernels"},
    {"KOKKOSP_NAME_LENGTH_MAX", kInteger, "0", "kokkos", kNo, true, "longest Kokkos name"},
    {"KOKKOSP_PREFIX", kText, "", "kokkos", kNo, true, "prefix of Kokkos labels"},
    {"KOKKOSP_DEEP_COPY", kBool, "false", "kokkos", kNo, true, "Kokkos deep copies"},
    {"TRACE_THREAD_LOCKS", kBool, "false", "pthread", kNo, true, "mutex calls"},
    {"TRACE_THREAD_RW_LOCKS", kBool, "false", "pthread", kNo, true, "rwlock calls"},
    {"TRACE_THREAD_SPIN_LOCKS", kBool, "false", "pthread", kNo, true, "spin lock calls"},
    {"TRACE_THREAD_BARRIERS", kBool, "true", "pthread", kNo, true, "barrier calls"},
    {"TRACE_THREAD_JOIN", kBool, "true", "pthread", kNo, true, "pthread_join"},
    {"ROCM_EVENTS", kText, "", "rocm", kNo, false, "hardware counters; rocprof-compute and tacho profile collect them"},
    {"PAPI_EVENTS", kText, "", "papi", kUsed, false,
     "CPU counters read at samples and launching calls: perf:: names, perf list's, PAPI presets"},
    {"PAPI_FAIL_ON_ERROR", kBool, "false", "papi", kUsed, true,
     "do not start when this machine cannot count one of them"},
    {"PAPI_QUIET", kBool, "false", "papi", kUsed, true, "do not say that it cannot"},
    {"PAPI_MULTIPLEXING", kBool, "false", "papi", kNo, true, "the kernel does so by itself"},
    {"PAPI_OVERFLOW", kInteger, "0", "papi", kNo, true, "samples by CPU counters"},
    {"PAPI_THREADING", kBool, "true", "papi", kNo, true, "counters are always those of each thread"},
    {"NETWORK_INTERFACE", kText, "", "network", kNo, false, "network counters"},
    {"CAUSAL_BACKEND", kText, "auto", "causal", kNo, false, "causal profiling"},
    {"CAUSAL_MODE", kText, "function", "causal", kNo, false, "causal profiling"},
    {"CAUSAL_DELAY", kReal, "0", "causal", kNo, false, "causal profiling"},
    {"CAUSAL_DURATION", kReal, "0", "causal", kNo, false, "causal profiling"},
    {"CAUSAL_END_TO_END", kBool, "false", "causal", kNo, true, "causal profiling"},
    {"CAUSAL_FILE", kText, "experiments", "causal", kNo, true, "causal profiling"},
    {"CAUSAL_FILE_RESET", kBool, "false", "causal", kNo, true, "causal profiling"},
    {"CAUSAL_RANDOM_SEED", kInteger, "0", "causal", kNo, false, "causal profiling"},
    {"CAUSAL_FIXED_SPEEDUP", kText, "", "causal", kNo, true, "causal profiling"},
    {"CAUSAL_BINARY_SCOPE", kText, "%MAIN%", "causal", kNo, false, "causal profiling"},
    {"CAUSAL_SOURCE_SCOPE", kText, "", "causal", kNo, false, "causal profiling"},
    {"CAUSAL_FUNCTION_SCOPE", kText, "", "causal", kNo, false, "causal profiling"},
    {"CAUSAL_BINARY_EXCLUDE", kText, "", "causal", kNo, false, "causal profiling"},
    {"CAUSAL_SOURCE_EXCLUDE", kText, "", "causal", kNo, false, "causal profiling"},
    {"CAUSAL_FUNCTION_EXCLUDE", kText, "", "causal", kNo, false, "causal profiling"},
    {"CAUSAL_FUNCTION_EXCLUDE_DEFAULTS", kBool, "true", "causal", kNo, true, "causal profiling"},
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t' || text.front() == '\r')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return out;
}

std::optional<bool> boolean(std::string_view text) {
  const std::string word = upper(text);
  for (const char* yes : {"TRUE", "ON", "YES", "Y", "T", "1"})
    if (word == yes) return true;
  for (const char* no : {"FALSE", "OFF", "NO", "N", "F", "0"})
    if (word == no) return false;
  return std::nullopt;
}

std::optional<double> real(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

std::span<const Setting> settings() {
  return kSettings;
}

const Setting* find_setting(std::string_view name) {
  std::string key = upper(name);
  if (key.starts_with(kPrefix)) key.erase(0, kPrefix.size());
  for (const Setting& setting : kSettings)
    if (setting.name == key) return &setting;
  return nullptr;
}

Result<std::set<int>> parse_ranges(std::string_view list, std::string_view what) {
  std::set<int> numbers;
  std::string text(list);
  std::replace(text.begin(), text.end(), ' ', ',');
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    int first = 0, last = 0;
    const char* const stop = word.data() + word.size();
    auto [after, error] = std::from_chars(word.data(), stop, first);
    last = first;
    bool good = error == std::errc() && first >= 0;
    if (good && after != stop) {
      const auto [end_of_last, bad] = std::from_chars(after + 1, stop, last);
      good = *after == '-' && bad == std::errc() && end_of_last == stop && last >= first;
    }
    if (!good || last > 100'000) return fail("{}: '{}' is not a list of numbers such as 0,1,5-8", what, word);
    for (int number = first; number <= last; ++number) numbers.insert(number);
  }
  return numbers;
}

Status Settings::set(const Setting& setting, std::string_view value, Origin origin, std::string_view where) {
  const std::string text(trimmed(value));
  switch (setting.kind) {
    case kBool:
      if (!boolean(text)) return fail("{}: '{}' is neither true nor false", where, text);
      break;
    case kInteger:
      if (const auto number = real(text); !number || *number != std::floor(*number))
        return fail("{}: '{}' is not a whole number", where, text);
      break;
    case kReal:
      if (!real(text)) return fail("{}: '{}' is not a number", where, text);
      break;
    case kText:
      break;
  }
  Value& known = values_[std::string(setting.name)];
  if (origin < known.origin) return {};
  known = {text, origin};
  return {};
}

void Settings::preset(std::string_view name, std::string_view value, Origin origin) {
  if (const Setting* const setting = find_setting(name)) static_cast<void>(set(*setting, value, origin, name));
}

void Settings::preset_own() {
  preset("SAMPLING_FREQ", "100", Origin::kDefault);
  preset("SAMPLING_DELAY", "0", Origin::kDefault);
  preset("PROCESS_SAMPLING_FREQ", "10", Origin::kDefault);
}

std::string Settings::text(std::string_view name) const {
  if (const auto at = values_.find(name); at != values_.end()) return at->second.text;
  const Setting* const setting = find_setting(name);
  return setting != nullptr ? std::string(setting->fallback) : std::string();
}
bool Settings::on(std::string_view name) const {
  return boolean(text(name)).value_or(false);
}
double Settings::number(std::string_view name) const {
  return real(text(name)).value_or(0);
}
Origin Settings::origin(std::string_view name) const {
  const auto at = values_.find(name);
  return at == values_.end() ? Origin::kDefault : at->second.origin;
}

Status Settings::read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail("{}: config file cannot be read: {}", path, strerror(errno));
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (number == 1 && line.starts_with("{"))
      return fail("{}: JSON config files are not read; write KEY = value lines (rocprof-sys-avail -G FILE makes one)",
                  path);
    if (number > 100'000 || line.size() > 65'536)
      return fail("{}: line {} is too long or the file too large for a config file", path, number);
    std::string_view text = trimmed(line);
    if (const size_t hash = text.find('#'); hash != std::string_view::npos) text = trimmed(text.substr(0, hash));
    if (text.empty()) continue;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) return fail("{}: line {}: '{}' is not KEY = value", path, number, text);
    const std::string_view key = trimmed(text.substr(0, equals));
    std::string value(trimmed(text.substr(equals + 1)));
    for (size_t at = value.find("$env:"); at != std::string::npos; at = value.find("$env:", at)) {
      size_t end = at + 5;
      while (end < value.size() && (std::isalnum(static_cast<unsigned char>(value[end])) != 0 || value[end] == '_'))
        ++end;
      const char* const found = std::getenv(value.substr(at + 5, end - at - 5).c_str());
      const std::string replacement = found != nullptr ? found : "";
      value.replace(at, end - at, replacement);
      at += replacement.size();
    }
    if (key.starts_with("$env:")) {
      program_environment_.emplace_back(key.substr(5), value);
      continue;
    }
    const Setting* const setting = find_setting(key);
    if (setting == nullptr) {
      std::vector<std::string> names;
      for (const Setting& known : kSettings) names.push_back(std::string(kPrefix) + std::string(known.name));
      const std::string best = nearest(upper(key), names);
      std::string sentence = fmt::format("{}: line {}: there is no setting {}{}", path, number, key,
                                         best.empty() ? "" : ", did you mean " + best);
      if (on("STRICT_CONFIG")) return fail("{}; ROCPROFSYS_STRICT_CONFIG=false passes over it", sentence);
      remarks_.push_back(std::move(sentence));
      continue;
    }
    TACHO_TRY(set(*setting, value, Origin::kFile, fmt::format("{}: line {}: {}", path, number, key)));
  }
  return {};
}

Status Settings::read_environment() {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || !text.starts_with(kPrefix)) continue;
    const std::string_view key = text.substr(0, equals);
    const Setting* const setting = find_setting(key);
    if (setting == nullptr) {
      remarks_.push_back(fmt::format("{} is set, but there is no such setting (rocprof-sys-avail lists them)", key));
      continue;
    }
    TACHO_TRY(set(*setting, text.substr(equals + 1), Origin::kEnvironment, key));
  }
  return {};
}

std::vector<std::string> Settings::unsupported() const {
  std::vector<std::string> sentences;
  for (const Setting& setting : kSettings) {
    if (setting.use != kNo) continue;
    const auto at = values_.find(setting.name);
    if (at == values_.end()) continue;
    bool same = at->second.text == setting.fallback;
    if (setting.kind == kBool) same = boolean(at->second.text) == boolean(setting.fallback);
    if (setting.kind == kInteger || setting.kind == kReal) same = real(at->second.text) == real(setting.fallback);
    if (!same)
      sentences.push_back(
          fmt::format("{}{}={} has no effect in tacho: {}", kPrefix, setting.name, at->second.text, setting.text));
  }
  return sentences;
}

std::string default_config(const Settings& values, bool advanced) {
  std::string out =
      "# Settings of rocprof-sys-run and rocprof-sys-sample (tacho sys): KEY = value, '#' begins a comment.\n"
      "# Precedence: this file, then the environment, then options.\n\n";
  for (const Setting& setting : kSettings) {
    if (setting.use != kUsed || (setting.advanced && !advanced) || setting.name == "CONFIG_FILE" ||
        setting.name == "SUPPRESS_CONFIG" || setting.name == "SUPPRESS_PARSING")
      continue;
    out += fmt::format("# {}\n{:<42} = {}\n\n", setting.text, std::string(kPrefix) + std::string(setting.name),
                       values.text(setting.name));
  }
  return out;
}

}  // namespace tacho::cli::sys
