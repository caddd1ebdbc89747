// How a command says in one line why it ends.
#include <cstdio>
#include <string>

#include "base/format.h"
#include "cli/command.h"

namespace tacho::cli {

int complain(int code, std::string_view message) {
  // Not fmt::print, which throws where nobody reads: a program's exit code does not depend on that.
  const std::string line = fmt::format("tacho: {}\n", message);
  std::fwrite(line.data(), 1, line.size(), stderr);
  return code;
}

}  // namespace tacho::cli
