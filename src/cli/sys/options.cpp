// The options of `tacho sys run|sample` and rocprof-sys-run|-sample: table, translation to settings, --help.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cli/files/writer_names.h"
#include "cli/options/option_table.h"
#include "cli/sys/sys.h"

namespace tacho::cli::sys {

namespace fs = std::filesystem;

namespace {

using options::Kind;
using options::Option;

constexpr std::string_view kOptionsHeading = "Options";

constexpr Option kOptions[] = {
    {.name = "help", .short_name = "-h", .kind = Kind::kFlag, .group = kOptionsHeading, .help = "this text"},
    {.name = "config",
     .short_name = "-c",
     .kind = Kind::kList,
     .group = kOptionsHeading,
     .help = "config file(s): KEY = value lines"},
    {.name = "output",
     .short_name = "-o",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "rocprof-sys: PATH [PREFIX] of the output folder; tacho sys: the .tacho file"},
    {.name = "trace",
     .short_name = "-T",
     .kind = Kind::kFlag,
     .group = kOptionsHeading,
     .help = "write a Perfetto trace",
     .sets = "TRACE"},
    {.name = "profile",
     .short_name = "-P",
     .kind = Kind::kFlag,
     .group = kOptionsHeading,
     .help = "write tables of calls",
     .sets = "PROFILE"},
    {.name = "flat-profile",
     .short_name = "-F",
     .kind = Kind::kFlag,
     .group = kOptionsHeading,
     .help = "tables without hierarchy",
     .sets = "FLAT_PROFILE"},
    {.name = "sample",
     .short_name = "-S",
     .kind = Kind::kList,
     .group = kOptionsHeading,
     .help = "call stacks: cputime, realtime"},
    {.name = "host",
     .short_name = "-H",
     .kind = Kind::kFlag,
     .group = kOptionsHeading,
     .help = "telemetry of the machine and the processes"},
    {.name = "device", .short_name = "-D", .kind = Kind::kFlag, .group = kOptionsHeading, .help = "telemetry of GPUs"},
    {.name = "wait",
     .short_name = "-w",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "seconds before anything is recorded"},
    {.name = "duration",
     .short_name = "-d",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "seconds of recording"},
    {.name = "periods",
     .short_name = "",
     .kind = Kind::kList,
     .group = kOptionsHeading,
     .help = "DELAY:DURATION[:REPEAT] ...",
     .sets = "TRACE_PERIODS"},
    {.name = "include",
     .short_name = "-I",
     .kind = Kind::kList,
     .group = kOptionsHeading,
     .help = "switch sources on: all kokkosp mpip mutex-locks ompt rcclp amd-smi rocprofiler-sdk rw-locks spin-locks"},
    {.name = "exclude",
     .short_name = "-E",
     .kind = Kind::kList,
     .group = kOptionsHeading,
     .help = "switch sources off"},
    {.name = "trace-file",
     .short_name = "",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "name of the Perfetto file",
     .sets = "PERFETTO_FILE"},
    {.name = "trace-buffer-size",
     .short_name = "",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "see PERFETTO_BUFFER_SIZE_KB",
     .sets = "PERFETTO_BUFFER_SIZE_KB"},
    {.name = "trace-fill-policy",
     .short_name = "",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "discard, ring_buffer",
     .sets = "PERFETTO_FILL_POLICY"},
    {.name = "trace-wait",
     .short_name = "",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "seconds before recording starts",
     .sets = "TRACE_DELAY"},
    {.name = "trace-duration",
     .short_name = "",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "seconds of recording",
     .sets = "TRACE_DURATION"},
    {.name = "trace-periods",
     .short_name = "",
     .kind = Kind::kList,
     .group = kOptionsHeading,
     .help = "DELAY:DURATION[:REPEAT] ...",
     .sets = "TRACE_PERIODS"},
    {.name = "trace-clock-id",
     .short_name = "",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "clock of the above",
     .sets = "TRACE_PERIOD_CLOCK_ID"},
    {.name = "profile-format",
     .short_name = "",
     .kind = Kind::kList,
     .group = kOptionsHeading,
     .help = "text, json, console"},
    {.name = "profile-diff",
     .short_name = "",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "not supported",
     .sets = "DIFF_OUTPUT"},
    {.name = "process-freq",
     .short_name = "",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "telemetry readings a second",
     .sets = "PROCESS_SAMPLING_FREQ"},
    {.name = "process-wait",
     .short_name = "",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "accepted; telemetry starts with the program"},
    {.name = "process-duration",
     .short_name = "",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "seconds of telemetry",
     .sets = "PROCESS_SAMPLING_DURATION"},
    {.name = "cpus",
     .short_name = "",
     .kind = Kind::kList,
     .group = kOptionsHeading,
     .help = "cores that are read",
     .sets = "SAMPLING_CPUS"},
    {.name = "gpus",
     .short_name = "",
     .kind = Kind::kList,
     .group = kOptionsHeading,
     .help = "GPUs that are read",
     .sets = "SAMPLING_GPUS"},
    {.name = "sampling-freq",
     .short_name = "-f",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "samples a second and thread",
     .sets = "SAMPLING_FREQ"},
    {.name = "freq",
     .short_name = "",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "likewise",
     .sets = "SAMPLING_FREQ"},
    {.name = "sampling-wait",
     .short_name = "",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "seconds before the first sample",
     .sets = "SAMPLING_DELAY"},
    {.name = "sampling-duration",
     .short_name = "",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "seconds of sampling",
     .sets = "SAMPLING_DURATION"},
    {.name = "tids",
     .short_name = "-t",
     .kind = Kind::kList,
     .group = kOptionsHeading,
     .help = "threads that are sampled, by number",
     .sets = "SAMPLING_TIDS"},
    {.name = "sample-cputime",
     .short_name = "",
     .kind = Kind::kList,
     .group = kOptionsHeading,
     .help = "by CPU time: [FREQ [DELAY [THREADS]]]"},
    {.name = "sample-realtime",
     .short_name = "",
     .kind = Kind::kList,
     .group = kOptionsHeading,
     .help = "by wall time: [FREQ [DELAY [THREADS]]]"},
    {.name = "sample-overflow",
     .short_name = "",
     .kind = Kind::kList,
     .group = kOptionsHeading,
     .help = "by hardware events: not supported",
     .sets = "SAMPLING_OVERFLOW"},
    {.name = "cputime", .short_name = "", .kind = Kind::kList, .group = kOptionsHeading, .help = "as --sample-cputime"},
    {.name = "realtime",
     .short_name = "",
     .kind = Kind::kList,
     .group = kOptionsHeading,
     .help = "as --sample-realtime"},
    {.name = "cpu-events",
     .short_name = "-C",
     .kind = Kind::kList,
     .group = kOptionsHeading,
     .help = "CPU counters of samples and launching calls, by their perf, perf:: or PAPI names (sys avail -H)",
     .sets = "PAPI_EVENTS"},
    {.name = "gpu-events",
     .short_name = "-G",
     .kind = Kind::kList,
     .group = kOptionsHeading,
     .help = "GPU counters: see rocprof-compute, tacho profile",
     .sets = "ROCM_EVENTS"},
    {.name = "inlines",
     .short_name = "-i",
     .kind = Kind::kFlag,
     .group = kOptionsHeading,
     .help = "not supported",
     .sets = "SAMPLING_INCLUDE_INLINES"},
    {.name = "hsa-interrupt",
     .short_name = "",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "HSA_ENABLE_INTERRUPT of the program: 0 or 1"},
    {.name = "monochrome",
     .short_name = "",
     .kind = Kind::kFlag,
     .group = kOptionsHeading,
     .help = "no colours",
     .sets = "MONOCHROME"},
    {.name = "debug",
     .short_name = "",
     .kind = Kind::kFlag,
     .group = kOptionsHeading,
     .help = "say everything",
     .sets = "DEBUG"},
    {.name = "verbose",
     .short_name = "-v",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "how much is said; -1 = nothing",
     .sets = "VERBOSE"},
    {.name = "fork",
     .short_name = "",
     .kind = Kind::kFlag,
     .group = kOptionsHeading,
     .help = "accepted; tacho always does"},
    {.name = "sampler",
     .short_name = "",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "tacho: timer (in the program), perf (from outside, native frames only)"},
    {.name = "sample-stack",
     .short_name = "",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "tacho: bytes of stack copied per sample"},
    {.name = "no-launch-stacks",
     .short_name = "",
     .kind = Kind::kFlag,
     .group = kOptionsHeading,
     .help = "tacho: do not read Python's stack at every launch"},
    {.name = "torch-trace",
     .short_name = "",
     .kind = Kind::kFlag,
     .group = kOptionsHeading,
     .help = "tacho sys: PyTorch's operators and modules as ranges"},
    {.name = "ranks",
     .short_name = "",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "tacho: record only these ranks of a parallel job (0,2-3)"},
    {.name = "profile-mpi-ranks",
     .short_name = "",
     .kind = Kind::kValue,
     .group = kOptionsHeading,
     .help = "tacho: the same"},
    {.name = "overwrite",
     .short_name = "",
     .kind = Kind::kFlag,
     .group = kOptionsHeading,
     .help = "tacho sys: replace an existing file"},
    {.name = "quiet",
     .short_name = "-q",
     .kind = Kind::kFlag,
     .group = kOptionsHeading,
     .help = "tacho sys: no summary"},
};

// What -I and -E can name.
constexpr std::pair<std::string_view, std::string_view> kSources[] = {{"kokkosp", "USE_KOKKOSP"},
                                                                      {"mpip", "USE_MPIP"},
                                                                      {"mutex-locks", "TRACE_THREAD_LOCKS"},
                                                                      {"ompt", "USE_OMPT"},
                                                                      {"rcclp", "USE_RCCLP"},
                                                                      {"amd-smi", "USE_AMD_SMI"},
                                                                      {"rocprofiler-sdk", "USE_ROCM"},
                                                                      {"rocprofiler", "USE_ROCM"},
                                                                      {"rw-locks", "TRACE_THREAD_RW_LOCKS"},
                                                                      {"spin-locks", "TRACE_THREAD_SPIN_LOCKS"}};

bool truth_word(std::string_view word) {
  for (const char* known : {"true", "false", "on", "off", "yes", "no"})
    if (word == known) return true;
  return false;
}
bool numeric_word(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789.,-:") == std::string_view::npos && word[0] != '-';
}

class Parser {
 public:
  Parser(Request& request, int argc, char** argv) : request_(request), words_(argv + 1, argv + argc) {
    separator_ = static_cast<size_t>(std::find(words_.begin(), words_.end(), "--") - words_.begin());
  }

