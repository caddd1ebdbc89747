// Command line and outputs of system profiling (sys.h).
#include "cli/sys/sys.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "analysis/stats.h"
#include "base/json_writer.h"
#include "base/output_file.h"
#include "cli/command.h"
#include "cli/export.h"
#include "cli/shared/run_target.h"
#include "cli/shared/suggest.h"
#include "cli/shared/summary.h"
#include "format/timemory/timemory.h"
#include "report/table.h"

namespace tacho::cli::sys {

namespace fs = std::filesystem;
namespace column = event::column;
using event::Table;

namespace {

constexpr uint64_t bit(Table table) {
  return 1ull << static_cast<unsigned>(table);
}

constexpr Category kCategories[] = {
    {"host", "functions of the host", bit(Table::kMarker)},
    {"user", "regions that the program marks", bit(Table::kMarker)},
    {"python", "Python regions", bit(Table::kMarker)},
    {"rocm", "everything of GPU runtimes",
     bit(Table::kApi) | bit(Table::kDispatch) | bit(Table::kCopy) | bit(Table::kFill) |
         bit(Table::kAllocation) | bit(Table::kSync)},
    {"rocm_hip_api", "API calls of GPU runtimes", bit(Table::kApi) | bit(Table::kSync)},
    {"rocm_hsa_api", "API calls of GPU runtimes", bit(Table::kApi) | bit(Table::kSync)},
    {"rocm_kernel_dispatch", "kernels", bit(Table::kDispatch)},
    {"rocm_hip_stream", "kernels and copies by stream",
     bit(Table::kDispatch) | bit(Table::kCopy) | bit(Table::kFill)},
    {"rocm_memory_copy", "copies and fills", bit(Table::kCopy) | bit(Table::kFill)},
    {"rocm_scratch_memory", "device memory", bit(Table::kAllocation)},
    {"rocm_marker_api", "ROCTx, NVTX and tacho.h", bit(Table::kMarker)},
    {"rocm_counter_collection", "hardware counters of kernels", bit(Table::kCounterValue)},
    {"sampling", "call stacks", bit(Table::kSample)},
    {"timer_sampling", "call stacks by a timer", bit(Table::kSample)},
    {"process_sampling", "all telemetry of processes and cores", 0},
    {"amd_smi", "all telemetry of GPUs", 0},
    {"cpu_frequency", "clock of each core", 0},
    {"cpu_utilization", "use of each core", 0},
    {"memory", "memory of the machine", 0},
    {"process_cpu_usage", "CPU use of the process", 0},
    {"process_user_cpu_time", "CPU time in user mode", 0},
    {"process_kernel_cpu_time", "CPU time in the kernel", 0},
    {"process_memory", "resident memory", 0},
    {"process_memory_hwm", "most resident memory", 0},
    {"process_virtual_memory", "virtual memory", 0},
    {"process_page_fault", "page faults", 0},
    {"process_context_switch", "context switches", 0},
    {"process_threads", "threads", 0},
    {"process_io", "bytes read and written", 0},
    {"device_busy_gfx", "GPU: compute busy", 0},
    {"device_busy_umc", "GPU: memory busy", 0},
    {"device_busy_mm", "GPU: media engines busy", 0},
    {"device_temp", "GPU temperature", 0},
    {"device_power", "GPU power and energy", 0},
    {"device_memory_usage", "GPU memory in use", 0},
    {"device_clock", "GPU clocks", 0},
    {"device_pcie", "PCIe traffic", 0},
    {"device_link", "NVLink traffic", 0},
};

// ---- the command line

struct Option {
  std::string_view name, short_name;
  enum Kind : uint8_t { kFlag, kValue, kList } kind;
  std::string_view setting;  // set to the value; empty = handled by name
  std::string_view text;
};

constexpr Option kOptions[] = {
    {"help", "-h", Option::kFlag, "", "this text"},
    {"config", "-c", Option::kList, "", "config file(s): KEY = value lines"},
    {"output", "-o", Option::kValue, "",
     "rocprof-sys: PATH [PREFIX] of the output folder; tacho sys: the .tacho file"},
    {"trace", "-T", Option::kFlag, "TRACE", "write a Perfetto trace"},
    {"profile", "-P", Option::kFlag, "PROFILE", "write tables of calls"},
    {"flat-profile", "-F", Option::kFlag, "FLAT_PROFILE", "tables without hierarchy"},
    {"sample", "-S", Option::kList, "", "call stacks: cputime, realtime"},
    {"host", "-H", Option::kFlag, "", "telemetry of the machine and the processes"},
    {"device", "-D", Option::kFlag, "", "telemetry of GPUs"},
    {"wait", "-w", Option::kValue, "", "seconds before anything is recorded"},
    {"duration", "-d", Option::kValue, "", "seconds of recording"},
    {"periods", "", Option::kList, "TRACE_PERIODS", "DELAY:DURATION[:REPEAT] ..."},
    {"include", "-I", Option::kList, "",
     "switch sources on: all kokkosp mpip mutex-locks ompt rcclp amd-smi rocprofiler-sdk rw-locks "
     "spin-locks"},
    {"exclude", "-E", Option::kList, "", "switch sources off"},
    {"trace-file", "", Option::kValue, "PERFETTO_FILE", "name of the Perfetto file"},
    {"trace-buffer-size", "", Option::kValue, "PERFETTO_BUFFER_SIZE_KB", "see PERFETTO_BUFFER_SIZE_KB"},
    {"trace-fill-policy", "", Option::kValue, "PERFETTO_FILL_POLICY", "discard, ring_buffer"},
    {"trace-wait", "", Option::kValue, "TRACE_DELAY", "seconds before recording starts"},
    {"trace-duration", "", Option::kValue, "TRACE_DURATION", "seconds of recording"},
    {"trace-periods", "", Option::kList, "TRACE_PERIODS", "DELAY:DURATION[:REPEAT] ..."},
    {"trace-clock-id", "", Option::kValue, "TRACE_PERIOD_CLOCK_ID", "clock of the above"},
    {"profile-format", "", Option::kList, "", "text, json, console"},
    {"profile-diff", "", Option::kValue, "DIFF_OUTPUT", "not supported"},
    {"process-freq", "", Option::kValue, "PROCESS_SAMPLING_FREQ", "telemetry readings a second"},
    {"process-wait", "", Option::kValue, "", "accepted; telemetry starts with the program"},
    {"process-duration", "", Option::kValue, "PROCESS_SAMPLING_DURATION", "seconds of telemetry"},
    {"cpus", "", Option::kList, "SAMPLING_CPUS", "cores that are read"},
    {"gpus", "", Option::kList, "SAMPLING_GPUS", "GPUs that are read"},
    {"sampling-freq", "-f", Option::kValue, "SAMPLING_FREQ", "samples a second and thread"},
    {"freq", "", Option::kValue, "SAMPLING_FREQ", "likewise"},
    {"sampling-wait", "", Option::kValue, "SAMPLING_DELAY", "seconds before the first sample"},
    {"sampling-duration", "", Option::kValue, "SAMPLING_DURATION", "seconds of sampling"},
    {"tids", "-t", Option::kList, "SAMPLING_TIDS", "threads that are sampled, by number"},
    {"sample-cputime", "", Option::kList, "", "by CPU time: [FREQ [DELAY [THREADS]]]"},
    {"sample-realtime", "", Option::kList, "", "by wall time: [FREQ [DELAY [THREADS]]]"},
    {"sample-overflow", "", Option::kList, "SAMPLING_OVERFLOW", "by hardware events: not supported"},
    {"cputime", "", Option::kList, "", "as --sample-cputime"},
    {"realtime", "", Option::kList, "", "as --sample-realtime"},
    {"cpu-events", "-C", Option::kList, "PAPI_EVENTS", "CPU counters: not supported"},
    {"gpu-events", "-G", Option::kList, "ROCM_EVENTS", "GPU counters: see rocprof-compute, tacho profile"},
    {"inlines", "-i", Option::kFlag, "SAMPLING_INCLUDE_INLINES", "not supported"},
    {"hsa-interrupt", "", Option::kValue, "", "HSA_ENABLE_INTERRUPT of the program: 0 or 1"},
    {"monochrome", "", Option::kFlag, "MONOCHROME", "no colours"},
    {"debug", "", Option::kFlag, "DEBUG", "say everything"},
    {"verbose", "-v", Option::kValue, "VERBOSE", "how much is said; -1 = nothing"},
    {"fork", "", Option::kFlag, "", "accepted; tacho always does"},
    {"sampler", "", Option::kValue, "",
     "tacho: timer (in the program), perf (from outside, native frames only)"},
    {"sample-stack", "", Option::kValue, "", "tacho: bytes of stack copied per sample"},
    {"no-launch-stacks", "", Option::kFlag, "", "tacho: do not read Python's stack at every launch"},
    {"overwrite", "", Option::kFlag, "", "tacho sys: replace an existing file"},
    {"quiet", "-q", Option::kFlag, "", "tacho sys: no summary"},
};

// What -I and -E name.
constexpr std::pair<std::string_view, std::string_view> kSources[] = {
    {"kokkosp", "USE_KOKKOSP"},
    {"mpip", "USE_MPIP"},
    {"mutex-locks", "TRACE_THREAD_LOCKS"},
    {"ompt", "USE_OMPT"},
    {"rcclp", "USE_RCCLP"},
    {"amd-smi", "USE_AMD_SMI"},
    {"rocprofiler-sdk", "USE_ROCM"},
    {"rw-locks", "TRACE_THREAD_RW_LOCKS"},
    {"spin-locks", "TRACE_THREAD_SPIN_LOCKS"}};

bool truth_word(std::string_view word) {
  for (const char* known : {"true", "false", "on", "off", "yes", "no"})
    if (word == known) return true;
  return false;
}
bool numeric_word(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789.,-:") == std::string_view::npos &&
         word[0] != '-';
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
    request_.command.assign(words_.begin() + static_cast<ptrdiff_t>(std::min(at_, words_.size())),
                            words_.end());
    return {};
  }

