// Prints in one line why a command fails.
#include <cstdio>
#include <string>

#include "base/format.h"
#include "cli/command.h"

namespace tacho::cli {
namespace {

// Names of files, keys and SQL may contain control characters and invalid text: shows both as \xNN.
std::string printable(std::string_view message) {
  std::string text;
  for (size_t at = 0; at < message.size();) {
    const auto byte = static_cast<unsigned char>(message[at]);
    size_t length = byte < 0x80                   ? 1
                    : byte >= 0xc2 && byte < 0xe0 ? 2
                    : byte >= 0xe0 && byte < 0xf0 ? 3
                    : byte >= 0xf0 && byte < 0xf5 ? 4
                                                  : 0;
    bool valid = length != 0 && at + length <= message.size();
    for (size_t i = 1; valid && i < length; ++i) valid = (static_cast<unsigned char>(message[at + i]) & 0xc0) == 0x80;
    // Keeps only the newline, which ends our own lines; U+0080 to U+009F are control characters too.
    const bool control = (byte < 0x20 && byte != '\n') || byte == 0x7f ||
                         (length == 2 && valid && byte == 0xc2 && static_cast<unsigned char>(message[at + 1]) < 0xa0);
    if (valid && !control) {
      text += message.substr(at, length);
      at += length;
      continue;
    }
    const size_t count = valid ? length : 1;
    for (size_t i = 0; i < count; ++i) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(message[at + i]));
    at += count;
  }
  return text;
}

}  // namespace

int complain(int code, std::string_view message) {
  // Not fmt::print, which throws if nobody reads: that must not change a program's exit code.
  const std::string line = fmt::format("tacho: {}\n", printable(message));
  std::fwrite(line.data(), 1, line.size(), stderr);
  return code;
}

}  // namespace tacho::cli
