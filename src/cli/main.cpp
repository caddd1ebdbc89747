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
#include "cli/shared/suggest.h"
#include "report/output.h"
#include "report/text.h"

namespace tacho::cli {

#define TACHO_COMMAND(function, name, summary) int run_##function(int argc, char** argv);
#include "cli/commands.def"
#undef TACHO_COMMAND
#define TACHO_PERSONALITY(function, name) int personality_##function(int argc, char** argv);
#include "cli/personalities/personalities.def"
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

std::string help_head() {
  return fmt::format("tacho {}: profiles GPU programs on NVIDIA, AMD, any OpenCL device, or no GPU\n\n"
                     "Usage: tacho COMMAND [options]      tacho help COMMAND\n"
                     "       tacho PROGRAM [arguments]    same as: tacho trace -- PROGRAM [arguments]\n\n",
                     TACHO_PROGRAM_VERSION);
}

constexpr std::string_view kFirstSteps =
    "Start here:\n"
    "  tacho trace -- ./app          run it; see where its time goes\n"
    "  tacho stats app.tacho         look closer: kernels, calls, lines of your code\n"
    "  tacho view app.tacho          look at it in a browser\n"
    "  tacho profile -- ./app        hardware counters of every kernel\n"
    "  tacho analyze workloads/app   what these counters say, with findings\n"
    "  tacho doctor                  what works here, and how to repair the rest\n\n";

// Of `tacho` alone: fits into 24 lines of 80 columns.
void print_first_help() {
  std::string names;
  for (const Command& command : kCommands) names += fmt::format("{}{}", names.empty() ? "" : ", ", command.name);
  constexpr size_t kColumns = 78, kIndent = 2;
  report::print_error("{}{}All commands:\n  {}\n\ntacho --help says what each of them does.\n", help_head(),
                      kFirstSteps, report::wrapped(names, kColumns - kIndent, kIndent));
}

void print_help() {
  std::string text = help_head();
  for (const Command& command : kCommands) text += fmt::format("  {:<10} {}\n", command.name, command.summary);
  text += fmt::format("\n{}", kFirstSteps);
  text += "Scripts written for rocprofv3, rocprof-compute and similar tools run unchanged:\n"
          "put libexec/tacho/personalities (in a build tree build/personalities) first in\n"
          "PATH.\n";
  print_help_text(text, STDOUT_FILENO);
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : kCommands) names.emplace_back(command.name);
  return names;
}

// `tacho help COMMAND ...`: the same as `tacho COMMAND ... --help`.
int run_help(int argc, char** argv) {
  if (argc < 3) {
    print_help();
    return kOk;
  }
  for (const Command& command : kCommands) {
    if (command.name != argv[2]) continue;
    std::string help = "--help";
    std::vector<char*> line(argv + 2, argv + argc);
    line.push_back(help.data());
    line.push_back(nullptr);
    return command.run(static_cast<int>(line.size()) - 1, line.data());
  }
  const std::string best = nearest(argv[2], command_names());
  return complain(kBadInput, fmt::format("there is no command '{}'; {}", argv[2],
                                         best.empty() ? "tacho --help lists the commands"
                                                      : fmt::format("did you mean: tacho help {}", best)));
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
    print_first_help();
    return kBadInput;
  }
  const std::string_view word = argv[1];
  if (word == "--help" || word == "-h" || word == "help") return run_help(argc, argv);
  if (word == "--version" || word == "-V") {
    report::print("tacho {}\n", tacho::program_version_text());
    return kOk;
  }
  for (const Command& command : kCommands)
    if (command.name == word) return command.run(argc - 1, argv + 1);
  const std::vector<std::string> names = command_names();
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (is_program(words, names)) {
    // `tacho ./app -n 5` means `tacho trace -- ./app -n 5`.
    std::string trace = "trace", separator = "--";
    std::vector<char*> line = {trace.data(), separator.data()};
    for (int i = word == "--" ? 2 : 1; i < argc; ++i) line.push_back(argv[i]);
    line.push_back(nullptr);
    return run_trace(static_cast<int>(line.size()) - 1, line.data());
  }
  return complain(is_missing_program(words[0]) ? kNotFound : kBadInput, not_a_command(words, names));
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