 private:
  Settings& settings() { return request_.settings; }
  Status set(std::string_view name, std::string_view value, std::string_view where) {
    return settings().set(*find_setting(name), value, Origin::kOption, where);
  }

  // Words that follow a list option: all up to the next option where `--` ends the options anyhow, else those
  // that can be meant for it.
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
    const Option* found = nullptr;
    for (const Option& known : kOptions)
      if (name == known.short_name || (name.starts_with("--") && name.substr(2) == known.name))
        found = &known;
    if (found == nullptr) {
      // Every setting is an option as well.
      const Setting* const setting =
          name.starts_with("--") ? find_setting(std::string_view(name).substr(2)) : nullptr;
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
      case Option::kFlag:
        if (!has_value) {
          value = "true";
          if (at_ < words_.size() && truth_word(words_[at_])) value = words_[at_++];
        }
        return flag(*found, name, value);
      case Option::kValue:
        if (!has_value) {
          if (at_ >= words_.size() || words_[at_] == "--") return fail("{} wants a value", name);
          value = words_[at_++];
        }
        return single(*found, name, value);
      case Option::kList:
        break;
    }
    return several(*found, name, has_value, value);
  }

  Status unknown(const std::string& name) {
    std::vector<std::string> names;
    for (const Option& known : kOptions) names.push_back("--" + std::string(known.name));
    const std::string best = nearest(name, names);
    return fail("there is no option {}{}; see {} --help", name, best.empty() ? "" : ", did you mean " + best,
                request_.called);
  }

