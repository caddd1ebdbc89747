// Formatting of numbers and text.
#include "report/text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "base/format.h"
#include "base/text/utf8.h"

namespace tacho::report {

namespace {

size_t width_of(char32_t c) {
  if ((c >= 0x300 && c < 0x370) || (c >= 0x200b && c <= 0x200f) || (c >= 0xfe00 && c <= 0xfe0f)) return 0;
  const bool wide = (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) || (c >= 0xac00 && c <= 0xd7a3) ||
                    (c >= 0xf900 && c <= 0xfaff) || (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
                    (c >= 0x1f300 && c <= 0x1faff);
  return wide ? 2 : 1;
}

}  // namespace

std::string format_fixed(double value, int decimals) {
  if (std::isnan(value)) return {};
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text[0] == '-' && text.find_first_not_of("-0.") == std::string::npos) text.erase(0, 1);
  return text;
}

std::string format_si(double value, int decimals) {
  static constexpr std::array<char, 7> kPrefixes = {' ', 'k', 'M', 'G', 'T', 'P', 'E'};
  if (!std::isfinite(value)) return format_fixed(value, decimals);
  size_t prefix = 0;
  while (std::fabs(value) >= 999.9995 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  std::string text = format_fixed(value, decimals);
  if (prefix > 0) text += kPrefixes[prefix];
  return text;
}

std::string format_duration(double ns) {
  if (std::isnan(ns)) return {};
  const double size = std::fabs(ns);
  if (size < 1e3) return fmt::format("{:.0f} ns", ns);
  if (size < 1e6) return fmt::format("{:.2f} us", ns / 1e3);
  if (size < 1e9) return fmt::format("{:.2f} ms", ns / 1e6);
  if (size < 120e9 || !std::isfinite(ns)) return fmt::format("{:.2f} s", ns / 1e9);
  return fmt::format("{:.0f} min {:02.0f} s", std::trunc(ns / 60e9), std::fmod(size / 1e9, 60));
}

std::string format_bytes(double bytes) {
  static constexpr std::array<std::string_view, 7> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  while (std::fabs(bytes) >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.2f} {}", bytes, kUnits[unit]);
}

std::string format_exact(double value) {
  return fmt::format("{}", value);
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    const CodePoint point = next_code_point(text);
    width += width_of(point.value);
    text.remove_prefix(point.length);
  }
  return width;
}

std::string clean(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = next_code_point(text);
    const bool control = point.value < 0x20 || (point.value >= 0x7f && point.value < 0xa0);
    const bool direction =
        (point.value >= 0x202a && point.value <= 0x202e) || (point.value >= 0x2066 && point.value <= 0x2069);
    if (point.value == '\n' || point.value == '\t') {
      out += ' ';
    } else if (!point.valid) {
      out += "\xef\xbf\xbd";
    } else if (control || direction) {
      out += '?';
    } else {
      out += text.substr(0, point.length);
    }
    text.remove_prefix(point.length);
  }
  return out;
}

std::string shortened(std::string_view text, size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::string out;
  size_t used = 0;
  while (!text.empty()) {
    const CodePoint point = next_code_point(text);
    if (used + width_of(point.value) > width - 1) break;
    used += width_of(point.value);
    out += text.substr(0, point.length);
    text.remove_prefix(point.length);
  }
  return out + "…";
}

std::string padded_right(std::string_view text, size_t width) {
  std::string out(text);
  const size_t used = display_width(text);
  if (used < width) out.append(width - used, ' ');
  return out;
}

std::string padded_left(std::string_view text, size_t width) {
  const size_t used = display_width(text);
  return used < width ? std::string(width - used, ' ') + std::string(text) : std::string(text);
}

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Whether a text begins with a unit: "ms (22 % of the run)", "%)".
bool begins_with_unit(std::string_view text) {
  static constexpr std::string_view kUnits[] = {"%",   "ns",  "us",  "ms",   "s",    "min", "B",       "KiB",
                                                "MiB", "GiB", "TiB", "GB/s", "MB/s", "MHz", "GFLOP/s", "GOP/s"};
  std::string_view word = text.substr(0, text.find(' '));
  while (!word.empty() && std::string_view(").,;:]").find(word.back()) != std::string_view::npos) word.remove_suffix(1);
  return std::find(std::begin(kUnits), std::end(kUnits), word) != std::end(kUnits);
}

// Where the first word ends: at a blank that does not stand between a number and its unit.
size_t end_of_word(std::string_view text) {
  size_t space = text.find(' ');
  while (space != std::string_view::npos && space > 0 && is_digit(text[space - 1]) &&
         begins_with_unit(text.substr(space + 1)))
    space = text.find(' ', space + 1);
  return space;
}

// As wrapped(), with the width of the first line.
std::string broken(std::string_view text, size_t first, size_t width, size_t indent) {
  std::string out;
  size_t used = 0, room = first;
  while (!text.empty()) {
    const size_t space = end_of_word(text);
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (word.empty()) continue;
    const size_t length = display_width(word);
    if (used > 0 && used + 1 + length > room) {
      out += '\n';
      out.append(indent, ' ');
      used = 0;
      room = width;
    } else if (used > 0) {
      out += ' ';
      ++used;
    }
    out += word;
    used += length;
  }
  return out;
}

}  // namespace

std::string wrapped(std::string_view text, size_t width, size_t indent) {
  return broken(text, width, width, indent);
}

std::string paragraph(std::string_view text, size_t width, size_t indent, size_t further) {
  std::string out;
  for (bool more = true; more;) {
    const size_t end = text.find('\n');
    more = end != std::string_view::npos;
    const std::string_view line = text.substr(0, end);
    out.append(indent, ' ');
    if (width == 0)
      out += line;
    else
      out += broken(line, width - std::min(width - 1, indent), width - std::min(width - 1, further), further);
    if (more) out += '\n';
    text.remove_prefix(more ? end + 1 : text.size());
  }
  return out;
}

std::string Screen::sentence(std::string_view text) const {
  const size_t indent = std::min(text.find_first_not_of(' '), text.size());
  return paragraph(text.substr(indent), fit(), indent, indent == 0 ? 2 : indent) + "\n";
}

Screen screen_of(int descriptor) {
  Screen screen;
  screen.terminal = ::isatty(descriptor) == 1;
  const char* term = std::getenv("TERM");
  const char* no_colour = std::getenv("NO_COLOR");
  screen.colour = screen.terminal && (no_colour == nullptr || *no_colour == '\0') &&
                  (term == nullptr || std::strcmp(term, "dumb") != 0);
  size_t width = 0;
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) width = std::strtoul(columns, nullptr, 10);
  winsize size{};
  if (width == 0 && screen.terminal && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  if (width != 0) screen.width = std::min<size_t>(std::max<size_t>(width, 40), 1000);
  return screen;
}

std::string painted(std::string_view text, Paint paint, bool colour) {
  if (!colour) return std::string(text);
  static constexpr std::array<std::string_view, 6> kCodes = {"1", "2", "31", "33", "32", "36"};
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<size_t>(paint)], text);
}

}  // namespace tacho::report
