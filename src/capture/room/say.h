// Sentences that the user must see at once, from inside the program.
#pragma once

#include <stdio.h>
#include <unistd.h>

namespace tacho::capture {

/// Writes "tacho: " and the sentence as a line to stderr, with one call and cut at a kilobyte.
inline void say(const char* sentence) {
  char line[1024];
  const int size = snprintf(line, sizeof line, "tacho: %s\n", sentence);
  if (size <= 0) return;
  const size_t length = static_cast<size_t>(size) < sizeof line ? static_cast<size_t>(size) : sizeof line - 1;
  const ssize_t ignored = write(STDERR_FILENO, line, length);
  static_cast<void>(ignored);
}

}  // namespace tacho::capture
