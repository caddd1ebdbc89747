// Parses moments (time_text.h).
#include "cli/shared/time_text.h"

#include <charconv>
#include <cmath>

namespace tacho::cli {

bool is_absolute(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

Result<int64_t> parse_moment(std::string_view text, int64_t first, int64_t last, std::string_view option) {
  const auto refuse = [&] {
    return fail(
        "{} {}: write a share (25%), a time after the first event (+1.5s, +200ms), before the last one (-1s), or "
        "nanoseconds as the trace has them",
        option, text);
  };
  if (is_absolute(text)) {
    int64_t value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return refuse();
    return value;
  }
  const bool after = text.starts_with('+'), before = text.starts_with('-');
  std::string_view digits = text.substr(after || before ? 1 : 0);
  double number = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return refuse();
  const std::string_view unit = digits.substr(static_cast<size_t>(stop - digits.data()));
  if (unit == "%" && !after && !before) {
    if (number > 100) return refuse();
    return first + static_cast<int64_t>(std::llround(static_cast<double>(last - first) * number / 100.0));
  }
  if (!after && !before) return refuse();
  const double scale = unit.empty() || unit == "ns" ? 1
                       : unit == "us"               ? 1e3
                       : unit == "ms"               ? 1e6
                       : unit == "s"                ? 1e9
                       : unit == "min"              ? 60e9
                                                    : 0;
  if (scale == 0 || number * scale > 9e18) return refuse();
  const auto length = static_cast<int64_t>(std::llround(number * scale));
  return after ? first + length : last - length;
}

}  // namespace tacho::cli
