// Standard output and standard error: the one place where tacho writes to them. Nothing here throws, and nothing needs
// its result checked. A failure on standard output is kept until output_status(), which main() turns into the exit
// code; one on standard error is dropped, since messages must never cost a run its results.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/result.h"

namespace tacho::report {

enum class Stream : uint8_t { kOut, kError };

/// Writes text as it is. False when the stream is standard output and could not be written, now or before.
bool put(std::string_view text, Stream stream = Stream::kOut);

/// Formats and writes.
template <typename... Args>
void print(Stream stream, fmt::format_string<Args...> format, Args&&... args) {
  put(fmt::format(format, std::forward<Args>(args)...), stream);
}
template <typename... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  put(fmt::format(format, std::forward<Args>(args)...), Stream::kOut);
}
template <typename... Args>
void print_error(fmt::format_string<Args...> format, Args&&... args) {
  put(fmt::format(format, std::forward<Args>(args)...), Stream::kError);
}

/// Prints "tacho: <message>" on standard error, wrapped at words on a terminal; unprintable bytes become \xNN.
void warn(std::string_view message);

/// Hands on what was printed so far, so that it stands in front of what another stream or a child writes next.
void flush_output();

/// Flushes standard output. An error when any of it could not be written: an answer that is cut off is no answer.
Status output_status();

}  // namespace tacho::report
