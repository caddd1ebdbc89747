// Decodes UTF-8 (utf8.h).
#include "base/text/utf8.h"

#include <algorithm>

namespace tacho {

CodePoint next_code_point(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const size_t length = first >= 0xf0 && first < 0xf5   ? 4
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xc2 && first < 0xe0 ? 2
                                                        : 0;
  if (length == 0 || text.size() < length) return {0xfffd, 1, false};
  char32_t value = first & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {0xfffd, 1, false};
    value = (value << 6) | (byte(i) & 0x3fU);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (overlong || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return {0xfffd, 1, false};
  return {value, length, true};
}

std::string valid_utf8(std::string_view text) {
  const auto plain = [](char c) { return static_cast<signed char>(c) > 0; };
  if (std::all_of(text.begin(), text.end(), plain)) return std::string(text);
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = next_code_point(text);
    point.valid&& point.value != 0 ? result.append(text.substr(0, point.length)) : result.append("\xef\xbf\xbd");
    text.remove_prefix(point.length);
  }
  return result;
}

}  // namespace tacho
