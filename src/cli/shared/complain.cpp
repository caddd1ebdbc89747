// How a command says in one line why it ends.
#include <cstdio>

#include "base/format.h"
#include "cli/command.h"

namespace tacho::cli {

int complain(int code, std::string_view message) {
  fmt::print(stderr, "tacho: {}\n", message);
  return code;
}

}  // namespace tacho::cli
