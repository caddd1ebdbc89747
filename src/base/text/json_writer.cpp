// Escaping and numbers (json_writer.h).
#include "base/text/json_writer.h"

#include <cmath>

#include "base/format.h"
#include "base/text/utf8.h"

namespace tacho {
namespace {

bool is_plain(char c) {
  return c >= 0x20 && c != '"' && c != '\\' && c != 0x7f;  // char is signed: bytes from 0x80 up are not plain
}
static_assert(static_cast<char>(0x80) < 0);

}  // namespace

void append_json_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const CodePoint point = next_code_point(text);
    switch (point.value) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (point.value < 0x20 || point.value == 0x7f)
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(point.value));
        else
          out += point.valid ? text.substr(0, point.length) : std::string_view("\xEF\xBF\xBD");
    }
    text.remove_prefix(point.length);
  }
  out += '"';
}

std::string json_quoted(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  append_json_quoted(out, text);
  return out;
}

namespace json_internal {

char* write_double(char* at, double value, JsonStyle style) {
  if (std::isfinite(value)) return fmt::format_to(at, "{}", value);
  if (std::isnan(value) || !style.infinities) return copy(at, "null");
  return copy(at, value > 0 ? "\"inf\"" : "\"-inf\"");
}

}  // namespace json_internal
}  // namespace tacho