  Status flag(const Option& option, const std::string& name, const std::string& value) {
    const bool on = value == "true" || value == "on" || value == "yes" || value == "1";
    if (!option.setting.empty()) return set(option.setting, value, name);
    if (option.name == "help") request_.help = true;
    if (option.name == "overwrite") request_.overwrite = on;
    if (option.name == "quiet") request_.quiet = on;
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
    if (!option.setting.empty()) return set(option.setting, value, name);
    if (option.name == "output") {
      if (request_.face == Face::kTacho) {
        request_.output = value;
        return {};
      }
      TACHO_TRY(set("OUTPUT_PATH", value, name));
      // A second word is a prefix only where `--` says where the command begins.
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
      request_.sampler = value;
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
      // Further ones only where `--` says where the command begins.
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
          // `all` means all that there is.
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
        if (word != "cputime" && word != "realtime")
          return fail("{} {}: choose cputime or realtime", name, word);
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
      const auto has = [&](const char* word) {
        return std::find(words.begin(), words.end(), word) != words.end();
      };
      TACHO_TRY(set("PROFILE", "true", name));
      TACHO_TRY(set("TEXT_OUTPUT", has("text") ? "true" : "false", name));
      TACHO_TRY(set("JSON_OUTPUT", has("json") ? "true" : "false", name));
      return set("COUT_OUTPUT", has("console") ? "true" : "false", name);
    }
    // Lists that are one setting.
    const bool numbers = option.name == "cpus" || option.name == "gpus" || option.name == "tids" ||
                         option.name.ends_with("periods");
    if (numbers)
      take([](const std::string& word) { return numeric_word(word) || word == "all" || word == "none"; });
    else
      take([this](const std::string&) { return separator_ < words_.size(); });
    if (words.empty() && find_setting(option.setting)->kind != SettingKind::kBool)
      return fail("{} wants a value", name);
    if (find_setting(option.setting)->kind == SettingKind::kBool) return set(option.setting, "true", name);
    std::string joined;
    for (const std::string& word : words)
      joined += (joined.empty() ? "" : option.name.ends_with("periods") ? " " : ",") + word;
    return set(option.setting, joined, name);
  }

  Request& request_;
  std::vector<std::string> words_;
  size_t at_ = 0, separator_ = 0;
};

// ---- from settings to a run

struct Plan {
  launch::LaunchOptions launch;
  bool trace = true, profile = false, rocpd = false;
  format::ExportOptions exports;
  format::timemory::Options tables;
  std::vector<std::string> components;
  bool sampling = false;
  std::string folder, prefix;  // rocprof-sys: of the files
};

Result<launch::LaunchOptions::Period> parse_period(const std::string& word, std::string& clock) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= word.size();) {
    const size_t end = std::min(word.find(':', at), word.size());
    parts.push_back(word.substr(at, end - at));
    at = end + 1;
  }
  launch::LaunchOptions::Period period{0, 0, 1};
  const auto number = [](const std::string& text, double& out) {
    char* end = nullptr;
    out = std::strtod(text.c_str(), &end);
    return !text.empty() && *end == '\0' && std::isfinite(out) && out >= 0;
  };
  double repeat = 1;
  if (parts.size() < 2 || parts.size() > 4 || !number(parts[0], period.delay_s) ||
      !number(parts[1], period.duration_s) ||
      (parts.size() > 2 && (!number(parts[2], repeat) || repeat < 1 || repeat > 1e9)))
    return fail("period '{}' is not DELAY:DURATION[:REPEAT[:CLOCK]], in seconds", word);
  period.repeat = static_cast<uint64_t>(repeat);
  if (parts.size() > 3) clock = parts[3];
  return period;
}

