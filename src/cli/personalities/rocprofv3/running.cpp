// rocprofv3's process attachment on top of tacho attach (running.h).
#include "cli/personalities/rocprofv3/running.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "attach/choice.h"
#include "attach/session.h"
#include "cli/command.h"

namespace tacho::cli::rocprofv3 {
namespace {

// The number behind an option; above 0.
Result<int> positive_value(const Given& given, const char* option) {
  const std::string text = given.value(option);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number <= 0)
    return fail("--{} '{}': not a number above 0", option, text);
  return number;
}

constexpr const char* kDetails[] = {"attach-duration-msec", "attach-children", "attach-sync-output"};

}  // namespace

bool is_about_attaching(const InputJob& job) {
  return job.given.has("pid") || job.given.has("attach") ||
         std::any_of(std::begin(kDetails), std::end(kDetails),
                     [&](const char* detail) { return job.given.has(detail); });
}

Result<std::optional<AttachPlan>> plan_attach(const InputJob& job, bool has_command) {
  const Given& given = job.given;
  if (given.has("pid") && given.has("attach")) return fail("--pid and --attach mean the same: give one of them");
  const char* const option = given.has("pid") ? "pid" : "attach";
  if (!given.has(option)) {
    for (const char* const detail : kDetails)
      if (given.has(detail)) return fail("--{} is about attaching: name the process with --attach PID", detail);
    return std::nullopt;
  }
  AttachPlan plan;
  TACHO_ASSIGN(plan.pid, positive_value(given, option));
  if (has_command) return fail("--{} records a program that already runs: give it or a command, not both", option);
  if (job.counts())
    return fail("--pmc with --{}: counters have to be set up before the program's first kernel; start it under "
                "rocprofv3",
                option);
  if (given.on("pc-sampling-beta-enabled"))
    return fail("--pc-sampling-beta-enabled with --{}: sampling has to be set up before the program's first kernel; "
                "start it under rocprofv3",
                option);
  if (given.has("preload")) return fail("--preload with --{}: the program has been started already", option);
  if (given.has("attach-duration-msec")) {
    TACHO_ASSIGN(const int milliseconds, positive_value(given, "attach-duration-msec"));
    plan.duration_s = milliseconds * 1e-3;
  }
  if (given.has("attach-children")) plan.children = given.on("attach-children");
  return plan;
}

tl::expected<launch::RunResult, launch::LaunchError> record_running(const AttachPlan& plan,
                                                                    const launch::Recording& recording,
                                                                    const std::function<void(std::string_view)>& say) {
  attach::ProcessChoice choice;
  choice.numbers = {plan.pid};
  choice.children = plan.children;
  const auto refused = [](const std::string& why) { return tl::unexpected<launch::LaunchError>({kOwnError, why}); };
  const auto chosen = attach::choose(choice);
  if (!chosen) return refused(chosen.error().message);
  attach::SessionOptions options;
  options.recording = recording;
  options.processes = chosen->numbers;
  if (plan.duration_s > 0) options.recording.duration_s = plan.duration_s;
  if (plan.duration_s == 0 && isatty(STDIN_FILENO) != 0) options.enter = STDIN_FILENO;
  options.begun = [&](const attach::SessionResult& result) {
    say(fmt::format("attached to process {}{}{}", plan.pid,
                    result.targets.size() > 1 ? fmt::format(" and {} others", result.targets.size() - 1) : "",
                    plan.duration_s > 0  ? ""
                    : options.enter >= 0 ? "; Enter or Ctrl-C ends the recording"
                                         : "; Ctrl-C ends the recording"));
  };
  auto session = attach::record(options);
  if (!session) return refused(session.error().message);
  launch::RunResult result;
  result.pid = plan.pid;
  result.seconds = session->seconds;
  result.processes = std::move(session->recorded);
  result.warnings = std::move(session->warnings);
  result.written = std::move(session->written);
  return result;
}

}  // namespace tacho::cli::rocprofv3
