// Parses values of JSON texts (tokens.h).
#include "format/json/tokens.h"

#include <charconv>
#include <cmath>
#include <system_error>

namespace tacho::format::json {
namespace {

void put_utf8(std::string& out, uint32_t point) {
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xc0 | point >> 6);
    out += static_cast<char>(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    out += static_cast<char>(0xe0 | point >> 12);
    out += static_cast<char>(0x80 | (point >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (point & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | point >> 18);
    out += static_cast<char>(0x80 | (point >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (point >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (point & 0x3f));
  }
}

bool hex4(std::string_view text, size_t at, uint32_t& value) {
  if (at + 4 > text.size()) return false;
  const auto [stop, error] = std::from_chars(text.data() + at, text.data() + at + 4, value, 16);
  return error == std::errc() && stop == text.data() + at + 4;
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Whether the text's writer cannot have escaped it.
bool shows_no_escapes(std::string_view text) {
  if (text.size() > 3 && is_letter(text[0]) && text.substr(1, 2) == ":\\" && text[3] != '\\' && text[3] != '/' &&
      text[3] != '"')
    return true;
  for (size_t slash = text.find('\\'); slash != std::string_view::npos && slash + 1 < text.size();
       slash = text.find('\\', slash + 2)) {
    const char kind = text[slash + 1];
    uint32_t point;
    if (kind == 'u' ? !hex4(text, slash + 2, point)
                    : std::string_view("\"\\/bfnrt").find(kind) == std::string_view::npos)
      return true;
  }
  return false;
}

// "torch\nn\modules.py(12): forward", "x\bin\run.exe": a name of a file follows a backslash.
bool looks_like_path(std::string_view text) {
  const size_t slash = text.rfind('\\');
  const std::string_view last = slash != std::string_view::npos ? text.substr(slash + 1) : std::string_view();
  return last.find('.') != std::string_view::npos && last.find('"') == std::string_view::npos;
}

void keep_backslashes(std::string_view text, std::string& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\');
    if (escape) ++i;
    out += text[i];
  }
}

}  // namespace

bool JsonTokens::unescape(std::string_view text, std::string& out, bool unescaped) {
  out.clear();
  out.reserve(text.size());
  const bool shown = shows_no_escapes(text);
  if (shown || (unescaped && looks_like_path(text))) {
    keep_backslashes(text, out);
    return shown;
  }
  size_t i = 0;
  while (i < text.size()) {
    const size_t slash = text.find('\\', i);
    if (slash == std::string_view::npos || slash + 1 >= text.size()) {
      out.append(text.substr(i));
      return false;
    }
    out.append(text.substr(i, slash - i));
    const char kind = text[slash + 1];
    i = slash + 2;
    switch (kind) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'u': {
        uint32_t point = 0;
        if (!hex4(text, i, point)) {
          out += "\xef\xbf\xbd";
          break;
        }
        i += 4;
        if (point >= 0xd800 && point < 0xdc00) {
          uint32_t low = 0;
          if (i + 1 < text.size() && text[i] == '\\' && text[i + 1] == 'u' && hex4(text, i + 2, low) && low >= 0xdc00 &&
              low < 0xe000) {
            point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
            i += 6;
          } else {
            point = 0xfffd;
          }
        } else if (point >= 0xdc00 && point < 0xe000) {
          point = 0xfffd;
        }
        put_utf8(out, point);
        break;
      }
      default:
        out += kind;  // \" \\ \/
    }
  }
  return false;
}

JsonOutcome JsonTokens::skip() {
  int depth = 0;
  do {
    switch (peek()) {
      case '"': {
        std::string_view text;
        bool escaped;
        if (const JsonOutcome outcome = raw_string(text, escaped); outcome != JsonOutcome::kOk) return outcome;
        break;
      }
      case '{':
      case '[':
        if (++depth > kDeepest) return bad(kTooDeep);
        ++at_;
        break;
      case '}':
      case ']':
        if (--depth < 0) return bad("a value was expected");
        ++at_;
        break;
      case ',':
      case ':':
        if (depth == 0) return bad("a value was expected");
        ++at_;
        break;
      default: {
        if (at_ >= end_) return JsonOutcome::kMore;
        std::string_view text;
        if (const JsonOutcome outcome = word(text); outcome != JsonOutcome::kOk) return outcome;
      }
    }
  } while (depth > 0);
  return JsonOutcome::kOk;
}

bool thousandfold(std::string_view text, int64_t& value) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const bool negative = at < end && *at == '-';
  if (negative) ++at;
  uint64_t whole = 0;
  const char* const first = at;
  while (at < end && *at >= '0' && *at <= '9') {
    if (whole > 922'337'203'685'477ULL * 10) return false;
    whole = whole * 10 + static_cast<uint64_t>(*at++ - '0');
  }
  const bool digits = at > first;
  uint64_t fraction = 0;
  int places = 0;
  bool up = false;
  if (at < end && *at == '.') {
    ++at;
    while (at < end && *at >= '0' && *at <= '9') {
      if (places < 3)
        fraction = fraction * 10 + static_cast<uint64_t>(*at - '0');
      else if (places == 3)
        up = *at >= '5';
      ++places;
      ++at;
    }
  }
  if (!digits && places == 0) return false;
  if (at < end) {  // an exponent: rare
    double number = 0;
    if (!real(text, number) || !(std::fabs(number) < 9.2e15)) return false;
    value = std::llround(number * 1000);
    return true;
  }
  for (; places < 3; ++places) fraction *= 10;
  if (whole > 9'223'372'036'854'774ULL) return false;
  const auto result = static_cast<int64_t>(whole * 1000 + fraction + (up ? 1 : 0));
  value = negative ? -result : result;
  return true;
}

bool integer(std::string_view text, int64_t& value) {
  if (text.starts_with("0x") || text.starts_with("0X")) {
    uint64_t bits = 0;
    const auto [stop, error] = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
    if (error != std::errc() || stop != text.data() + text.size()) return false;
    value = static_cast<int64_t>(bits);
    return true;
  }
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && stop == text.data() + text.size()) return true;
  uint64_t bits = 0;
  const auto [far, wide] = std::from_chars(text.data(), text.data() + text.size(), bits);
  if (wide == std::errc() && far == text.data() + text.size()) {
    value = static_cast<int64_t>(bits);
    return true;
  }
  double number = 0;
  if (!real(text, number) || !(std::fabs(number) < 9.2e18) || number != std::trunc(number)) return false;
  value = static_cast<int64_t>(number);
  return true;
}

bool real(std::string_view text, double& value) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && stop == text.data() + text.size() && std::isfinite(value);
}

}  // namespace tacho::format::json
