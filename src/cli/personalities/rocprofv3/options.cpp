// The table of rocprofv3's options and the parsing of its command line (options.h).
#include "cli/personalities/rocprofv3/options.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "cli/files/writer_names.h"
#include "cli/options/word_reader.h"

namespace tacho::cli::rocprofv3 {
namespace {

constexpr std::string_view kTracing = "Tracing", kAggregate = "Tracing, several at once", kCounters = "Counters",
                           kSampling = "PC sampling", kStatistics = "Statistics", kNames = "Kernel names",
                           kFilter = "Filters and periods", kOutput = "Output", kPerfetto = "Perfetto",
                           kThreadTrace = "Thread trace (ATT)", kOther = "Other", kHidden = "";

constexpr Option kOptions[] = {
    {"input", "-i", OptionKind::kValue, kOther,
     "input file: .txt with pmc: lines, .yaml or .json with jobs; one run a job", ""},
    {"output-file", "-o", OptionKind::kValue, kOutput,
     "prefix of file names (default: <pid>; with -d %hostname%/%pid%)", ""},
    {"output-directory", "-d", OptionKind::kValue, kOutput, "folder of the files (default: the current one)", ""},
    {"output-format", "-f", OptionKind::kList, kOutput, "default csv; otf2 is not written",
     "csv json pftrace rocpd otf2"},
    {"output-config", "", OptionKind::kFlag, kOutput, "write <prefix>_config.json", ""},
    {"overwrite", "", OptionKind::kFlag, kOutput, "tacho: replace existing files of an explicit -o", ""},
    {"keep-trace", "", OptionKind::kValue, kOutput, "tacho: keep the recording itself in this .tacho file", ""},
    {"extra-columns", "", OptionKind::kFlag, kOutput, "tacho: a Size_Bytes column for copies", ""},
    {"log-level", "", OptionKind::kValue, kOther, "how much to say", "fatal error warning info trace env config"},
    {"extra-counters", "-E", OptionKind::kValue, kCounters, "YAML file with further counter definitions", ""},
    {"runtime-trace", "-r", OptionKind::kFlag, kAggregate,
     "runtime API calls (OpenCL, CUDA, HIP), markers, kernels, copies, allocations, RCCL", ""},
    {"sys-trace", "-s", OptionKind::kFlag, kAggregate, "everything; parts can be negated: --sys-trace --hsa-trace=no",
     ""},
    {"hip-trace", "", OptionKind::kFlag, kTracing, "HIP API calls, runtime and compiler", ""},
    {"hip-runtime-trace", "", OptionKind::kFlag, kTracing, "HIP runtime calls", ""},
    {"hip-compiler-trace", "", OptionKind::kFlag, kTracing, "HIP compiler calls", ""},
    {"opencl-trace", "", OptionKind::kFlag, kTracing, "tacho: OpenCL calls", ""},
    {"cuda-trace", "", OptionKind::kFlag, kTracing, "tacho: CUDA runtime and driver calls", ""},
    {"hsa-trace", "", OptionKind::kFlag, kTracing, "HSA calls, all groups", ""},
    {"hsa-core-trace", "", OptionKind::kFlag, kTracing, "HSA core calls", ""},
    {"hsa-amd-trace", "", OptionKind::kFlag, kTracing, "HSA calls of AMD's extension", ""},
    {"hsa-image-trace", "", OptionKind::kFlag, kTracing, "HSA image calls", ""},
    {"hsa-finalizer-trace", "", OptionKind::kFlag, kTracing, "HSA finalizer calls", ""},
    {"marker-trace", "", OptionKind::kFlag, kTracing, "ranges and marks of the program: ROCTx, NVTX, tacho.h", ""},
    {"kernel-trace", "", OptionKind::kFlag, kTracing, "kernel dispatches", ""},
    {"memory-copy-trace", "", OptionKind::kFlag, kTracing, "memory copies (and fills)", ""},
    {"memory-allocation-trace", "", OptionKind::kFlag, kTracing, "device memory allocations and frees", ""},
    {"scratch-memory-trace", "", OptionKind::kFlag, kTracing, "scratch memory operations", ""},
    {"rccl-trace", "", OptionKind::kFlag, kTracing, "RCCL calls", ""},
    {"rocdecode-trace", "", OptionKind::kFlag, kTracing, "rocDecode calls", ""},
    {"rocjpeg-trace", "", OptionKind::kFlag, kTracing, "rocJPEG calls", ""},
    {"kokkos-trace", "", OptionKind::kFlag, kTracing, "Kokkos regions; implies --marker-trace and --kernel-rename", ""},
    {"kfd-trace", "", OptionKind::kFlag, kHidden, "kernel driver events", ""},
    {"kfd-page-migration-trace", "", OptionKind::kFlag, kHidden, "kernel driver: migrated pages", ""},
    {"kfd-page-mapping-trace", "", OptionKind::kFlag, kHidden, "kernel driver: page faults and mappings", ""},
    {"kfd-queue-trace", "", OptionKind::kFlag, kHidden, "kernel driver: evicted queues", ""},
    {"kfd-dropped-events-trace", "", OptionKind::kFlag, kHidden, "kernel driver: events that it dropped", ""},
    {"hip-graph-trace", "", OptionKind::kFlag, kHidden, "HIP graphs", ""},
    {"hip-event-trace", "", OptionKind::kFlag, kHidden, "HIP events", ""},
    {"rocshmem-trace", "", OptionKind::kFlag, kHidden, "rocSHMEM calls", ""},
    {"ompt-trace", "", OptionKind::kList, kHidden, "OpenMP tools",
     "all thread parallel task sync mutex target device error y yes t true on 1 n no f false off 0"},
    {"hipfile-trace", "", OptionKind::kFlag, kHidden, "hipFile calls", ""},
    {"pmc", "", OptionKind::kList, kCounters,
     "counters to collect in one pass; each further --pmc is a pass of its own", ""},
    {"replay-mode", "", OptionKind::kValue, kCounters,
     "several passes: application runs the program again (default); kernel each kernel, with its memory put back",
     "kernel application"},
    {"kernel-replay-beta-enabled", "", OptionKind::kFlag, kCounters, "required by --replay-mode kernel", ""},
    {"spm", "", OptionKind::kList, kHidden, "streaming counters", ""},
    {"spm-beta-enabled", "", OptionKind::kFlag, kHidden, "", ""},
    {"spm-sample-interval", "", OptionKind::kValue, kHidden, "", ""},
    {"spm-sample-interval-unit", "", OptionKind::kValue, kHidden, "", "sclk_cycles"},
    {"pc-sampling-beta-enabled", "", OptionKind::kFlag, kSampling, "required by the three below", ""},
    {"pc-sampling-unit", "", OptionKind::kValue, kSampling, "unit of the interval", "instructions cycles time"},
    {"pc-sampling-method", "", OptionKind::kValue, kSampling, "how", "stochastic host_trap"},
    {"pc-sampling-interval", "", OptionKind::kValue, kSampling, "interval in that unit", ""},
    {"stats", "", OptionKind::kFlag, kStatistics, "*_stats.csv files", ""},
    {"summary", "-S", OptionKind::kFlag, kStatistics, "one table over everything at the end", ""},
    {"summary-per-domain", "-D", OptionKind::kFlag, kStatistics, "one table a domain", ""},
    {"summary-groups", "", OptionKind::kList, kStatistics,
     "one table for the domains that match each regular expression", ""},
    {"summary-output-file", "", OptionKind::kValue, kStatistics,
     "where the tables go: stderr (default), stdout or a file name", ""},
    {"summary-units", "-u", OptionKind::kValue, kStatistics, "unit of the tables", "sec msec usec nsec"},
    {"mangled-kernels", "-M", OptionKind::kFlag, kNames, "names as in the code object", ""},
    {"truncate-kernels", "-T", OptionKind::kFlag, kNames, "names without arguments and templates", ""},
    {"kernel-rename", "", OptionKind::kFlag, kNames, "the innermost marker range around the launch replaces the name",
     ""},
    {"kernel-include-regex", "", OptionKind::kValue, kFilter, "counters: only kernels that match", ""},
    {"kernel-exclude-regex", "", OptionKind::kValue, kFilter, "counters: not kernels that match", ""},
    {"kernel-iteration-range", "", OptionKind::kList, kFilter,
     "counters: only these dispatches of each kernel, as [1-2],[5]", ""},
    {"collection-period", "-P", OptionKind::kList, kFilter, "delay:duration:repeat, several; repeat 0 = for ever", ""},
    {"collection-period-unit", "", OptionKind::kValue, kFilter, "unit of the periods (default: sec)",
     "hour min sec msec usec nsec"},
    {"selected-regions", "", OptionKind::kFlag, kFilter,
     "record only between roctxProfilerResume and roctxProfilerPause", ""},
    {"selected-regions-ref-count", "", OptionKind::kFlag, kHidden, "", ""},
    {"profile-mpi-ranks", "", OptionKind::kValue, kFilter,
     "record only these ranks, as 0-3,8; the others run as they are", ""},
    {"mpi-world-rank-variable", "", OptionKind::kValue, kFilter, "variable with this process's rank in its job", ""},
    {"mpi-world-size-variable", "", OptionKind::kValue, kFilter, "variable with the number of ranks; both or none", ""},
    {"perfetto-backend", "", OptionKind::kValue, kPerfetto,
     "inprocess; system is not there: tacho writes the file itself", "inprocess system"},
    {"perfetto-buffer-size", "", OptionKind::kValue, kPerfetto, "not needed: nothing is buffered", ""},
    {"perfetto-buffer-fill-policy", "", OptionKind::kValue, kPerfetto, "not needed likewise", "discard ring_buffer"},
    {"perfetto-shmem-size-hint", "", OptionKind::kValue, kPerfetto, "not needed likewise", ""},
    {"list-avail", "-L", OptionKind::kFlag, kOther, "devices and counters that can be collected", ""},
    {"group-by-queue", "", OptionKind::kFlag, kOutput, "pftrace: a line per hardware queue instead of per stream", ""},
    {"agent-index", "-A", OptionKind::kValue, kOutput, "numbers of agents; default relative",
     "absolute relative type-relative"},
    {"disable-signal-handlers", "", OptionKind::kFlag, kOther,
     "always so: tacho installs no signal handler in the program", ""},
    {"process-sync", "", OptionKind::kFlag, kOther, "not needed: tacho writes outputs after all processes have ended",
     ""},
    {"minimum-output-data", "", OptionKind::kValue, kOutput,
     "write no files when they would be smaller than this many KB", ""},
    {"preload", "", OptionKind::kList, kOther, "libraries to preload into the program", ""},
    {"rocm-root", "", OptionKind::kValue, kOther, "ROCm installation: not used, there is no rocprofiler-sdk source",
     ""},
    {"sdk-soversion", "", OptionKind::kValue, kOther, "not used likewise", ""},
    {"sdk-version", "", OptionKind::kValue, kOther, "not used likewise", ""},
    {"readlink", "", OptionKind::kFlag, kHidden, "", ""},
    {"realpath", "", OptionKind::kFlag, kHidden, "", ""},
    {"echo", "", OptionKind::kFlag, kHidden, "print the command and environment instead of running it", ""},
    {"suppress-marker-preload", "", OptionKind::kFlag, kHidden, "", ""},
    {"benchmark-mode", "", OptionKind::kValue, kHidden, "",
     "disabled-sdk-contexts sdk-buffer-overhead sdk-callback-overhead tool-runtime-overhead execution-profile"},
    {"pid", "-p", OptionKind::kValue, kOther, "record this process, which already runs, until Enter or Ctrl-C", ""},
    {"attach", "", OptionKind::kValue, kOther, "the same", ""},
    {"attach-duration-msec", "", OptionKind::kValue, kOther, "let it go after so many milliseconds", ""},
    {"attach-children", "", OptionKind::kFlag, kOther, "its descendants, too (default: yes)", ""},
    {"attach-sync-output", "", OptionKind::kFlag, kOther, "always so: the files are complete when the command ends",
     ""},
    {"att", "", OptionKind::kFlag, kThreadTrace, "thread trace", ""},
    {"advanced-thread-trace", "", OptionKind::kFlag, kHidden, "", ""},
    {"att-no-intercept", "", OptionKind::kFlag, kThreadTrace, "a quick scan, without queues that are intercepted", ""},
    {"att-consecutive-kernels", "", OptionKind::kValue, kThreadTrace, "number of kernels in a row", ""},
    {"att-resource-mode", "", OptionKind::kValue, kThreadTrace, "when to reserve memory", "default hsa code-object"},
    {"att-perfcounter-target-only", "", OptionKind::kFlag, kThreadTrace, "counters of the target alone", ""},
    {"att-no-detail", "", OptionKind::kFlag, kThreadTrace, "occupancy alone", ""},
    {"att-library-path", "", OptionKind::kList, kThreadTrace, "decoder library", ""},
    {"att-target-cu", "", OptionKind::kValue, kThreadTrace, "compute unit", ""},
    {"att-simd-select", "", OptionKind::kValue, kThreadTrace, "mask of SIMDs, or one SIMD", ""},
    {"att-buffer-size", "", OptionKind::kValue, kThreadTrace, "bytes of the buffer", ""},
    {"att-shader-engine-mask", "", OptionKind::kValue, kThreadTrace, "mask of shader engines", ""},
    {"att-gpu-index", "", OptionKind::kValue, kThreadTrace, "numbers of GPUs, as 0,1", ""},
    {"att-perfcounters", "", OptionKind::kValue, kThreadTrace, "counters with SIMD masks", ""},
    {"att-perfcounter-ctrl", "", OptionKind::kValue, kThreadTrace, "their period, 1 to 32; 0 = off", ""},
    {"att-activity", "", OptionKind::kValue, kThreadTrace, "activity counters with this period, 1 to 16", ""},
    {"att-serialize-all", "", OptionKind::kFlag, kThreadTrace, "serialise all kernels", ""},
};

}  // namespace

std::span<const Option> options_table() {
  return kOptions;
}

const Option* find_option(std::string_view name) {
  return options::find(kOptions, name);
}

std::vector<std::string> counters_of(const std::vector<std::string>& words) {
  std::vector<std::string> counters;
  for (const std::string& word : words)
    for (size_t at = 0; at < word.size();) {
      const size_t end = std::min(word.find_first_of(" \t,", at), word.size());
      if (end > at) counters.push_back(word.substr(at, end - at));
      at = end + 1;
    }
  return counters;
}

namespace {

// The rules of rocprofv3's command line.
class OptionSyntax : public options::Syntax {
 public:
  OptionSyntax(CommandLine& line, bool separated) : line_(line), separated_(separated) {}