  Status run() {
    while (at_ < words_.size()) {
      const std::string word = words_[at_];
      if (word == "--") {
        ++at_;
        break;
      }
      if (word.size() < 2 || word[0] != '-') break;
      ++at_;
      TACHO_TRY(option(word));
    }
    request_.command.assign(words_.begin() + static_cast<ptrdiff_t>(std::min(at_, words_.size())), words_.end());
    return {};
  }

 private:
  Settings& settings() { return request_.settings; }
  Status set(std::string_view name, std::string_view value, std::string_view where) {
    return settings().set(*find_setting(name), value, Origin::kOption, where);
  }

  // The words that belong to a list option: all up to the next option if `--` ends the options anyway, else those that
  // it accepts.
  template <typename Accepts>
  std::vector<std::string> list(Accepts accepts) {
    std::vector<std::string> out;
    while (at_ < words_.size() && words_[at_] != "--" && !words_[at_].empty() &&
           (words_[at_][0] != '-' || numeric_word(words_[at_].substr(1)))) {
      if (words_[at_][0] == '-') break;
      if (!accepts(words_[at_])) break;
      out.push_back(words_[at_++]);
    }
    return out;
  }

  Status option(const std::string& word) {
    std::string name = word, value;
    bool has_value = false;
    if (word.starts_with("--"))
      if (const size_t equals = word.find('='); equals != std::string::npos) {
        name = word.substr(0, equals);
        value = word.substr(equals + 1);
        has_value = true;
      }
    const Option* const found =
        name.starts_with("--") ? options::find(kOptions, name.substr(2)) : options::find_short(kOptions, name);
    if (found == nullptr) {
      // Every setting is also an option.
      const Setting* const setting = name.starts_with("--") ? find_setting(std::string_view(name).substr(2)) : nullptr;
      if (setting == nullptr) return unknown(name);
      if (!has_value) {
        const bool next_is_value =
            at_ < words_.size() &&
            (setting->kind != SettingKind::kBool ? words_[at_] != "--" : truth_word(words_[at_]));
        if (next_is_value)
          value = words_[at_++];
        else if (setting->kind == SettingKind::kBool)
          value = "true";
        else
          return fail("{} wants a value", name);
      }
      return settings().set(*setting, value, Origin::kOption, name);
    }
    switch (found->kind) {
      case Kind::kFlag:
        if (!has_value) {
          value = "true";
          if (at_ < words_.size() && truth_word(words_[at_])) value = words_[at_++];
        }
        return flag(*found, name, value);
      case Kind::kValue:
        if (!has_value) {
          if (at_ >= words_.size() || words_[at_] == "--") return fail("{} wants a value", name);
          value = words_[at_++];
        }
        return single(*found, name, value);
      case Kind::kList:
        break;
    }
    return several(*found, name, has_value, value);
  }

