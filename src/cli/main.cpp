// Entry point of tacho: starts a command, or a personality if called by another tool's name.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/format.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/shared/command_line.h"
#include "cli/shared/meant.h"

namespace tacho::cli {

#define TACHO_COMMAND(function, name, summary) int run_##function(int argc, char** argv);
#include "cli/commands.def"
#undef TACHO_COMMAND
#define TACHO_PERSONALITY(function, name) int personality_##function(int argc, char** argv);
#include "cli/personalities/personalities.def"
#include "report/output.h"
#undef TACHO_PERSONALITY

namespace {

constexpr Command kCommands[] = {
#define TACHO_COMMAND(function, name, summary) {name, summary, run_##function},
#include "cli/commands.def"
#undef TACHO_COMMAND
};

struct Personality {
  std::string_view name;
  CommandFunction run;
};
constexpr Personality kPersonalities[] = {
#define TACHO_PERSONALITY(function, name) {name, personality_##function},
#include "cli/personalities/personalities.def"
#undef TACHO_PERSONALITY
    {"", nullptr},
};

void print_help(int descriptor) {
  std::string text = fmt::format("tacho {}: profiles GPU programs on NVIDIA, AMD, any OpenCL device, or no GPU\n\n"
                                 "Usage: tacho COMMAND [options]      tacho COMMAND --help\n"
                                 "       tacho PROGRAM [arguments]    for: tacho trace -- PROGRAM [arguments]\n\n",
                                 TACHO_PROGRAM_VERSION);
  for (const Command& command : kCommands) text += fmt::format("  {:<10} {}\n", command.name, command.summary);
  text += "\nStart here:\n"
          "  tacho trace -- ./app arguments      run it; see where its time goes\n"
          "  tacho stats app.tacho --by api      look closer\n"
          "  tacho doctor                        what works here, how to mend the rest\n\n"
          "Scripts written for rocprofv3, rocprof-compute and their kin run unchanged: put\n"
          "libexec/tacho/personalities (build/personalities in a build tree) first in PATH.\n";
  print_help_text(text, descriptor);
}

// If one of the first three descriptors is closed, the next opened file would get its number, and messages would go
// into that file. tacho fills the gap with a descriptor that the started program does not inherit.
void fill_standard_descriptors() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
    // Writing to a closed stdout is an error, writing to a closed stderr is not.
    const int file = open("/dev/null", (number == STDERR_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    if (file >= 0 && file != number) close(file);
  }
}

int run_command(int argc, char** argv) {
  std::string_view self = argc > 0 ? argv[0] : "";
  if (const size_t slash = self.rfind('/'); slash != std::string_view::npos) self.remove_prefix(slash + 1);
  for (const Personality& personality : kPersonalities)
    if (personality.run != nullptr && personality.name == self) return personality.run(argc, argv);
  if (argc < 2) {
    print_help(STDERR_FILENO);
    return kBadInput;
  }
  const std::string_view word = argv[1];
  if (word == "--help" || word == "-h" || word == "help") {
    print_help(STDOUT_FILENO);
    return kOk;
  }
  if (word == "--version" || word == "-V") {
    report::print("tacho {}\n", tacho::program_version_text());
    return kOk;
  }
  for (const Command& command : kCommands)
    if (command.name == word) return command.run(argc - 1, argv + 1);
  std::vector<std::string> names;
  for (const Command& command : kCommands) names.emplace_back(command.name);
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (is_program(words, names)) {
    // `tacho ./app -n 5` means `tacho trace -- ./app -n 5`.
    std::string trace = "trace", separator = "--";
    std::vector<char*> line = {trace.data(), separator.data()};
    for (int i = word == "--" ? 2 : 1; i < argc; ++i) line.push_back(argv[i]);
    line.push_back(nullptr);
    return run_trace(static_cast<int>(line.size()) - 1, line.data());
  }
  return complain(kBadInput, not_a_command(words, names));
}

// An answer that is cut off is an error: the one place where a write that failed becomes an exit code.
int checked_output(int code) {
  const Status written = report::output_status();
  return written ? code : complain(code != kOk ? code : static_cast<int>(kBadInput), written.error().message);
}

// The exit code for tacho's own errors, for a command that starts a program or for one that does not.
int own_error(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--") return kOwnError;
  return kBadInput;
}

}  // namespace

}  // namespace tacho::cli

int main(int argc, char** argv) {
  using namespace tacho::cli;
  fill_standard_descriptors();
  try {
    return checked_output(run_command(argc, argv));
  } catch (const std::bad_alloc&) {
    return complain(own_error(argc, argv), "there is not enough memory; raise the limit (ulimit -v) or free some");
  } catch (const std::system_error& error) {
    return complain(own_error(argc, argv), error.what());
  }
}
