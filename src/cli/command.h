// The table of tacho's commands. A command is src/cli/<name>.cpp, or a folder src/cli/<name>/, with a function
// run_<name>; commands.def lists the commands in the order of `tacho --help`.
#pragma once

#include <string_view>

namespace tacho::cli {

/// Exit codes. Commands that start a program use 125, 126 and 127 for errors of their own.
enum Exit : int { kOk = 0, kBadInput = 1, kFailAbove = 3, kOwnError = 125, kNotExecutable = 126, kNotFound = 127 };

/// argv[0] is the command's own name ("stats"); returns the process's exit code.
using CommandFunction = int (*)(int argc, char** argv);

struct Command {
  std::string_view name;
  std::string_view summary;  // one line for `tacho --help`
  CommandFunction run;
};

/// Prints "tacho: <message>" to stderr, unprintable bytes as \xNN, and returns `code`.
int complain(int code, std::string_view message);

}  // namespace tacho::cli
