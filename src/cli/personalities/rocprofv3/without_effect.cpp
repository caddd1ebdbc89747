// Options that change nothing here (without_effect.h).
#include "cli/personalities/rocprofv3/without_effect.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <string_view>

#include "base/format.h"

namespace tacho::cli::rocprofv3 {
namespace {

using Remarks = std::vector<std::string>;

// True if the option is given and, where it can be negated, is not.
bool wanted(const Given& given, std::string_view name) {
  if (!given.has(name)) return false;
  if (find_option(name)->kind == OptionKind::kFlag) return given.on(name);
  return given.list(name).size() != 1 || options::truth(given.value(name)) != false;
}

// The options of `names` that are wanted, as "--a, --b"; "" where there is none.
std::string wanted_of(const Given& given, std::span<const std::string_view> names) {
  std::string out;
  for (const std::string_view name : names)
    if (wanted(given, name)) out += fmt::format("{}--{}", out.empty() ? "" : ", ", name);
  return out;
}

// Records for which tacho has no source.
void remark_on_domains(const Given& given, Remarks& remarks) {
  static constexpr std::string_view kAbsent[] = {"scratch-memory-trace",
                                                 "rocdecode-trace",
                                                 "rocjpeg-trace",
                                                 "kfd-trace",
                                                 "kfd-page-migration-trace",
                                                 "kfd-page-mapping-trace",
                                                 "kfd-queue-trace",
                                                 "kfd-dropped-events-trace",
                                                 "rocshmem-trace",
                                                 "ompt-trace",
                                                 "hipfile-trace"};
  if (const std::string absent = wanted_of(given, kAbsent); !absent.empty())
    remarks.push_back(
        fmt::format("{}: tacho has no source of such records; the option is accepted and records nothing", absent));
  if (wanted(given, "hip-graph-trace"))
    remarks.push_back(
        "--hip-graph-trace records nothing of its own: --kernel-trace tells of each kernel which graph it "
        "belongs to, and the rocpd output sums up each launch");
  if (wanted(given, "hip-event-trace"))
    remarks.push_back("--hip-event-trace records nothing: of events there are the HIP calls alone (--hip-trace), not "
                      "the barriers on the GPU");
}

// No device here streams counters.
Status check_streaming(const InputJob& job, Remarks& remarks) {
  const Given& given = job.given;
  static constexpr std::string_view kStreaming[] = {"spm", "spm-sample-interval", "spm-sample-interval-unit"};
  const std::string options = wanted_of(given, kStreaming);
  if (options.empty()) return {};
  if (!given.on("spm-beta-enabled")) return fail("{}: needs --spm-beta-enabled", options);
  if (!given.has("spm")) return fail("{}: needs --spm with the counters to stream", options);
  if (job.counts() || given.on("pc-sampling-beta-enabled"))
    return fail("--spm excludes --pmc and PC sampling: the GPU does one of them at a time");
  if (given.has("spm-sample-interval")) {
    const std::string text = given.value("spm-sample-interval");
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value == 0)
      return fail("--spm-sample-interval '{}' is not a whole number from 1 on", text);
  }
  remarks.push_back(fmt::format("{}: tacho does not stream counters; the option is accepted and records nothing "
                                "(--pmc counts each dispatch, `tacho trace --device-counters` whole GPUs over time)",
                                options));
  return {};
}

// No device here provides thread traces; values that rocprofv3 would refuse are mistakes nevertheless.
Status check_thread_trace(const Given& given) {
  struct Number {
    const char* option;
    uint64_t least, most;
  };
  static constexpr Number kNumbers[] = {
      {"att-target-cu", 0, UINT64_MAX},          {"att-simd-select", 0, UINT64_MAX}, {"att-buffer-size", 1, UINT64_MAX},
      {"att-shader-engine-mask", 1, UINT64_MAX}, {"att-perfcounter-ctrl", 0, 32},    {"att-activity", 0, 16},
      {"att-consecutive-kernels", 0, UINT64_MAX}};
  for (const Number& number : kNumbers) {
    if (!given.has(number.option)) continue;
    const std::string text = given.value(number.option);
    const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data() + (hexadecimal ? 2 : 0), end, value, hexadecimal ? 16 : 10);
    if (error != std::errc() || at != end) return fail("--{} '{}' is not a whole number", number.option, text);
    if (value < number.least || value > number.most)
      return fail("--{} {}: must be {}", number.option, text,
                  number.most == UINT64_MAX ? fmt::format("at least {}", number.least)
                                            : fmt::format("from {} to {}", number.least, number.most));
  }
  if (given.has("att-activity") && (given.has("att-perfcounters") || given.has("att-perfcounter-ctrl")))
    return fail("--att-activity chooses counters itself: --att-perfcounters and --att-perfcounter-ctrl contradict it");
  return {};
}