  Status unknown(const std::string& name) {
    return fail("there is no option {}{}; see {} --help", name, options::suggestion(kOptions, name), request_.called);
  }

  Status flag(const Option& option, const std::string& name, const std::string& value) {
    const bool on = value == "true" || value == "on" || value == "yes" || value == "1";
    if (!option.sets.empty()) return set(option.sets, value, name);
    if (option.name == "help") request_.help = true;
    if (option.name == "overwrite") request_.overwrite = on;
    if (option.name == "quiet") request_.quiet = on;
    if (option.name == "torch-trace") request_.torch_trace = on;
    if (option.name == "no-launch-stacks") request_.launch_stacks = !on;
    if (option.name == "host") {
      if (on) TACHO_TRY(set("USE_PROCESS_SAMPLING", "true", name));
      TACHO_TRY(set("CPU_FREQ_ENABLED", value, name));
    }
    if (option.name == "device") {
      if (on) TACHO_TRY(set("USE_PROCESS_SAMPLING", "true", name));
      TACHO_TRY(set("USE_AMD_SMI", value, name));
    }
    return {};
  }

  Status single(const Option& option, const std::string& name, const std::string& value) {
    if (!option.sets.empty()) return set(option.sets, value, name);
    if (option.name == "ranks" || option.name == "profile-mpi-ranks") {
      request_.ranks = value;
      return {};
    }
    if (option.name == "output") {
      if (request_.face == Face::kTacho) {
        request_.output = value;
        return {};
      }
      TACHO_TRY(set("OUTPUT_PATH", value, name));
      // A second word is a prefix only if `--` shows where the command begins.
      if (at_ < words_.size() && separator_ < words_.size() && at_ < separator_ && words_[at_][0] != '-')
        TACHO_TRY(set("OUTPUT_PREFIX", words_[at_++], name));
      return {};
    }
    if (option.name == "wait") {
      TACHO_TRY(set("TRACE_DELAY", value, name));
      return set("SAMPLING_DELAY", value, name);
    }
    if (option.name == "duration") {
      TACHO_TRY(set("TRACE_DURATION", value, name));
      return set("SAMPLING_DURATION", value, name);
    }
    if (option.name == "sampler") {
      if (value != "timer" && value != "perf") return fail("--sampler {}: choose timer or perf", value);
      request_.sampler = value == "perf" ? event::Sampler::kPerf : event::Sampler::kTimer;
    }
    if (option.name == "sample-stack") {
      char* end = nullptr;
      const unsigned long bytes = std::strtoul(value.c_str(), &end, 10);
      if (*end != '\0' || bytes < 512 || bytes > 57344)
        return fail("--sample-stack {}: from 512 to 57344 bytes", value);
      request_.sample_stack = static_cast<uint32_t>(bytes);
    }
    if (option.name == "hsa-interrupt") {
      if (value != "0" && value != "1") return fail("--hsa-interrupt {}: 0 or 1", value);
      setenv("HSA_ENABLE_INTERRUPT", value.c_str(), 1);
    }
    return {};
  }

