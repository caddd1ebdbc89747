// Entry of the tacho executable: dispatches to a command, or to a personality when started under another tool's name.
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/format.h"
#include "cli/command.h"

namespace tacho::cli {

#define TACHO_COMMAND(function, name, summary) int run_##function(int argc, char** argv);
#include "cli/commands.def"
#undef TACHO_COMMAND

namespace {

constexpr Command kCommands[] = {
#define TACHO_COMMAND(function, name, summary) {name, summary, run_##function},
#include "cli/commands.def"
#undef TACHO_COMMAND
    {"", "", nullptr},
};

}  // namespace

int complain(int code, std::string_view message) {
  fmt::print(stderr, "tacho: {}\n", message);
  return code;
}

}  // namespace tacho::cli

int main(int argc, char** argv) {
  using namespace tacho::cli;
  if (argc > 1)
    for (const Command& command : kCommands)
      if (command.run != nullptr && command.name == argv[1]) return command.run(argc - 1, argv + 1);
  return complain(kBadInput, "no such command");
}
