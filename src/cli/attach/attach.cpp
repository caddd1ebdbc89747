// `tacho attach PID`: records a program that already runs, and lets it go again.
#include <unistd.h>

#include "attach/choice.h"
#include "attach/session.h"
#include "base/files/output_claim.h"
#include "base/files/run_name.h"
#include "cli/command.h"
#include "cli/files/writer_names.h"
#include "cli/options/recording_options.h"
#include "cli/output/summary.h"
#include "cli/shared/command_line.h"
#include "cli/target/process_options.h"
#include "report/output.h"
#include "trace/trace.h"

namespace tacho::cli {
namespace {

struct AttachRequest {
  TraceRequest trace;
  attach::ProcessChoice choice;
  std::string at;
  uint64_t launches = 0;
};

// Options of tacho trace that need a program's start.
Status check_options(const TraceRequest& request) {
  static constexpr std::pair<std::string_view, std::string_view> kAtStart[] = {
      {"--follow", "tacho attach ends with the process"},
      {"--torch-trace", "it changes PyTorch's functions when Python imports them"},
      {"--ranks", "choose the processes by number, --name, --cgroup or --container"},
      {"--device-counters", "the library that reads them takes part from a program's start only"},
      {"--memory", "PyTorch's allocators report to it only from their first moment on"},
      {"--format", "tacho attach writes .tacho, of which tacho export makes other formats"},
      {"--view", "open the trace with tacho view afterwards"},
  };
  for (const auto& [option, why] : kAtStart)
    for (const std::string& given : request.given)
      if (given == option) return fail("{} is for programs that tacho starts: {}", option, why);
  return {};
}

// What cannot be had of a program that runs, and what came of it where it was tried (docs/attach.md).
Status refuse_counters(int argc, char** argv) {
  static constexpr std::pair<std::string_view, std::string_view> kOfProfile[] = {
      {"--pmc",
       "counters are for programs that tacho starts (tacho profile): begun in a running one they held all its launches "
       "up for more than 3 s, and failed in graphs"},
      {"--pc-sampling",
       "PC samples are for programs that tacho starts (tacho profile --pc-sampling): begun in a running one they came "
       "to nothing, and one that launched graphs did not live through it"},
  };
  for (int i = 1; i < argc; ++i)
    for (const auto& [option, why] : kOfProfile)
      if (const std::string_view word = argv[i]; word == option || word.starts_with(std::string(option) + "="))
        return fail("{}: {}", option, why);
  return {};
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
  trace.launch.recording.output = output->name();
  attach::SessionOptions options;
  options.recording = trace.launch.recording;
  options.processes = chosen->numbers;
  options.left = chosen->left_out;
  options.launches = request.launches;
  options.begin_at = *begin;
  if (!trace.quiet)
    options.begun = [&](const attach::SessionResult& result) {
      for (const std::string& warning : result.warnings) complain(kOk, warning);
      const bool ends = options.recording.duration_s > 0 || options.launches > 0;
      complain(kOk, attached_sentence(result, ends));
    };
  const auto result = attach::record(options);
  if (!result) return complain(kBadInput, result.error().message);
  if (!result->written) return complain(kBadInput, result->written.error().message);
  const auto written = trace::Trace::open(options.recording.output);
  if (!written) return complain(kBadInput, written.error().message);
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
  app.add_option("--for-launches", request.launches, "let go after this many launches of kernels").type_name("N");
  options::declare(app, late_options(), request.trace, refusal);
  const options::Declared declared = options::declare(app, trace_options(), request.trace, refusal);
  if (const Status good = refuse_counters(argc, argv); !good) return complain(kBadInput, good.error().message);
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  if (refusal) return complain(kBadInput, refusal->message);
  for (const auto& [name, option] : declared)
    if (option.count() > 0) request.trace.given.push_back(name);
  return attach_to(request);
}

}  // namespace tacho::cli