  bool is_option(const std::string& word) const override { return word.size() > 1 && word[0] == '-'; }

  Result<options::Takes> look_up(const options::Spelling& given) override {
    option_ = nullptr;
    if (asks_for_us(given)) return options::Takes{0, 0, nullptr};
    if (given.name.starts_with("--")) {
      option_ = find_option(std::string_view(given.name).substr(2));
      if (option_ == nullptr) {
        const std::string close = options::suggestion(kOptions, given.name);
        return fail("unknown option {}{}{}; see rocprofv3 --help", given.name, close, close.empty() ? "" : "?");
      }
    } else {
      option_ = options::find_short(kOptions, given.name);
      if (option_ == nullptr) return fail("unknown option {}; see rocprofv3 --help", given.word);
    }
    switch (option_->kind) {
      case OptionKind::kFlag:
        // `--stats no`: a yes or no that follows belongs to the flag; any other word starts the command.
        return options::Takes{0, 1, [](const std::string& word) { return options::truth(word).has_value(); }};
      case OptionKind::kValue:
        return options::Takes{0, 1, is_value};
      case OptionKind::kList:
        break;
    }
    if (!may_be_alone()) return options::Takes{0, options::Takes::kAny, is_value};
    return options::Takes{0, options::Takes::kAny, [this](const std::string& word) {
                            return is_value(word) && options::is_choice(*option_, word);
                          }};
  }