// Names that outputs may hold: %tag%, %env{X}% ...
std::string expand(std::string text, const Request& request, int64_t pid) {
  const auto environment = [](const std::string& name) {
    const char* const value = std::getenv(name.c_str());
    return std::string(value != nullptr ? value : "");
  };
  const auto replace = [&](const std::string& key, const std::string& value) {
    for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + value.size()))
      text.replace(at, key.size(), value);
  };
  for (const auto& [opening, closing] : {std::pair{std::string("%env{"), std::string("}%")},
                                         {std::string("$env{"), std::string("}")},
                                         {std::string("%cfg{"), std::string("}%")},
                                         {std::string("$cfg{"), std::string("}")}})
    for (size_t at = text.find(opening); at != std::string::npos; at = text.find(opening, at)) {
      const size_t end = text.find(closing, at);
      if (end == std::string::npos) break;
      const std::string name = text.substr(at + opening.size(), end - at - opening.size());
      const bool of_settings = opening[1] == 'c';
      const Setting* const setting = of_settings ? find_setting(name) : nullptr;
      const std::string value =
          of_settings ? setting != nullptr ? request.settings.text(setting->name) : "" : environment(name);
      text.replace(at, end + closing.size() - at, value);
      at += value.size();
    }
  std::string args, argt;
  for (size_t i = 0; i < request.command.size(); ++i) {
    std::string word = request.command[i];
    std::replace(word.begin(), word.end(), '/', '_');
    if (i > 0) args += (args.empty() ? "" : "_") + word;
    replace(fmt::format("%arg{}%", i), i == 0 ? fs::path(request.command[0]).filename().string() : word);
  }
  const std::string tag = fs::path(request.command[0]).filename().string();
  argt = tag + (args.empty() ? "" : "_" + args);
  const auto first_of = [&](std::initializer_list<const char*> names, const char* fallback) {
    for (const char* name : names)
      if (const std::string value = environment(name); !value.empty()) return value;
    return std::string(fallback);
  };
  const std::string rank = first_of({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"}, "0");
  const std::string size = first_of({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "WORLD_SIZE"}, "1");
  const std::string job = first_of({"SLURM_JOB_ID"}, "0");
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  const std::string launch_time = [&] {
    char out[128];
    const time_t now = time(nullptr);
    tm local{};
    localtime_r(&now, &local);
    const size_t length = strftime(out, sizeof out, request.settings.text("TIME_FORMAT").c_str(), &local);
    return std::string(out, length);
  }();
  for (const auto& [key, value] : {std::pair{std::string("%argv%"), argt},
                                   {std::string("%argt%"), argt},
                                   {std::string("%args%"), args},
                                   {std::string("%tag%"), tag},
                                   {std::string("%pid%"), std::to_string(pid)},
                                   {std::string("%ppid%"), std::to_string(getpid())},
                                   {std::string("%job%"), job},
                                   {std::string("%rank%"), rank},
                                   {std::string("%size%"), size},
                                   {std::string("%nid%"), rank},
                                   {std::string("%launch_time%"), launch_time},
                                   {std::string("%m"), std::string(host)},
                                   {std::string("%p"), std::to_string(pid)},
                                   {std::string("%j"), job},
                                   {std::string("%r"), rank},
                                   {std::string("%s"), size}})
    replace(key, value);
  return text;
}

void choose_categories(const Settings& settings, Plan& plan) {
  uint64_t covered = 0, hidden = 0;
  const auto names = [&](const char* setting) {
    std::string list = settings.text(setting);
    for (char& c : list)
      if (c == ' ' || c == ';') c = ',';
    return words_of(list);
  };
  const std::vector<std::string> enabled = names("ENABLE_CATEGORIES"), disabled = names("DISABLE_CATEGORIES");
  const auto in = [](const std::vector<std::string>& list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  // Telemetry belongs to a category of its own and to the one of all processes or GPUs.
  const auto group = [](std::string_view name) {
    return name.starts_with("device_") ? std::string_view("amd_smi") : std::string_view("process_sampling");
  };
  for (const Category& category : kCategories) {
    const bool telemetry = category.tables == 0;
    const bool on =
        enabled.empty() || in(enabled, category.name) || (telemetry && in(enabled, group(category.name)));
    const bool off = in(disabled, category.name) || (telemetry && in(disabled, group(category.name)));
    if (telemetry) {
      if (!on || off) plan.launch.telemetry.hidden.insert(std::string(category.name));
    } else {
      if (on) covered |= category.tables;
      if (off) hidden |= category.tables;
    }
  }
  uint64_t all = 0;
  for (const Category& category : kCategories) all |= category.tables;
  // Tables of no category stay.
  plan.exports.tables = ~all | (covered & ~hidden);
}

Result<Plan> make_plan(Request& request) {
  namespace source = tape::source_bit;
  const Settings& settings = request.settings;
  Plan plan;
  launch::LaunchOptions& launch = plan.launch;
  launch.command = request.command;
  for (const auto& variable : settings.program_environment()) launch.environment.push_back(variable);
  if (const std::string mode = settings.text("MODE"); mode == "sampling" && !settings.given("USE_SAMPLING")) {
    request.settings.preset("USE_SAMPLING", "true");
  } else if (mode != "sampling" && mode != "trace") {
    request.remarks.push_back(fmt::format("ROCPROFSYS_MODE={}: tacho has trace and sampling", mode));
  }
  plan.profile = settings.on("PROFILE");
  plan.trace = settings.given("TRACE") || !plan.profile ? settings.on("TRACE") : false;
  if (!settings.given("PROFILE") && settings.given("TRACE") && !plan.trace) plan.profile = true;
  if (request.face == Face::kTacho && !settings.given("TRACE")) plan.trace = false;
  if (request.face == Face::kTacho && !settings.given("PROFILE")) plan.profile = false;
  plan.rocpd = settings.on("USE_ROCPD");
  plan.sampling = settings.on("USE_SAMPLING");

  // sources
  uint64_t sources = 0;
  if (settings.on("USE_ROCM")) {
    for (const std::string& raw : words_of([&] {
           std::string list = settings.text("ROCM_DOMAINS");
           std::replace(list.begin(), list.end(), ' ', ',');
           return list;
         }())) {
      if (raw == "hip_runtime_api" || raw == "hip_api" || raw == "hip_compiler_api" || raw == "hsa_api" ||
          raw == "rccl_api")
        sources |= source::kApi | source::kSync | source::kOverhead;
      else if (raw == "marker_api" || raw == "roctx")
        sources |= source::kMarker;
      else if (raw == "kernel_dispatch")
        sources |= source::kDispatch;
      else if (raw == "memory_copy")
        sources |= source::kCopy;
      else if (raw == "memory_allocation")
        sources |= source::kAllocation;
      else if (raw != "scratch_memory" && raw != "page_migration" && raw != "rocdecode_api" &&
               raw != "rocjpeg_api")
        return fail(
            "ROCPROFSYS_ROCM_DOMAINS: there is no domain '{}'; choose hip_runtime_api, hsa_api, marker_api, "
            "kernel_dispatch, memory_copy, memory_allocation, scratch_memory",
            raw);
    }
    if (request.face == Face::kTacho && !settings.given("ROCM_DOMAINS"))
      sources |= source::kAll & ~source::kSample;
  }
  if (plan.sampling) sources |= source::kSample;
  launch.sources = sources;
  choose_categories(settings, plan);

  // call stacks
  auto& config = launch.config;
  config.emplace_back("driver_trace", "launch");
  if (plan.sampling) {
    const bool wall = settings.on("SAMPLING_REALTIME");
    if (wall && settings.on("SAMPLING_CPUTIME"))
      request.remarks.push_back(
          "CPU-time and wall-time sampling were both asked for: wall time is sampled, which holds the CPU "
          "time too");
    const std::string kind = wall ? "SAMPLING_REALTIME_" : "SAMPLING_CPUTIME_";
    double hz = settings.number(kind + "FREQ");
    if (hz <= 0) hz = settings.number("SAMPLING_FREQ");
    if (hz < 1 || hz > 10'000)
      return fail("{:g} samples a second: choose from 1 to 10000 (ROCPROFSYS_SAMPLING_FREQ)", hz);
    double delay = settings.number(kind + "DELAY");
    if (delay <= 0) delay = std::max(0.0, settings.number("SAMPLING_DELAY"));
    launch.sample_delay_s = delay;
    launch.sample_duration_s = std::max(0.0, settings.number("SAMPLING_DURATION"));
    std::string threads = settings.text(kind + "TIDS");
    if (threads.empty()) threads = settings.text("SAMPLING_TIDS");
    TACHO_ASSIGN(const std::set<int> numbers, parse_ranges(threads, "ROCPROFSYS_SAMPLING_TIDS"));
    config.emplace_back("sampler", request.sampler);
    config.emplace_back("sample_hz", fmt::format("{:.0f}", hz));
    config.emplace_back("sample_clock", wall ? "wall" : "cpu");
    config.emplace_back("sample_stack", std::to_string(request.sample_stack));
    config.emplace_back("launch_stacks", request.launch_stacks ? "1" : "0");
    if (request.sampler == "perf") {
      if (wall) return fail("--sampler perf samples CPU time; for wall time use --sampler timer");
      launch.perf_hz = static_cast<uint32_t>(hz);
      launch.perf_stack = request.sample_stack;
    }
    std::replace(threads.begin(), threads.end(), ' ', ',');
    if (!numbers.empty()) config.emplace_back("sample_threads", threads);
  }

  // telemetry
  launch::TelemetryOptions& telemetry = launch.telemetry;
  if (settings.on("USE_PROCESS_SAMPLING")) {
    telemetry.cpu = telemetry.process = settings.on("CPU_FREQ_ENABLED");
    telemetry.gpu = settings.on("USE_AMD_SMI");
    const auto numbers = [&](const char* name, std::optional<std::set<int>>& out) -> Status {
      const std::string list = settings.text(name);
      if (list == "all" || list.empty()) return {};
      if (list == "none") {
        out = std::set<int>{};
        return {};
      }
      TACHO_ASSIGN(out, parse_ranges(list, std::string(kPrefix) + name));
      return {};
    };
    // Asked for by -H alone, every core is meant.
    if (settings.given("SAMPLING_CPUS")) TACHO_TRY(numbers("SAMPLING_CPUS", telemetry.cpus));
    TACHO_TRY(numbers("SAMPLING_GPUS", telemetry.gpus));
    const std::string metrics = settings.text("AMD_SMI_METRICS");
    if (metrics != "all" && !metrics.empty() &&
        (request.face == Face::kRocprofSys || settings.given("AMD_SMI_METRICS"))) {
      std::set<std::string> chosen;
      std::string list = metrics;
      std::replace(list.begin(), list.end(), ' ', ',');
      for (const std::string& word : words_of(list)) {
        if (word == "none" || word == "vcn_activity" || word == "jpeg_activity") continue;
        if (std::find(std::begin(launch::kGpuMetrics), std::end(launch::kGpuMetrics), word) ==
            std::end(launch::kGpuMetrics))
          return fail(
              "ROCPROFSYS_AMD_SMI_METRICS: there is no metric '{}'; choose busy, temp, power, mem_usage, "
              "clock, pcie, link, energy",
              word);
        chosen.insert(word);
      }
      telemetry.gpu_metrics = chosen;
    }
    telemetry.hz = settings.number("PROCESS_SAMPLING_FREQ");
    if (telemetry.hz <= 0) telemetry.hz = std::min(50.0, std::max(1.0, settings.number("SAMPLING_FREQ")));
    telemetry.hz = std::min(telemetry.hz, 1000.0);
    const double duration = settings.number("PROCESS_SAMPLING_DURATION");
    telemetry.duration_s = duration >= 0 ? duration : std::max(0.0, settings.number("SAMPLING_DURATION"));
  }

  // when
  launch.delay_s = std::max(0.0, settings.number("TRACE_DELAY"));
  launch.duration_s = std::max(0.0, settings.number("TRACE_DURATION"));
  std::string periods = settings.text("TRACE_PERIODS"), clock = settings.text("TRACE_PERIOD_CLOCK_ID");
  for (char& c : periods)
    if (c == ';' || c == ' ') c = ',';
  for (const std::string& word : words_of(periods)) {
    TACHO_ASSIGN(const auto period, parse_period(word, clock));
    launch.periods.push_back(period);
  }
  std::string clock_name = clock;
  for (char& c : clock_name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (clock_name.find("cpu") != std::string::npos)
    return fail(
        "ROCPROFSYS_TRACE_PERIOD_CLOCK_ID={}: periods by CPU time are not possible; use realtime or "
        "monotonic",
        clock);

  // how much
  const std::string policy = settings.text("PERFETTO_FILL_POLICY");
  if (policy != "discard" && policy != "fill" && policy != "ring_buffer")
    return fail("ROCPROFSYS_PERFETTO_FILL_POLICY={}: choose discard or ring_buffer", policy);
  const double kilobytes = settings.number("PERFETTO_BUFFER_SIZE_KB");
  if (kilobytes <= 0) return fail("ROCPROFSYS_PERFETTO_BUFFER_SIZE_KB={:g}: must be positive", kilobytes);
  if (policy == "ring_buffer")
    launch.writer.ring_size = static_cast<uint64_t>(kilobytes * 1024);
  else if (settings.given("PERFETTO_BUFFER_SIZE_KB"))
    launch.writer.max_size = static_cast<uint64_t>(kilobytes * 1024);
  launch.quiet = true;

  // outputs
  plan.exports.rocprof_sys = true;
  plan.exports.annotations = settings.on("PERFETTO_ANNOTATIONS");
  plan.exports.group_by_queue = settings.on("ROCM_GROUP_BY_QUEUE");
  plan.exports.overwrite = true;
  format::timemory::Options& tables = plan.tables;
  tables.collapse_threads = settings.on("COLLAPSE_THREADS");
  tables.flat = settings.on("FLAT_PROFILE");
  tables.timeline = settings.on("TIMELINE_PROFILE");
  tables.max_depth = static_cast<int64_t>(settings.number("MAX_DEPTH"));
  tables.max_width = static_cast<int64_t>(settings.number("MAX_WIDTH"));
  double precision = settings.number("TIMING_PRECISION");
  if (precision < 0) precision = settings.number("PRECISION");
  tables.precision = precision < 0 ? 6 : static_cast<int>(std::min(precision, 15.0));
  tables.scientific = settings.on("TIMING_SCIENTIFIC");
  tables.tree = settings.on("TREE_OUTPUT");
  tables.time_unit = settings.text("TIMING_UNITS");
  tables.tables = plan.exports.tables;
  if (!format::timemory::unit_seconds(tables.time_unit))
    return fail("ROCPROFSYS_TIMING_UNITS={}: choose sec, msec, usec, nsec or min", tables.time_unit);
  std::string components = settings.text("TIMEMORY_COMPONENTS");
  std::replace(components.begin(), components.end(), ' ', ',');
  for (const std::string& component : words_of(components)) {
    if (component == "wall_clock" || component == "trip_count")
      plan.components.push_back(component);
    else
      request.remarks.push_back(
          fmt::format("ROCPROFSYS_TIMEMORY_COMPONENTS: {} is not one that tacho has (wall_clock, trip_count)",
                      component));
  }
  return plan;
}

// A name that is free: the same minute may see two runs.
std::string free_folder(const std::string& folder) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored) || fs::is_empty(folder, ignored)) return folder;
  for (int i = 1;; ++i)
    if (const std::string candidate = fmt::format("{}-{}", folder, i); !fs::exists(candidate, ignored))
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

// Prints as the program would have, had it written the file itself.
void say(const Request& request, const std::string& text) {
  if (request.settings.number("VERBOSE") < 0 || request.quiet) return;
  fmt::print(stderr, "{}\n", text);
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
  std::string out;
  JsonWriter json(out);
  const auto property = [&](const char* key) {
    return std::string(trace.property(Table::kEnd, 0, key).value_or(""));
  };
  json.begin_object().key("rocprofiler-systems").begin_object().key("metadata").begin_object();
  json.newline().key("info").begin_object();
  json.key("TOOL").value("tacho").key("TOOL_VERSION").value(TACHO_PROGRAM_VERSION);
  json.key("PID").value(trace.cell(Table::kProcess, process, column::Process::pid));
  json.key("PPID").value(trace.cell(Table::kProcess, process, column::Process::parent_pid));
  json.key("CMD").value(trace.text(Table::kProcess, process, column::Process::command));
  json.key("HOSTNAME")
      .value(property("host"))
      .key("SYSTEM")
      .value(property("kernel"))
      .key("MACHINE")
      .value(property("machine"));
  json.key("CPUS")
      .value(property("cpus"))
      .key("PWD")
      .value(property("working_directory"))
      .key("LAUNCH_UNIX_NS")
      .value(property("started_unix_ns"));
  json.key("EXIT_CODE").value(property("exit_code")).key("WALL_SECONDS").value(property("target_seconds"));
  json.end_object();
  json.newline().key("settings").begin_object();
  for (const Setting& setting : settings()) {
    if (setting.use == SettingUse::kUnsupported) continue;
    json.newline()
        .key(std::string(kPrefix) + std::string(setting.name))
        .value(request.settings.text(setting.name));
  }
  json.end_object();
  json.newline().key("environment").begin_object();
  for (int64_t row = 1; row < trace.rows(Table::kProperty); ++row) {
    const std::string_view key = trace.text(Table::kProperty, row, column::Property::key);
    if (key.starts_with("env."))
      json.key(key.substr(4)).value(trace.text(Table::kProperty, row, column::Property::value));
  }
  json.end_object();
  json.newline().key("output").begin_array();
  for (const std::string& path : written) json.value(path);
  json.end_array();
  json.end_object().end_object().end_object();
  out += "\n";
  return out;
}

// Tables of one process; `name(component, ending)` gives the path of a file.
template <typename Name>
Status write_tables(const trace::Trace& trace, const Request& request, const Plan& plan,
                    format::timemory::Options options, Name name, std::vector<std::string>& written) {
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
    if (request.settings.on("COUT_OUTPUT")) std::fwrite(text.data(), 1, text.size(), stderr);
    if (!request.settings.on("FILE_OUTPUT")) continue;
    if (request.settings.on("TEXT_OUTPUT"))
      TACHO_TRY(write_text(name(component.name, ".txt"), text, written));
    if (request.settings.on("JSON_OUTPUT"))
      TACHO_TRY(
          write_text(name(component.name, ".json"), format::timemory::to_json(component, options), written));
  }
  return {};
}

Status write_folder(const trace::Trace& trace, Request& request, Plan& plan,
                    const launch::RunResult& result) {
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
    return number;
  };
  const auto path_of = [&](int64_t row, const std::string& name, const std::string& ending) {
    std::string file = plan.prefix + name;
    if (settings.on("USE_PID")) file += "-" + of_process(row);
    std::string path = (fs::path(plan.folder) / (file + ending)).string();
    // Without numbers the files of two processes would have one name.
    std::error_code ignored;
    if (!settings.on("USE_PID") && fs::exists(path, ignored)) path = free_name(path);
    return path;
  };
  // "perfetto-trace.proto" -> name and ending
  const fs::path trace_file(settings.text("PERFETTO_FILE"));
  std::vector<std::string> all;
  bool combined = false;
  for (const int64_t row : processes) {
    std::vector<std::string> written;
    if (plan.trace && !(combine && combined)) {
      format::ExportOptions options = plan.exports;
      options.process = combine ? 0 : row;
      format::ExportTarget target;
      target.file =
          path_of(combine ? main_row : row, trace_file.stem().string(), trace_file.extension().string());
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
    TACHO_TRY(
        write_text(path_of(row, "metadata", ".json"), metadata_json(trace, request, row, written), written));
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
    fs::rename(plan.launch.output, path, error);
    if (error == std::errc::cross_device_link) {
      fs::copy_file(plan.launch.output, path, error);
      if (!error) fs::remove(plan.launch.output, error);
    }
    if (error) return fail("{}: {}; the recording is kept in {}", path, error.message(), plan.launch.output);
    say(request, fmt::format("[rocprof-sys][{}] Outputting '{}'... Done", of_process(main_row), path));
    if (trace.rows(Table::kSample) > 0)
      say(request,
          fmt::format(
              "[rocprof-sys][{}] Call stacks: tacho stats {} --by line (function, stack), or tacho flame",
              of_process(main_row), path));
  }
  return {};
}

}  // namespace

