// `tacho trace [options] -- command`: runs a program and records what it does on its devices.

#include "cli/command.h"
#include "cli/shared/command_line.h"
#include "cli/target/run_target.h"

namespace tacho::cli {

int run_trace(int argc, char** argv) {
  CommandOptions app("Run a program and record what it does on its devices: kernels, copies, API calls, markers.",
                     "tacho trace");
  app.prefix_command();
  app.footer("Examples:\n"
             "  tacho trace -- ./vcopy -n 1048576     writes vcopy.tacho, prints a summary\n"
             "  tacho trace -o run.tacho -- python3 train.py\n"
             "  tacho trace --duration 10 --delay 5 -- ./server\n"
             "Exit code: the program's own (128 + signal when a signal ended it); 125 tacho could not start it, "
             "126 not executable, 127 not found.");
  TraceRequest request;
  std::optional<Error> refusal;
  const options::Declared declared = options::declare(app, trace_options(), request, refusal);
  if (const auto code = parse_options(app, argc, argv, kOwnError)) return *code;
  if (refusal) return complain(kOwnError, refusal->message);
  for (const auto& [name, option] : declared)
    if (option.count() > 0) request.given.push_back(name);
  auto command = target_command(app);
  if (!command) return complain(kOwnError, command.error().message);
  request.launch.command = std::move(*command);
  return run_target(request);
}

}  // namespace tacho::cli
