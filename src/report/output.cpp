// Writes to the standard streams (output.h).
#include "report/output.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/text/utf8.h"
#include "report/text.h"

namespace tacho::report {
namespace {

std::atomic<int> g_error = 0;  // errno of the first write to standard output that failed

void keep_error() {
  int none = 0;
  g_error.compare_exchange_strong(none, errno);
}

// Names of files, keys and SQL may contain control characters and invalid text: shows both as \xNN.
std::string printable(std::string_view message) {
  std::string text;
  while (!message.empty()) {
    const CodePoint point = next_code_point(message);
    // Keeps only the newline, which ends our own lines; U+0080 to U+009F are control characters too.
    const bool control = (point.value < 0x20 && point.value != '\n') || (point.value >= 0x7f && point.value < 0xa0);
    if (point.valid && !control)
      text += message.substr(0, point.length);
    else
      for (const char c : message.substr(0, point.length))
        text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    message.remove_prefix(point.length);
  }
  return text;
}

}  // namespace

bool put(std::string_view text, Stream stream) {
  if (stream == Stream::kError) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
    return true;
  }
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) keep_error();
  return std::ferror(stdout) == 0;
}

void warn(std::string_view message) {
  std::string text = "tacho: " + printable(message);
  if (const Screen screen = screen_of(STDERR_FILENO); screen.terminal) text = paragraph(text, screen.width, 0, 2);
  put(text + "\n", Stream::kError);
}

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0) keep_error();
}

Status output_status() {
  flush_output();
  const int error = g_error;
  if (std::ferror(stdout) == 0 && error == 0) return {};
  return fail("standard output cannot be written{}{}", error != 0 ? ": " : "", error != 0 ? std::strerror(error) : "");
}

}  // namespace tacho::report
