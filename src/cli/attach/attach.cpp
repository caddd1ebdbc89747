// `tacho attach PID`: records a program that already runs, and lets it go again.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "attach/choice.h"
#include "attach/session.h"
#include "base/files/output_claim.h"
#include "base/files/run_name.h"
#include "cli/command.h"
#include "cli/files/writer_names.h"
#include "cli/options/recording_options.h"
#include "cli/output/summary.h"
#include "cli/shared/command_line.h"
#include "cli/shared/time_text.h"
#include "cli/target/process_options.h"
#include "counter/device_samples.h"
#include "report/output.h"
#include "trace/trace.h"

namespace tacho::cli {
namespace {

struct AttachRequest {
  TraceRequest trace;
  attach::ProcessChoice choice;
  std::string at;
  uint64_t launches = 0;
  counter::SampleRequest samples;  ///< --pmc
  bool interval_given = false;
};

// Options of tacho trace that need a program's start, and why.
constexpr std::string_view kTorch = "it changes PyTorch's functions when Python imports them",
                           kCounters =
                               "the library that reads them takes part from a program's start only; --pmc samples GPUs",
                           kMemory = "PyTorch's allocators report to it only from their first moment on",
                           kFormat = "tacho attach writes .tacho, of which tacho export makes other formats";
constexpr std::pair<std::string_view, std::string_view> kAtStart[] = {
    {"--follow", "tacho attach ends with the process"},
    {"--torch-trace", kTorch},
    {"--torch-shapes", kTorch},
    {"--ranks", "choose the processes by number, --name, --cgroup or --container"},
    {"--device-counters", kCounters},
    {"--device-counters-hz", kCounters},
    {"--memory", kMemory},
    {"--memory-keep", kMemory},
    {"--format", kFormat},
    {"--rpd-schema", kFormat},
    {"--view", "open the trace with tacho view afterwards"},
};

Status check_options(const TraceRequest& request) {
  const auto given = [&](std::string_view option) {
    return std::find(request.given.begin(), request.given.end(), option) != request.given.end();
  };
  for (const auto& [option, why] : kAtStart)
    if (given(option)) return fail("{} is for programs that tacho starts: {}", option, why);
  const event::Configuration& target = request.launch.recording.target;
  if (target.sampler == event::Sampler::kPerf)
    return fail("--sampler perf is for programs that tacho starts: the kernel samples threads from their start on; "
                "--sampler timer samples those of a program that runs");
  if (target.sampler == event::Sampler::kTimer && target.sample_clock == event::SampleClock::kWall)
    return fail(
        "--sample-clock wall is for programs that tacho starts: its signals would interrupt what the threads of "
        "a running one wait for; leave it out to sample the threads that compute");
  return {};
}

// What cannot be had of a program that runs, and what came of it where it was tried (docs/attach.md).
Status refuse_pc_samples(int argc, char** argv) {
  constexpr std::string_view kOption = "--pc-sampling";
  for (int i = 1; i < argc; ++i)
    if (const std::string_view word = argv[i]; word == kOption || word.starts_with(std::string(kOption) + "="))
      return fail(
          "{}: PC samples are for programs that tacho starts (tacho profile --pc-sampling): begun in a running one "
          "they came to nothing, and one that launched graphs did not live through it",
          kOption);
  return {};
}

Status choose_counters(AttachRequest& request, const std::string& list) {
  std::vector<std::string>& counters = request.samples.counters;
  for (std::string& name : words_of(list)) {
    if (name.empty() || !std::all_of(name.begin(), name.end(),
                                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; }))
      return fail("--pmc {}: \"{}\" is not the name of a metric, such as dram__bytes_read.sum", list, name);
    if (std::find(counters.begin(), counters.end(), name) == counters.end()) counters.push_back(std::move(name));
  }
  if (counters.empty()) return fail("--pmc: name metrics, separated by commas: --pmc dram__bytes_read.sum");
  return {};
}

Status choose_interval(AttachRequest& request, const std::string& text) {
  request.interval_given = true;
  const auto ns = parse_moment("+" + text, 0, 0, "--pmc-interval");
  if (!ns || *ns < counter::kLeastInterval || *ns > counter::kMostInterval)
    return fail("--pmc-interval {}: write a time from 100us to 1s", text);
  request.samples.interval_ns = *ns;
  return {};
}

// Whether anything was asked for that only the program itself can tell.
bool asks_the_program(const AttachRequest& request) {
  static constexpr std::string_view kOutside[] = {"--output",    "--overwrite",    "--quiet",
                                                  "--telemetry", "--telemetry-hz", "--delay",
                                                  "--duration",  "--max-size",     "--ring"};
  return request.launches != 0 ||
         std::any_of(request.trace.given.begin(), request.trace.given.end(), [](const std::string& option) {
           return std::find(std::begin(kOutside), std::end(kOutside), option) == std::end(kOutside);
         });
}

// "GPU 0 (NVIDIA H100) and GPU 1 (NVIDIA H100)"
std::string sampled_gpus(const launch::DeviceSamples& samples) {
  std::string text;
  for (size_t i = 0; i < samples.devices().size(); ++i) {
    const launch::SampledDevice& device = samples.devices()[i];
    text += fmt::format("{}GPU {} ({})",
                        i == 0                              ? ""
                        : i + 1 == samples.devices().size() ? " and "
                                                            : ", ",
                        device.index, device.name);
  }
  return text;
}

Result<OutputClaim> claim_output(const TraceRequest& trace, pid_t first) {
  if (const format::Writer* const other = writer_of_ending(trace.output); other != nullptr)
    return fail("-o {}: tacho attach writes .tacho, of which tacho export -f {} makes that", trace.output, other->name);
  if (!trace.output.empty()) return OutputClaim::exactly(trace.output, trace.overwrite);
  std::vector<std::string> words = attach::command_of(first);
  if (words.empty()) {
    TACHO_ASSIGN(const attach::TargetFacts facts, attach::look_at(first));
    words = {facts.name};
  }
  const std::string base = run_name(words) + ".tacho";
  return trace.overwrite ? OutputClaim::exactly(base, true) : OutputClaim::numbered(base);
}

// "attached to process 4711 after 0.31 s; one thread was stopped for 0.9 ms; Ctrl-C ends the recording"
std::string attached_sentence(const attach::SessionResult& result, bool ends) {
  const size_t count = result.targets.size();
  std::string who = count == 1 ? "process " : fmt::format("{} processes, ", count);
  constexpr size_t kNamed = 8;
  for (size_t i = 0; i < std::min(count, kNamed); ++i)
    who += fmt::format("{}{}", i == 0 ? "" : ", ", result.targets.at(i).pid);
  if (count > kNamed) who += ", ...";
  const std::string stopped = count > 1 ? "threads of each were stopped for at most"
                              : result.stops == 1
                                  ? "one thread was stopped for"
                                  : fmt::format("{} threads were stopped, one after the other, for", result.stops);
  return fmt::format("attached to {} after {:.2f} s; {} {:.1f} ms{}", who, result.attached_s, stopped,
                     result.stopped_s * 1e3, ends ? "" : "; Ctrl-C ends the recording");
}

// "GPU 0 (NVIDIA H100) is sampled every 10 ms, whatever runs on it; nothing enters process 4711; Ctrl-C ends ..."
std::string sampled_sentence(const AttachRequest& request, const launch::DeviceSamples& samples, bool stay_out,
                             size_t processes) {
  const size_t gpus = samples.devices().size();
  return fmt::format("{} {} sampled every {:g} ms, whatever runs on {}{}", sampled_gpus(samples),
                     gpus == 1 ? "is" : "are", static_cast<double>(request.samples.interval_ns) * 1e-6,
                     gpus == 1 ? "it" : "them",
                     !stay_out        ? ""
                     : processes == 1 ? "; nothing enters the program"
                                      : "; nothing enters the programs");
}

Result<int64_t> begin_of(const std::string& at) {
  if (at.empty()) return 0;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return attach::moment_of(at, int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
}

int attach_to(AttachRequest& request) {
  TraceRequest& trace = request.trace;
  if (const Status good = check_options(trace); !good) return complain(kBadInput, good.error().message);
  if (const Status ready = complete(trace); !ready) return complain(kBadInput, ready.error().message);
  const auto begin = begin_of(request.at);
  if (!begin) return complain(kBadInput, begin.error().message);
  const attach::ProcessChoice& choice = request.choice;
  if (choice.numbers.empty() && choice.names.empty() && choice.cgroups.empty() && choice.containers.empty())
    return complain(kBadInput, "say which process: its number, --name, --cgroup or --container");
  const auto chosen = attach::choose(choice);
  if (!chosen) return complain(kBadInput, chosen.error().message);
  const auto output = claim_output(trace, chosen->numbers.front());
  if (!output) return complain(kBadInput, output.error().message);
  std::unique_ptr<launch::DeviceSamples> samples;
  if (!request.samples.counters.empty()) {
    request.samples.processes = chosen->numbers;
    auto ready = counter::sample_devices(request.samples);
    if (!ready) return complain(kBadInput, "--pmc: " + ready.error().message);
    samples = std::move(*ready);
  } else if (request.interval_given) {
    return complain(kBadInput, "--pmc-interval needs --pmc: add that or leave --pmc-interval out");
  }
  trace.launch.recording.output = output->name();
  attach::SessionOptions options;
  options.recording = trace.launch.recording;
  options.processes = chosen->numbers;
  options.left = chosen->left_out;
  options.launches = request.launches;
  options.begin_at = *begin;
  options.samples = samples.get();
  options.stay_out = samples != nullptr && !asks_the_program(request);
  if (!trace.quiet)
    options.begun = [&](const attach::SessionResult& result) {
      for (const std::string& warning : result.warnings) complain(kOk, warning);
      const bool ends = options.recording.duration_s > 0 || options.launches > 0;
      if (!options.stay_out) complain(kOk, attached_sentence(result, ends || samples != nullptr));
      if (samples != nullptr)
        complain(kOk, sampled_sentence(request, *samples, options.stay_out, result.targets.size()) +
                          (ends ? "" : "; Ctrl-C ends the recording"));
    };
  const auto result = attach::record(options);
  if (!result) return complain(kBadInput, result.error().message);
  if (!result->written) return complain(kBadInput, result->written.error().message);
  const auto written = trace::Trace::open(options.recording.output);
  if (!written) return complain(kBadInput, written.error().message);
  if (samples != nullptr && samples->count() == 0)
    complain(kOk,
             fmt::format("--pmc: not one sample lies within the recording{}{}", samples->problems().empty() ? "" : ": ",
                         samples->problems().empty() ? "" : samples->problems().front()));
  if (!trace.quiet) report::put(summary_of_run(**written, {}, ""), report::Stream::kError);
  return kOk;
}

}  // namespace

int run_attach(int argc, char** argv) {
  CommandOptions app("Record a program that already runs, and let it go again.", "tacho attach");
  app.footer(
      "Examples:\n"
      "  tacho attach 4711 --duration 5     five seconds of process 4711, into its program's name with .tacho\n"
      "  tacho attach 4711 -o run.tacho     until Ctrl-C\n"
      "  tacho attach 4711 --for-launches 1000 --api-args\n"
      "  tacho attach --name train.py --children --at /10s --duration 5    all ranks of this host into one file\n"
      "  tacho doctor 4711                  whether tacho may, without attaching\n"
      "The program goes on while tacho gets in, records and leaves, and again and again with other options.\n"
      "Exit code: 0 recorded, 1 the process cannot be attached to, which one sentence explains.");
  AttachRequest request;
  std::optional<Error> refusal;
  app.add_option("PID", request.choice.numbers, "numbers of processes").positive().expected(0, -1);
  declare_process_options(app, request.choice);
  app.add_option(
         "--at", request.at,
         "begin at this moment on every host: /10s is the next full ten seconds; or a time of the day, 14:30:05")
      .type_name("TIME");
  app.add_option("--for-launches", request.launches, "let go after this many launches of kernels")
      .type_name("N")
      .positive();
  const options::Declared late = options::declare(app, late_options(), request.trace, refusal);
  std::optional<Error> bad_counters;
  const auto chosen_by = [&](Status (*choose)(AttachRequest&, const std::string&)) {
    return [&request, &bad_counters, choose](const std::string& text) {
      if (const Status taken = choose(request, text); !taken && !bad_counters) bad_counters = taken.error();
    };
  };
  app.add_option_function(
         "--pmc", chosen_by(choose_counters),
         "sample counters of the program's GPUs from outside: dram__bytes_read.sum,...; alone, nothing "
         "enters the program")
      .type_name("LIST");
  app.add_option_function("--pmc-interval", chosen_by(choose_interval), "time between two samples")
      .type_name("TIME")
      .default_str("10ms");
  options::Declared declared = options::declare(app, trace_options(), request.trace, refusal);
  for (auto& [name, option] : declared)
    if (std::any_of(std::begin(kAtStart), std::end(kAtStart),
                    [&name = name](const auto& at) { return at.first == name; }))
      option.hide();
  if (const Status good = refuse_pc_samples(argc, argv); !good) return complain(kBadInput, good.error().message);
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  if (refusal) return complain(kBadInput, refusal->message);
  if (bad_counters) return complain(kBadInput, bad_counters->message);
  for (const options::Declared* const all : {&late, &std::as_const(declared)})
    for (const auto& [name, option] : *all)
      if (option.count() > 0) request.trace.given.push_back(name);
  return attach_to(request);
}

}  // namespace tacho::cli