void remark_on_thread_trace(const Given& given, Remarks& remarks) {
  for (const Option& option : options_table())
    if ((option.name.starts_with("att-") || option.name == "att" || option.name == "advanced-thread-trace") &&
        wanted(given, option.name)) {
      remarks.push_back(fmt::format("--{}: no device that tacho traces gives thread traces; "
                                    "the option is accepted and records nothing",
                                    option.name));
      return;
    }
}

// Options of runs that trace in a run that counts, and the other way round.
void remark_on_counting(const InputJob& job, Remarks& remarks) {
  const Given& given = job.given;
  if (!job.counts()) {
    for (const char* option : {"kernel-include-regex", "kernel-exclude-regex", "kernel-iteration-range"})
      if (given.has(option)) {
        remarks.push_back(fmt::format("--{} restricts counter collection only: this run traces every kernel", option));
        break;
      }
    static constexpr std::string_view kReplay[] = {"replay-mode", "kernel-replay-beta-enabled"};
    if (const std::string replay = wanted_of(given, kReplay); !replay.empty())
      remarks.push_back(fmt::format("{} has no effect without --pmc", replay));
    return;
  }
  if (given.on("kernel-replay-beta-enabled") && given.value("replay-mode") != "kernel")
    remarks.push_back("--kernel-replay-beta-enabled has no effect without --replay-mode kernel");
  if (job.group_interval)
    remarks.push_back("pmc_group_interval has no effect: every dispatch is measured with every group");
}

Status remark_on_files(const InputJob& job, Remarks& remarks) {
  const Given& given = job.given;
  if (given.has("extra-counters")) {
    const std::string file = given.value("extra-counters");
    if (access(file.c_str(), R_OK) != 0) return fail("--extra-counters {}: {}", file, strerror(errno));
    remarks.push_back(job.counts() ? "--extra-counters: tacho reads no definitions of counters and collects those that "
                                     "--list-avail lists"
                                   : "--extra-counters has no effect without --pmc");
  }
  static constexpr std::string_view kVersions[] = {"rocm-root", "sdk-soversion", "sdk-version"};
  if (const std::string unused = wanted_of(given, kVersions); !unused.empty())
    remarks.push_back(
        fmt::format("{}: tacho looks for ROCm's libraries in $LD_LIBRARY_PATH, $ROCM_PATH and /opt/rocm; the option is "
                    "accepted and changes nothing",
                    unused));
  if (given.has("rocm-root") && !std::filesystem::is_directory(given.value("rocm-root")))
    return fail("--rocm-root {}: is not a folder", given.value("rocm-root"));
  return {};
}

}  // namespace

Result<Remarks> options_without_effect(const InputJob& job) {
  const Given& given = job.given;
  Remarks remarks;
  remark_on_domains(given, remarks);
  TACHO_TRY(check_streaming(job, remarks));
  remark_on_counting(job, remarks);
  TACHO_TRY(check_thread_trace(given));
  remark_on_thread_trace(given, remarks);
  if (given.value("perfetto-backend") == "system")
    remarks.emplace_back(
        "--perfetto-backend system: there is no tracing daemon in between; the trace is written to a file");
  for (const char* option : {"perfetto-buffer-size", "perfetto-buffer-fill-policy", "perfetto-shmem-size-hint"})
    if (given.has(option)) {
      remarks.push_back(fmt::format("--{} is not needed: traces are written as a stream of any length", option));
      break;
    }
  TACHO_TRY(remark_on_files(job, remarks));
  if (given.has("benchmark-mode"))
    remarks.emplace_back(
        "--benchmark-mode measures parts of AMD's own tool, which are not here; the run is an ordinary one");
  if (wanted(given, "selected-regions-ref-count"))
    remarks.emplace_back(
        "--selected-regions-ref-count has no effect: the first roctxProfilerPause pauses, however often "
        "roctxProfilerResume was called");
  return remarks;
}

}  // namespace tacho::cli::rocprofv3