std::span<const Category> categories() {
  return kCategories;
}

std::string help_text(Face face, Verb verb) {
  const bool own = face == Face::kTacho;
  const std::string name = own                  ? verb == Verb::kRun ? "tacho sys run" : "tacho sys sample"
                           : verb == Verb::kRun ? "rocprof-sys-run"
                                                : "rocprof-sys-sample";
  std::string out = fmt::format("Usage: {} [options] [--] command\n\n{}\n\nOptions:\n", name,
                                verb == Verb::kRun ? "Run a program; record its API calls, kernels, markers "
                                                     "and, when asked, call stacks and telemetry."
                                                   : "Run a program; sample its call stacks, native and "
                                                     "Python, beside API calls, kernels and telemetry.");
  for (const Option& option : kOptions) {
    if (own && (option.name == "fork" || option.name == "process-wait")) continue;
    out += fmt::format(
        "  {:<26} {}\n",
        fmt::format("{}--{}{}", option.short_name.empty() ? "    " : std::string(option.short_name) + ", ",
                    option.name,
                    option.kind == Option::kFlag    ? ""
                    : option.kind == Option::kValue ? " X"
                                                    : " X..."),
        option.text);
  }
  out += fmt::format(
      "\nEvery setting is an option too (--sampling-duration 5); {} lists them. Later wins: config file, "
      "environment, options.\n",
      own ? "tacho sys avail -S" : "rocprof-sys-avail -S");
  out += own ? "Writes <command>.tacho; with --trace a .pftrace beside it, with --profile tables of calls.\n"
             : "Writes rocprof-sys-<command>-output/<time>/: perfetto-trace-<pid>.proto, "
               "wall_clock-<pid>.txt ...\n";
  out +=
      "Exit code: the program's own (128 + signal); 125 errors of ours, 126 not executable, 127 not found.\n";
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
    if (const char* const home = std::getenv("HOME"); files.empty() && face == Face::kRocprofSys &&
                                                      home != nullptr &&
                                                      !request.settings.on("SUPPRESS_CONFIG")) {
      std::error_code ignored;
      if (const std::string path = std::string(home) + "/.rocprof-sys.cfg"; fs::exists(path, ignored))
        files.push_back(path);
    }
    for (const std::string& file : files) TACHO_TRY(request.settings.read_file(file));
  }
  for (const std::string& remark : request.settings.remarks()) request.remarks.push_back(remark);
  for (const std::string& remark : request.settings.unsupported()) request.remarks.push_back(remark);
  if (request.command.empty())
    return fail("no command to run; write it after --, as in: {} -- ./app", request.called);
  return request;
}