  Status several(const Option& option, const std::string& name, bool has_value, const std::string& value) {
    std::vector<std::string> words;
    const auto take = [&](auto accepts) { words = has_value ? words_of(value) : list(accepts); };
    if (option.name == "config") {
      if (has_value)
        words = {value};
      else if (at_ < words_.size() && words_[at_] != "--")
        words.push_back(words_[at_++]);
      // Takes further words only if `--` shows where the command begins.
      while (!has_value && separator_ < words_.size() && at_ < separator_ && words_[at_][0] != '-')
        words.push_back(words_[at_++]);
      if (words.empty()) return fail("{} wants the name of a config file", name);
      request_.config_files.insert(request_.config_files.end(), words.begin(), words.end());
      return {};
    }
    if (option.name == "include" || option.name == "exclude") {
      const bool on = option.name == "include";
      take([](const std::string& word) {
        if (word == "all") return true;
        return std::any_of(std::begin(kSources), std::end(kSources),
                           [&](const auto& source) { return source.first == word; });
      });
      if (words.empty()) {
        std::string all = "all";
        for (const auto& [source, setting] : kSources) all += " " + std::string(source);
        return fail("{}{}: choose from {}", name, at_ < words_.size() ? " " + words_[at_] : "", all);
      }
      for (const std::string& word : words) {
        bool known = word == "all";
        for (const auto& [source, setting] : kSources) {
          known = known || word == source;
          if (word != "all" && word != source) continue;
          // `all` means all that tacho supports.
          if (word == "all" && find_setting(setting)->use == SettingUse::kUnsupported) continue;
          TACHO_TRY(set(setting, on ? "true" : "false", name));
        }
        if (!known) return fail("{} {}: there is no such source", name, word);
      }
      return {};
    }
    if (option.name == "sample") {
      take([](const std::string& word) { return word == "cputime" || word == "realtime"; });
      TACHO_TRY(set("USE_SAMPLING", "true", name));
      for (const std::string& word : words) {
        if (word != "cputime" && word != "realtime") return fail("{} {}: choose cputime or realtime", name, word);
        TACHO_TRY(set(word == "cputime" ? "SAMPLING_CPUTIME" : "SAMPLING_REALTIME", "true", name));
      }
      return {};
    }
    if (option.name == "sample-cputime" || option.name == "cputime" || option.name == "sample-realtime" ||
        option.name == "realtime") {
      const bool wall = option.name.ends_with("realtime");
      take(numeric_word);
      TACHO_TRY(set("USE_SAMPLING", "true", name));
      TACHO_TRY(set(wall ? "SAMPLING_REALTIME" : "SAMPLING_CPUTIME", "true", name));
      const std::string base = wall ? "SAMPLING_REALTIME_" : "SAMPLING_CPUTIME_";
      if (!words.empty()) TACHO_TRY(set(base + "FREQ", words[0], name));
      if (words.size() > 1) TACHO_TRY(set(base + "DELAY", words[1], name));
      std::string threads;
      for (size_t i = 2; i < words.size(); ++i) threads += (threads.empty() ? "" : ",") + words[i];
      if (!threads.empty()) TACHO_TRY(set(base + "TIDS", threads, name));
      return {};
    }
    if (option.name == "profile-format") {
      take([](const std::string& word) { return word == "text" || word == "json" || word == "console"; });
      if (words.empty()) return fail("{}: choose from text json console", name);
      const auto has = [&](const char* word) { return std::find(words.begin(), words.end(), word) != words.end(); };
      TACHO_TRY(set("PROFILE", "true", name));
      TACHO_TRY(set("TEXT_OUTPUT", has("text") ? "true" : "false", name));
      TACHO_TRY(set("JSON_OUTPUT", has("json") ? "true" : "false", name));
      return set("COUT_OUTPUT", has("console") ? "true" : "false", name);
    }
    // Lists that form one setting.
    const bool numbers =
        option.name == "cpus" || option.name == "gpus" || option.name == "tids" || option.name.ends_with("periods");
    if (numbers)
      take([](const std::string& word) { return numeric_word(word) || word == "all" || word == "none"; });
    else
      take([this](const std::string&) { return separator_ < words_.size(); });
    if (words.empty() && find_setting(option.sets)->kind != SettingKind::kBool) return fail("{} wants a value", name);
    if (find_setting(option.sets)->kind == SettingKind::kBool) return set(option.sets, "true", name);
    std::string joined;
    for (const std::string& word : words)
      joined += (joined.empty() ? "" : option.name.ends_with("periods") ? " " : ",") + word;
    return set(option.sets, joined, name);
  }

