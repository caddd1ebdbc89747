// The options of `tacho sys run|sample` and rocprof-sys-run|-sample: table, translation to settings, --help.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cli/files/writer_names.h"
#include "cli/options/option_table.h"
#include "cli/options/word_reader.h"
#include "cli/sys/sys.h"

namespace tacho::cli::sys {

namespace fs = std::filesystem;

namespace {

using options::Option;
using options::OptionKind;

using options::Spelling;
using options::Takes;

namespace row {
constexpr Option option(OptionKind kind, std::string_view name, std::string_view short_name, std::string_view help,
                        std::string_view sets) {
  return {.name = name, .short_name = short_name, .kind = kind, .group = "Options", .help = help, .sets = sets};
}
constexpr Option flag(std::string_view name, std::string_view short_name, std::string_view help,
                      std::string_view sets = {}) {
  return option(OptionKind::kFlag, name, short_name, help, sets);
}
constexpr Option value(std::string_view name, std::string_view short_name, std::string_view help,
                       std::string_view sets = {}) {
  return option(OptionKind::kValue, name, short_name, help, sets);
}
constexpr Option list(std::string_view name, std::string_view short_name, std::string_view help,
                      std::string_view sets = {}) {
  return option(OptionKind::kList, name, short_name, help, sets);
}
}  // namespace row

constexpr Option kOptions[] = {
    row::flag("help", "-h", "this text"),
    row::list("config", "-c", "config file(s): KEY = value lines"),
    row::value("output", "-o", "rocprof-sys: PATH [PREFIX] of the output folder; tacho sys: the .tacho file"),
    row::flag("trace", "-T", "write a Perfetto trace", "TRACE"),
    row::flag("profile", "-P", "write tables of calls", "PROFILE"),
    row::flag("flat-profile", "-F", "tables without hierarchy", "FLAT_PROFILE"),
    row::list("sample", "-S", "call stacks: cputime, realtime"),
    row::flag("host", "-H", "telemetry of the machine and the processes"),
    row::flag("device", "-D", "telemetry of GPUs"),
    row::value("wait", "-w", "seconds before anything is recorded"),
    row::value("duration", "-d", "seconds of recording"),
    row::list("periods", "", "DELAY:DURATION[:REPEAT] ...", "TRACE_PERIODS"),
    row::list("include", "-I",
              "switch sources on: all kokkosp mpip mutex-locks ompt rcclp amd-smi rocprofiler-sdk rw-locks spin-locks"),
    row::list("exclude", "-E", "switch sources off"),
    row::value("trace-file", "", "name of the Perfetto file", "PERFETTO_FILE"),
    row::value("trace-buffer-size", "", "see PERFETTO_BUFFER_SIZE_KB", "PERFETTO_BUFFER_SIZE_KB"),
    row::value("trace-fill-policy", "", "discard, ring_buffer", "PERFETTO_FILL_POLICY"),
    row::value("trace-wait", "", "seconds before recording starts", "TRACE_DELAY"),
    row::value("trace-duration", "", "seconds of recording", "TRACE_DURATION"),
    row::list("trace-periods", "", "DELAY:DURATION[:REPEAT] ...", "TRACE_PERIODS"),
    row::value("trace-clock-id", "", "clock of the above", "TRACE_PERIOD_CLOCK_ID"),
    row::list("profile-format", "", "text, json, console"),
    row::value("profile-diff", "", "not supported", "DIFF_OUTPUT"),
    row::value("process-freq", "", "telemetry readings a second", "PROCESS_SAMPLING_FREQ"),
    row::value("process-wait", "", "accepted; telemetry starts with the program"),
    row::value("process-duration", "", "seconds of telemetry", "PROCESS_SAMPLING_DURATION"),
    row::list("cpus", "", "cores that are read", "SAMPLING_CPUS"),
    row::list("gpus", "", "GPUs that are read", "SAMPLING_GPUS"),
    row::value("sampling-freq", "-f", "samples a second and thread", "SAMPLING_FREQ"),
    row::value("freq", "", "likewise", "SAMPLING_FREQ"),
    row::value("sampling-wait", "", "seconds before the first sample", "SAMPLING_DELAY"),
    row::value("sampling-duration", "", "seconds of sampling", "SAMPLING_DURATION"),
    row::list("tids", "-t", "threads that are sampled, by number", "SAMPLING_TIDS"),
    row::list("sample-cputime", "", "by CPU time: [FREQ [DELAY [THREADS]]]"),
    row::list("sample-realtime", "", "by wall time: [FREQ [DELAY [THREADS]]]"),
    row::list("sample-overflow", "", "by hardware events: not supported", "SAMPLING_OVERFLOW"),
    row::list("cputime", "", "as --sample-cputime"),
    row::list("realtime", "", "as --sample-realtime"),
    row::list("cpu-events", "-C",
              "CPU counters of samples and launching calls, by their perf, perf:: or PAPI names (sys avail -H)",
              "PAPI_EVENTS"),
    row::list("gpu-events", "-G", "GPU counters: see rocprof-compute, tacho profile", "ROCM_EVENTS"),
    row::flag("inlines", "-i", "not supported", "SAMPLING_INCLUDE_INLINES"),
    row::value("hsa-interrupt", "", "HSA_ENABLE_INTERRUPT of the program: 0 or 1"),
    row::flag("monochrome", "", "no colours", "MONOCHROME"),
    row::flag("debug", "", "say everything", "DEBUG"),
    row::value("verbose", "-v", "how much is said; -1 = nothing", "VERBOSE"),
    row::flag("fork", "", "accepted; tacho always does"),
    row::value("sampler", "", "tacho: timer (in the program), perf (from outside, native frames only)"),
    row::value("sample-stack", "", "tacho: bytes of stack copied per sample"),
    row::flag("no-launch-stacks", "", "tacho: do not read Python's stack at every launch"),
    row::value("device-counters", "",
               "tacho: counters of whole GPUs; AMD: SQ_WAVES,...; NVIDIA: dram__bytes_read.sum,..."),
    row::value("device-counters-hz", "", "tacho: readings of them a second (10)"),
    row::flag("follow", "",
              "tacho sys: also record processes that outlive the program, until the last or Ctrl-C ends it"),
    row::flag("torch-trace", "", "tacho sys: PyTorch's operators and modules as ranges"),
    row::list("torch-shapes", "",
              "tacho sys: the same with the shapes of operators' inputs (PyTorch on a GPU), sampled or all"),
    row::value("ranks", "", "tacho: record only these ranks of a parallel job (0,2-3)"),
    row::value("profile-mpi-ranks", "", "tacho: the same"),
    row::flag("overwrite", "", "tacho sys: replace an existing file"),
    row::flag("quiet", "-q", "tacho sys: no summary"),
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

class Parser : public options::Syntax {
 public:
  Parser(Request& request, int argc, char** argv) : request_(request), words_(argc, argv) {}

  Status run() {
    TACHO_TRY(options::read_options(words_, *this));
    request_.command = words_.rest();
    return {};
  }

  bool is_option(const std::string& word) const override { return word.size() > 1 && word[0] == '-'; }

  Result<Takes> look_up(const Spelling& given) override {
    const std::string& name = given.name;
    setting_ = nullptr;
    option_ = name.starts_with("--") ? options::find(kOptions, std::string_view(name).substr(2))
                                     : options::find_short(kOptions, name);
    if (option_ == nullptr) {  // every setting is also an option
      setting_ = name.starts_with("--") ? find_setting(std::string_view(name).substr(2)) : nullptr;
      if (setting_ == nullptr)
        return fail("there is no option {}{}; see {} --help", name, options::suggestion(kOptions, name),
                    request_.called);
      return setting_->kind == SettingKind::kBool ? Takes{0, 1, truth_word} : Takes{1, 1, nullptr};
    }
    switch (option_->kind) {
      case OptionKind::kFlag:
        return given.joined ? Takes{0, 0, nullptr} : Takes{0, 1, truth_word};
      case OptionKind::kValue:
        // A second word is a prefix only if `--` shows where the command begins.
        return Takes{1, is_prefixed() && words_.separated() ? size_t{2} : size_t{1}, nullptr};
      case OptionKind::kList:
        break;
    }
    if (given.attached) return Takes{1, 1, nullptr};
    // Takes further config files only if `--` shows where the command begins.
    if (option_->name == "config") return Takes{1, words_.separated() ? Takes::kAny : 1, nullptr};
    return Takes{0, Takes::kAny,
                 [this](const std::string& word) { return !word.empty() && word[0] != '-' && accepts(word); }};
  }

  Status take(const Spelling& given, std::vector<std::string> values) override {
    const std::string& name = given.name;
    if (option_ == nullptr) {
      if (values.empty() && setting_->kind == SettingKind::kBool) values.emplace_back("true");
      if (values.empty()) return fail("{} wants a value", name);
      return settings().set(*setting_, values.front(), Origin::kOption, name);
    }
    switch (option_->kind) {
      case OptionKind::kFlag:
        return flag(*option_, name, values.empty() ? "true" : values.front());
      case OptionKind::kValue:
        if (values.empty()) return fail("{} wants a value", name);
        if (values.size() > 1) TACHO_TRY(set("OUTPUT_PREFIX", values[1], name));
        return single(*option_, name, values.front());
      case OptionKind::kList:
        break;
    }
    if (given.attached && option_->name != "config") values = words_of(*given.attached);
    return several(*option_, name, values);
  }

  Result<bool> operand(options::WordReader&) override { return false; }

 private:
  bool is_prefixed() const { return option_->name == "output" && request_.face != Face::kTacho; }

  // Whether the word belongs to the list option that was looked up last.
  bool accepts(const std::string& word) const {
    const std::string_view name = option_->name;
    const auto in = [&](std::initializer_list<std::string_view> known) {
      return std::find(known.begin(), known.end(), word) != known.end();
    };
    if (name == "include" || name == "exclude")
      return word == "all" || std::any_of(std::begin(kSources), std::end(kSources),
                                          [&](const auto& source) { return source.first == word; });
    if (name == "sample") return in({"cputime", "realtime"});
    if (name == "torch-shapes") return in({"sampled", "all"});
    if (is_timer(name)) return numeric_word(word);
    if (name == "profile-format") return in({"text", "json", "console"});
    if (name == "cpus" || name == "gpus" || name == "tids" || name.ends_with("periods"))
      return numeric_word(word) || in({"all", "none"});
    return words_.separated();
  }
  static bool is_timer(std::string_view name) {
    return name == "sample-cputime" || name == "cputime" || name == "sample-realtime" || name == "realtime";
  }

  Settings& settings() { return request_.settings; }
  Status set(std::string_view name, std::string_view value, std::string_view where) {
    return settings().set(*find_setting(name), value, Origin::kOption, where);
  }

  Status flag(const Option& option, const std::string& name, const std::string& value) {
    const bool on = value == "true" || value == "on" || value == "yes" || value == "1";
    if (!option.sets.empty()) return set(option.sets, value, name);
    if (option.name == "help") request_.help = true;
    if (option.name == "overwrite") request_.overwrite = on;
    if (option.name == "quiet") request_.quiet = on;
    if (option.name == "torch-trace") request_.torch_trace = on;
    if (option.name == "follow") request_.follow = on;
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
      return set("OUTPUT_PATH", value, name);
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
    if (option.name == "device-counters")
      return choose_device_counters(value, request_.device_target, request_.device_counters);
    if (option.name == "device-counters-hz")
      return choose_counter_rate(value, request_.device_target, request_.device_counters);
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

  Status several(const Option& option, const std::string& name, const std::vector<std::string>& words) {
    if (option.name == "config") {
      if (words.empty()) return fail("{} wants the name of a config file", name);
      request_.config_files.insert(request_.config_files.end(), words.begin(), words.end());
      return {};
    }
    if (option.name == "torch-shapes") {
      if (words.size() > 1 || (!words.empty() && words.front() != "sampled" && words.front() != "all"))
        return fail("{} {}: choose sampled or all", name, words.back());
      request_.torch_trace = true;
      request_.torch_shapes =
          !words.empty() && words.front() == "all" ? launch::TorchShapes::kAll : launch::TorchShapes::kSampled;
      return {};
    }
    if (option.name == "include" || option.name == "exclude") {
      const bool on = option.name == "include";
      if (words.empty()) {
        std::string all = "all";
        for (const auto& [source, setting] : kSources) all += " " + std::string(source);
        return fail("{}{}: choose from {}", name, words_.left() ? " " + words_.peek() : "", all);
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
      TACHO_TRY(set("USE_SAMPLING", "true", name));
      for (const std::string& word : words) {
        if (word != "cputime" && word != "realtime") return fail("{} {}: choose cputime or realtime", name, word);
        TACHO_TRY(set(word == "cputime" ? "SAMPLING_CPUTIME" : "SAMPLING_REALTIME", "true", name));
      }
      return {};
    }
    if (is_timer(option.name)) {
      const bool wall = option.name.ends_with("realtime");
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
      if (words.empty()) return fail("{}: choose from text json console", name);
      const auto has = [&](const char* word) { return std::find(words.begin(), words.end(), word) != words.end(); };
      TACHO_TRY(set("PROFILE", "true", name));
      TACHO_TRY(set("TEXT_OUTPUT", has("text") ? "true" : "false", name));
      TACHO_TRY(set("JSON_OUTPUT", has("json") ? "true" : "false", name));
      return set("COUT_OUTPUT", has("console") ? "true" : "false", name);
    }
    // Lists that form one setting.
    if (words.empty() && find_setting(option.sets)->kind != SettingKind::kBool) return fail("{} wants a value", name);
    if (find_setting(option.sets)->kind == SettingKind::kBool) return set(option.sets, "true", name);
    std::string joined;
    for (const std::string& word : words)
      joined += (joined.empty() ? "" : option.name.ends_with("periods") ? " " : ",") + word;
    return set(option.sets, joined, name);
  }

  Request& request_;
  options::WordReader words_;
  const Option* option_ = nullptr;  // what was looked up last: this, or
  const Setting* setting_ = nullptr;
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
    request.settings.preset_own();
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
