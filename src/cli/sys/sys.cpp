// `tacho sys`: the command, and a run from its request to its outputs (sys.h).
#include "cli/sys/sys.h"

#include <unistd.h>

#include <filesystem>
#include <optional>

#include "analysis/operators/operators.h"
#include "cli/command.h"
#include "cli/files/export_trace.h"
#include "cli/files/hidden_recording.h"
#include "cli/shared/chosen_ranks.h"
#include "cli/shared/command_line.h"
#include "cli/shared/meant.h"
#include "cli/sys/output.h"
#include "cli/sys/plan.h"
#include "cli/target/debuggers.h"
#include "report/output.h"

namespace tacho::cli::sys {

int run(Request& request) {
  const Settings& settings = request.settings;
  // ROCPROFSYS_ENABLED=false: the program as it is, in our place.
  if (!settings.on("ENABLED")) return run_as_it_is(request.command);
  if (!request.ranks.empty()) {
    std::string warning;
    const auto chosen = is_chosen_rank(request.ranks, warning);
    if (!chosen) return complain(kOwnError, chosen.error().message);
    if (!warning.empty()) complain(kOk, warning);
    if (!*chosen) return run_as_it_is(request.command);
  }
  auto made = make_plan(request);
  if (!made) return complain(kOwnError, made.error().message);
  Plan& plan = *made;
  if (talks(request))
    for (const std::string& remark : request.remarks) complain(0, remark);
  request.remarks.clear();
  // Makes sure that the program exists before creating folders for it.
  if (const auto path = launch::find_executable(request.command[0]); !path)
    return complain(path.error().exit_code, path.error().message);
  if (const Status ready = choose_outputs(request, plan); !ready) return complain(kOwnError, ready.error().message);
  if (settings.number("VERBOSE") > 0 || settings.on("DEBUG"))
    for (const Setting& setting : sys::settings())
      if (settings.given(setting.name))
        report::print_error("[rocprof-sys] {}{} = {}\n", kPrefix, setting.name, settings.text(setting.name));
  if (const std::string sentence = debugger_sentence(request.command, plan.launch.recording.target.sampler);
      !sentence.empty())
    complain(kOk, sentence);
  const auto samples = set_up_samples(request.device_counters);
  if (!samples) return complain(kOwnError, samples.error().message);
  plan.launch.samples = samples->get();
  const auto outcome = launch::run(plan.launch);
  if (!outcome) {
    std::error_code ignored;
    if (!plan.folder.empty()) std::filesystem::remove(plan.folder, ignored);  // only if empty
    return complain(outcome.error().exit_code, outcome.error().message);
  }
  ignore_output_signals();
  tell_no_samples(samples->get());
  std::optional<HiddenRecording> none;
  if (!outcome->written) return complain_of_recording(*outcome, plan.launch.recording.output, none);
  const auto trace = trace::Trace::open(plan.launch.recording.output);
  if (!trace) return complain(kOwnError, trace.error().message);
  if (request.torch_trace)
    if (const auto sentence = analysis::torch_sentence(**trace); sentence && !sentence->empty()) complain(0, *sentence);
  return write_outputs(**trace, request, plan, *outcome) ? outcome->exit_code : static_cast<int>(kOwnError);
}

}  // namespace tacho::cli::sys

namespace tacho::cli {

int run_sys(int argc, char** argv) {
  using namespace sys;
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "avail") return avail(Face::kTacho, argc - 1, argv + 1);
  if (verb != "run" && verb != "sample") {
    const bool help = verb == "--help" || verb == "-h";
    if (!help && !verb.empty()) {
      std::string command;
      for (int i = verb == "--" ? 2 : 1; i < argc; ++i) command += " " + shell_word(argv[i]);
      return complain(kOwnError, fmt::format("there is no tacho sys {}; choose run, sample or avail{}", verb,
                                             (verb.starts_with("-") && verb != "--") || command.empty()
                                                 ? std::string()
                                                 : ", as in: tacho sys sample --" + command));
    }
    print_help_text(
        "Usage: tacho sys run|sample|avail [options] [-- command]\n\n"
        "  run      record API calls, kernels, markers; --sample and --host add call stacks and telemetry\n"
        "  sample   the same with call stacks and telemetry\n"
        "  avail    settings, categories, devices and sources on this machine; -G FILE writes a config file\n\n"
        "Examples:\n"
        "  tacho sys sample -- python3 train.py       then: tacho flame train.tacho\n"
        "  tacho sys run --trace --profile --host -- ./app\n"
        "  tacho sys avail -G my.cfg && tacho sys sample -c my.cfg -- python3 train.py\n",
        help ? STDOUT_FILENO : STDERR_FILENO);
    return help ? kOk : static_cast<int>(kOwnError);
  }
  auto request = parse(Face::kTacho, verb == "run" ? Verb::kRun : Verb::kSample, argc - 1, argv + 1);
  if (!request) return complain(kOwnError, request.error().message);
  if (request->help) {
    print_help_text(help_text(request->face, request->verb), STDOUT_FILENO);
    return kOk;
  }
  return run(*request);
}

}  // namespace tacho::cli
