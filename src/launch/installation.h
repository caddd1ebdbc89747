// Where programs are: the one to run, and tacho's own library.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace tacho::launch {

/// An error before the target ran, with its exit code (125, 126, 127). An Error is one of tacho's own: 125. So
/// TACHO_TRY and TACHO_ASSIGN take a Result in functions that fail with a LaunchError.
struct LaunchError {
  LaunchError(int code, std::string sentence) : exit_code(code), message(std::move(sentence)) {}
  LaunchError(Error error) : exit_code(125), message(std::move(error.message)) {}  // NOLINT: meant to be implicit

  int exit_code;
  std::string message;
};

/// Passes on the error of another start, which must hold one.
template <typename T>
[[nodiscard]] tl::unexpected<LaunchError> fail_with(const tl::expected<T, LaunchError>& failed) {
  return tl::unexpected<LaunchError>(failed.error());
}

/// Absolute path of `command` as execvp would find it, or an error with exit code 126 or 127.
tl::expected<std::string, LaunchError> find_executable(const std::string& command);

/// libtacho.so of this installation: beside the executable (../lib), or $TACHO_LIBRARY.
Result<std::string> find_library();

}  // namespace tacho::launch
