// `tacho attach PID`: records a program that already runs, and lets it go again.
#include <unistd.h>

#include "attach/session.h"
#include "base/files/output_claim.h"
#include "base/files/run_name.h"
#include "cli/command.h"
#include "cli/options/recording_options.h"
#include "cli/output/summary.h"
#include "cli/shared/command_line.h"
#include "report/output.h"
#include "trace/trace.h"

namespace tacho::cli {
namespace {

struct AttachRequest {
  TraceRequest trace;
  int pid = 0;
  uint64_t launches = 0;
};

// Options of tacho trace that need a program's start.
Status check_options(const TraceRequest& request) {
  static constexpr std::pair<std::string_view, std::string_view> kAtStart[] = {
      {"--follow", "tacho attach ends with the process"},
      {"--torch-trace", "it changes PyTorch's functions when Python imports them"},
      {"--ranks", "choose the processes by their numbers"},
      {"--view", "open the trace with tacho view afterwards"},
  };
  for (const auto& [option, why] : kAtStart)
    for (const std::string& given : request.given)
      if (given == option) return fail("{} is for programs that tacho starts: {}", option, why);
  return {};
}

Result<OutputClaim> claim_output(const AttachRequest& request) {
  if (!request.trace.output.empty()) return OutputClaim::exactly(request.trace.output, request.trace.overwrite);
  std::vector<std::string> words = attach::command_of(request.pid);
  if (words.empty()) {
    TACHO_ASSIGN(const attach::TargetFacts facts, attach::look_at(request.pid));
    words = {facts.name};
  }
  const std::string base = run_name(words) + ".tacho";
  return request.trace.overwrite ? OutputClaim::exactly(base, true) : OutputClaim::numbered(base);
}

int attach_to(AttachRequest& request) {
  TraceRequest& trace = request.trace;
  if (const Status good = check_options(trace); !good) return complain(kBadInput, good.error().message);
  if (const Status ready = complete(trace); !ready) return complain(kBadInput, ready.error().message);
  const auto output = claim_output(request);
  if (!output) return complain(kBadInput, output.error().message);
  trace.launch.recording.output = output->name();
  attach::SessionOptions options;
  options.recording = trace.launch.recording;
  options.processes = {request.pid};
  options.launches = request.launches;
  if (!trace.quiet)
    options.begun = [&] {
      const bool ends = options.recording.duration_s > 0 || options.launches > 0;
      complain(kOk, fmt::format("attached to process {}{}", request.pid, ends ? "" : "; Ctrl-C ends the recording"));
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
  app.footer("Examples:\n"
             "  tacho attach 4711 --duration 5     five seconds of process 4711, into its program's name with .tacho\n"
             "  tacho attach 4711 -o run.tacho     until Ctrl-C\n"
             "  tacho attach 4711 --for-launches 1000 --api-args\n"
             "  tacho doctor 4711                  whether tacho may, without attaching\n"
             "The program goes on while tacho gets in, records and leaves, and again and again with other options.\n"
             "Exit code: 0 recorded, 1 the process cannot be attached to, which one sentence explains.");
  AttachRequest request;
  std::optional<Error> refusal;
  CommandOption process = app.add_option("PID", request.pid, "number of the process").required().positive();
  app.add_option("--for-launches", request.launches, "let go after this many launches of kernels").type_name("N");
  const options::Declared declared = options::declare(app, trace_options(), request.trace, refusal);
  if (const auto code = parse_options(app, argc, argv, kBadInput)) return *code;
  if (refusal) return complain(kBadInput, refusal->message);
  for (const auto& [name, option] : declared)
    if (option.count() > 0) request.trace.given.push_back(name);
  return attach_to(request);
}

}  // namespace tacho::cli
