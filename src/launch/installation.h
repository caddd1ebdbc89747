// Where programs are: the one to run, and tacho's own library.
#pragma once

#include <string>

#include "base/result.h"

namespace tacho::launch {

/// An error before the target ran, with its exit code (125, 126, 127).
struct LaunchError {
  int exit_code;
  std::string message;
};

/// Absolute path of `command` as execvp would find it, or an error with exit code 126 or 127.
tl::expected<std::string, LaunchError> find_executable(const std::string& command);

/// libtacho.so of this installation: beside the executable (../lib), or $TACHO_LIBRARY.
Result<std::string> find_library();

}  // namespace tacho::launch
