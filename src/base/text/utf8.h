// UTF-8, one code point at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tacho {

/// One code point of a text. A byte that is not part of valid UTF-8 counts as U+FFFD, one byte long.
struct CodePoint {
  char32_t value = 0;
  size_t length = 0;  // bytes
  bool valid = false;
};

/// The first code point of `text`, which must not be empty. Overlong forms, surrogates and values above U+10FFFF are
/// not valid.
CodePoint next_code_point(std::string_view text);

/// The text with U+FFFD for every byte that is not part of valid UTF-8, and for NUL, which ends a text in C and SQLite.
std::string valid_utf8(std::string_view text);

}  // namespace tacho