  Status take(const options::Spelling& given, std::vector<std::string> values) override {
    if (option_ == nullptr) {
      (given.name == "-v" || given.name == "--version" ? line_.version : line_.help) = true;
      return {};
    }
    if (may_be_alone() && values.empty()) values = {"all"};
    if (option_->name == "output-format") {
      std::vector<std::string> formats;
      for (const std::string& value : values)
        for (std::string& format : words_of(value)) formats.push_back(std::move(format));
      values = std::move(formats);
    }
    if (option_->name == "pmc") {
      values = counters_of(values);
      if (!values.empty()) line_.counter_groups.push_back(values);
    }
    const std::string shown =
        given.name.starts_with("--") ? fmt::format("--{}", option_->name) : std::string(option_->short_name);
    return line_.given.set(*option_, std::move(values), shown);
  }

  Result<bool> operand(options::WordReader& words) override {
    if (separated_) return fail("'{}' stands before -- but belongs to no option", words.peek());
    return false;  // the command begins: everything else belongs to it
  }

 private:
  // A word that may be an option's value: none that looks like an option, but for -5.
  static bool is_value(const std::string& word) {
    return word.size() < 2 || word[0] != '-' || (word[1] >= '0' && word[1] <= '9');
  }
  static bool asks_for_us(const options::Spelling& given) {
    if (given.name == "-v" || given.name == "-h") return true;
    return (given.name == "--version" || given.name == "--help") && !given.attached;
  }
  bool may_be_alone() const { return option_->name == "ompt-trace"; }