  Request& request_;
  std::vector<std::string> words_;
  size_t at_ = 0, separator_ = 0;
};

}  // namespace

std::string help_text(Face face, Verb verb) {
  const bool own = face == Face::kTacho;
  const std::string name = own                  ? verb == Verb::kRun ? "tacho sys run" : "tacho sys sample"
                           : verb == Verb::kRun ? "rocprof-sys-run"
                                                : "rocprof-sys-sample";
  std::string out = fmt::format("Usage: {} [options] [--] command\n\n{}\n\nOptions:\n", name,
                                verb == Verb::kRun ? "Run a program; record its API calls, kernels, markers and, when "
                                                     "asked, call stacks and telemetry."
                                                   : "Run a program; sample its call stacks, native and Python, beside "
                                                     "API calls, kernels and telemetry.");
  for (const Option& option : kOptions) {
    if (own && (option.name == "fork" || option.name == "process-wait")) continue;
    out += options::help_line(option, 26);
  }
  out += fmt::format("\nEvery setting is an option too (--sampling-duration 5); {} lists "
                     "them. Later wins: config file, environment, options.\n",
                     own ? "tacho sys avail -S" : "rocprof-sys-avail -S");
  out += own ? "Writes <command>.tacho; with --trace a .pftrace beside it, with --profile tables of calls.\n"
             : "Writes rocprof-sys-<command>-output/<time>/: perfetto-trace-<pid>.proto, wall_clock-<pid>.txt ...\n";
  out += "Exit code: the program's own (128 + signal); 125 errors of ours, 126 not executable, 127 not found.\n";
  return out;
}

Result<Request> parse(Face face, Verb verb, int argc, char** argv) {
  Request request;
  request.face = face;
  request.verb = verb;
  request.called = face == Face::kTacho ? verb == Verb::kRun ? "tacho sys run" : "tacho sys sample"
                   : verb == Verb::kRun ? "rocprof-sys-run"
                                        : "rocprof-sys-sample";
  if (verb == Verb::kSample) request.settings.preset("USE_SAMPLING", "true");
  if (face == Face::kTacho) {
    request.settings.preset("SAMPLING_FREQ", "100", Origin::kDefault);
    request.settings.preset("SAMPLING_DELAY", "0", Origin::kDefault);
    request.settings.preset("PROCESS_SAMPLING_FREQ", "10", Origin::kDefault);
    if (verb == Verb::kSample) request.settings.preset("CPU_FREQ_ENABLED", "true", Origin::kDefault);
  }
  Parser parser(request, argc, argv);
  TACHO_TRY(parser.run());
  if (request.help) return request;
  TACHO_TRY(request.settings.read_environment());
  if (!request.settings.on("SUPPRESS_PARSING")) {
    std::vector<std::string> files = request.config_files;
    if (files.empty()) {
      std::string list = request.settings.text("CONFIG_FILE");
      for (char& c : list)
        if (c == ' ' || c == ';') c = ',';
      files = words_of(list);
    }
    if (const char* const home = std::getenv("HOME");
        files.empty() && face == Face::kRocprofSys && home != nullptr && !request.settings.on("SUPPRESS_CONFIG")) {
      std::error_code ignored;
      if (const std::string path = std::string(home) + "/.rocprof-sys.cfg"; fs::exists(path, ignored))
        files.push_back(path);
    }
    for (const std::string& file : files) TACHO_TRY(request.settings.read_file(file));
  }
  for (const std::string& remark : request.settings.remarks()) request.remarks.push_back(remark);
  for (const std::string& remark : request.settings.unsupported()) request.remarks.push_back(remark);
  if (request.command.empty()) return fail("no command to run; write it after --, as in: {} -- ./app", request.called);
  return request;
}

}  // namespace tacho::cli::sys
