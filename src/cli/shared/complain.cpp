// Prints in one line why a command fails.
#include "cli/command.h"
#include "report/output.h"

namespace tacho::cli {

int complain(int code, std::string_view message) {
  report::warn(message);
  return code;
}

}  // namespace tacho::cli