int run(Request& request) {
  const Settings& settings = request.settings;
  if (!settings.on("ENABLED")) {
    std::vector<char*> words;
    for (std::string& word : request.command) words.push_back(word.data());
    words.push_back(nullptr);
    const auto path = launch::find_executable(request.command[0]);
    if (!path) return complain(path.error().exit_code, path.error().message);
    execv(path->c_str(), words.data());
    return complain(kNotExecutable, fmt::format("{}: {}", *path, strerror(errno)));
  }
  auto made = make_plan(request);
  if (!made) return complain(kOwnError, made.error().message);
  Plan& plan = *made;
  const bool talk = settings.number("VERBOSE") >= 0;
  if (talk)
    for (const std::string& remark : request.remarks) complain(0, remark);
  request.remarks.clear();
  // The program must exist before folders are made for it.
  if (const auto path = launch::find_executable(request.command[0]); !path)
    return complain(path.error().exit_code, path.error().message);
  if (request.face == Face::kRocprofSys) {
    std::string folder = expand(settings.text("OUTPUT_PATH"), request, getpid());
    plan.prefix = expand(settings.text("OUTPUT_PREFIX"), request, getpid());
    if (settings.on("TIME_OUTPUT"))
      folder = (fs::path(folder) / expand("%launch_time%", request, getpid())).string();
    plan.folder = settings.on("TIME_OUTPUT") ? free_folder(folder) : folder;
    if (const Status ready = create_folders(plan.folder); !ready)
      return complain(kOwnError, ready.error().message);
    std::string meanwhile = settings.text("TMPDIR");
    if (!meanwhile.empty()) {
      std::error_code ignored;
      if (!fs::is_directory(meanwhile, ignored))
        return complain(kOwnError, fmt::format("ROCPROFSYS_TMPDIR={}: there is no such folder", meanwhile));
    }
    plan.launch.output =
        (fs::path(meanwhile.empty() ? plan.folder : meanwhile) / fmt::format(".tacho-{}.tacho", getpid()))
            .string();
    plan.launch.writer.overwrite = true;
  } else {
    std::string base = fs::path(request.command[0]).filename().string();
    plan.launch.output = !request.output.empty() ? request.output
                         : request.overwrite     ? base + ".tacho"
                                                 : free_name(base + ".tacho");
    std::error_code ignored;
    if (!request.overwrite && fs::exists(plan.launch.output, ignored))
      return complain(kOwnError, fmt::format("{} exists; give another -o, or --overwrite to replace it",
                                             plan.launch.output));
    plan.launch.writer.overwrite = request.overwrite;
  }
  if (settings.number("VERBOSE") > 0 || settings.on("DEBUG"))
    for (const Setting& setting : sys::settings())
      if (settings.given(setting.name))
        fmt::print(stderr, "[rocprof-sys] {}{} = {}\n", kPrefix, setting.name, settings.text(setting.name));
  const auto outcome = launch::run(plan.launch);
  if (!outcome) {
    std::error_code ignored;
    if (!plan.folder.empty()) fs::remove(plan.folder, ignored);  // only when empty
    return complain(outcome.error().exit_code, outcome.error().message);
  }
  if (!outcome->written) {
    complain(kOwnError, outcome->written.error().message);
    return outcome->exit_code;
  }
  const auto trace = trace::Trace::open(plan.launch.output);
  if (!trace) {
    complain(kOwnError, trace.error().message);
    return outcome->exit_code;
  }
  ignore_file_size_signal();
  if (request.face == Face::kRocprofSys) {
    if (const Status done = write_folder(**trace, request, plan, *outcome); !done)
      complain(kOwnError, done.error().message);
    const Usage usage = children_usage();
    const std::string unit = settings.text("MEMORY_UNITS");
    const double factor = unit == "B" ? 1 : unit == "KB" ? 1e3 : unit == "GB" ? 1e9 : 1e6;
    say(request, fmt::format("[rocprof-sys][{}] rocprof-sys/process/{} : {:.6f} sec wall_clock, {:.3f} {} "
                             "peak_rss, {:.6f} sec cpu_clock, {:.1f} % cpu_util [laps: 1]",
                             outcome->pid, outcome->pid, outcome->seconds, usage.peak_bytes / factor,
                             factor == 1e6 ? "MB" : unit, usage.cpu_s,
                             outcome->seconds > 0 ? 100 * usage.cpu_s / outcome->seconds : 0));
    if (talk)
      for (const std::string& remark : request.remarks) complain(0, remark);
    std::vector<std::string> losses = analysis::loss_sentences(**trace);
    if (talk)
      for (const std::string& loss : losses) complain(0, loss);
    for (const std::string& warning : outcome->warnings)
      if (talk) complain(0, warning);
    return outcome->exit_code;
  }
  SummaryOptions options;
  options.kept = true;
  const fs::path base = fs::path(plan.launch.output);
  const auto beside = [&](const std::string& ending) {
    return (base.parent_path() / (base.stem().string() + ending)).string();
  };
  const auto write_beside = [&]() -> Status {
    if (plan.trace) {
      std::string path = beside(".pftrace");
      if (!request.overwrite) path = free_name(path);
      for (const format::Writer& writer : format::writers())
        if (writer.name == "pftrace")
          TACHO_TRY(writer.write(**trace, {path, "", ""}, plan.exports, options.written));
    }
    if (plan.profile) {
      for (const int64_t row : processes_with_records(**trace, plan.exports)) {
        format::timemory::Options tables = plan.tables;
        tables.process = row;
        const int64_t pid = (*trace)->cell(Table::kProcess, row, column::Process::pid);
        TACHO_TRY(write_tables(
            **trace, request, plan, tables,
            [&](const std::string& name, const char* ending) {
              return beside(fmt::format("-{}-{}{}", name, pid, ending));
            },
            options.written));
      }
    }
    return {};
  };
  if (const Status done = write_beside(); !done) complain(kOwnError, done.error().message);
  if (!request.quiet && talk) {
    const std::string text = summary_text(**trace, report::screen_of(STDERR_FILENO), options);
    std::fwrite(text.data(), 1, text.size(), stderr);
    if ((*trace)->rows(Table::kSample) > 0)
      fmt::print(stderr, "       tacho flame {0}\n       tacho stats {0} --by function\n", (*trace)->path());
  }
  return outcome->exit_code;
}

}  // namespace tacho::cli::sys

