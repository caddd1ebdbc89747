// Result<T>: how library code reports errors. An Error is one sentence for the user that names the file, line or option
// and says what to do next, if anything. Only src/cli uses exceptions.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "base/format.h"

namespace tacho {

struct Error {
  std::string message;  // one sentence, no trailing newline, no "error:" prefix
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

/// The error branch of any Result: `return fail("{}: not a trace file", path);`
template <typename... Args>
[[nodiscard]] tl::unexpected<Error> fail(fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error{fmt::format(format, std::forward<Args>(args)...)});
}

/// Passes on another Result's error; `failed` must hold one.
template <typename T>
[[nodiscard]] tl::unexpected<Error> fail_with(Result<T>&& failed) {
  return tl::unexpected<Error>(std::move(failed.error()));
}

}  // namespace tacho

#define TACHO_CONCAT_INNER(a, b) a##b
#define TACHO_CONCAT(a, b) TACHO_CONCAT_INNER(a, b)

/// Returns from the enclosing function with the error if `expression` (a Result or Status) failed.
#define TACHO_TRY(expression)                                                       \
  do {                                                                              \
    if (auto tacho_try_result = (expression); !tacho_try_result)                    \
      return ::tl::unexpected<::tacho::Error>(std::move(tacho_try_result.error())); \
  } while (0)

/// Declares `declaration` with the value of `expression`, or returns its error: TACHO_ASSIGN(auto file, open(path));
#define TACHO_ASSIGN(declaration, expression) \
  TACHO_ASSIGN_INNER(TACHO_CONCAT(tacho_assign_, __LINE__), declaration, expression)
#define TACHO_ASSIGN_INNER(temporary, declaration, expression)                           \
  auto temporary = (expression);                                                         \
  if (!temporary) return ::tl::unexpected<::tacho::Error>(std::move(temporary.error())); \
  declaration = std::move(*temporary)