  CommandLine& line_;
  bool separated_;
  const Option* option_ = nullptr;  // the one that was looked up last
};

}  // namespace

Result<CommandLine> parse_command_line(int argc, char** argv) {
  CommandLine out;
  options::WordReader words(argc, argv);
  OptionSyntax syntax(out, words.separated());
  TACHO_TRY(options::read_options(words, syntax));
  out.command = words.rest();
  return out;
}

std::string help_text() {
  std::string out = "rocprofv3's command line on every device that tacho traces.\n\n"
                    "Usage: rocprofv3 [options] -- program [arguments]\n"
                    "       rocprofv3 -h, --help | -v, --version | -L, --list-avail\n";
  for (const std::string_view group : {kAggregate, kTracing, kStatistics, kNames, kOutput, kFilter, kCounters,
                                       kSampling, kPerfetto, kThreadTrace, kOther}) {
    out += fmt::format("\n{}:\n", group);
    for (const Option& option : kOptions)
      if (option.group == group) out += options::help_line(option, 34);
  }
  out += "\nExamples:\n"
         "  rocprofv3 --stats --sys-trace --kernel-trace -- python3 app.py\n"
         "      <pid>_kernel_stats.csv and its kin, one set per process\n"
         "  rocprofv3 --sys-trace --output-format pftrace -d traces -- ./app\n"
         "      traces/<host>/<pid>_results.pftrace for https://ui.perfetto.dev\n"
         "What differs from AMD's: docs/differences.md.\n";
  return out;
}

}  // namespace tacho::cli::rocprofv3