namespace tacho::cli {

int run_sys(int argc, char** argv) {
  using namespace sys;
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "avail") return avail(Face::kTacho, argc - 1, argv + 1);
  if (verb != "run" && verb != "sample") {
    const bool help = verb == "--help" || verb == "-h";
    if (!help && !verb.empty())
      return complain(kOwnError, fmt::format("there is no tacho sys {}; choose run, sample or avail", verb));
    fmt::print(
        help ? stdout : stderr,
        "Usage: tacho sys run|sample|avail [options] [-- command]\n\n"
        "  run      record API calls, kernels, markers; --sample and --host add call stacks and telemetry\n"
        "  sample   the same with call stacks and telemetry\n"
        "  avail    settings, categories, devices and sources on this machine; -G FILE writes a config "
        "file\n\n"
        "Examples:\n"
        "  tacho sys sample -- python3 train.py       then: tacho flame python3.tacho\n"
        "  tacho sys run --trace --profile --host -- ./app\n"
        "  tacho sys avail -G my.cfg && tacho sys sample -c my.cfg -- python3 train.py\n");
    return help ? kOk : static_cast<int>(kOwnError);
  }
  auto request = parse(Face::kTacho, verb == "run" ? Verb::kRun : Verb::kSample, argc - 1, argv + 1);
  if (!request) return complain(kOwnError, request.error().message);
  if (request->help) {
    fmt::print("{}", help_text(request->face, request->verb));
    return kOk;
  }
  return run(*request);
}

}  // namespace tacho::cli
