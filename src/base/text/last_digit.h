// What the digits of a number that a spreadsheet saved still say.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

namespace tacho {

/// From times with so coarse a last digit no duration can be told, ns.
inline constexpr double kCoarseTime = 1e6;

/// What the last digit of a number with an exponent stands for: 1e16 of "1.76E+18". 0 for every other text.
inline double last_digit(std::string_view cell) {
  const size_t mark = cell.find_first_of("eE");
  if (mark == std::string_view::npos || cell.starts_with("0x") || cell.starts_with("0X")) return 0;
  std::string_view exponent = cell.substr(mark + 1);
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  int power = 0;
  if (std::from_chars(exponent.data(), exponent.data() + exponent.size(), power).ec != std::errc()) return 0;
  const size_t point = cell.substr(0, mark).find('.');
  const int digits = point == std::string_view::npos ? 0 : static_cast<int>(std::min<size_t>(mark - point - 1, 400));
  return std::pow(10, std::clamp(power, -400, 400) - digits);
}

/// True if a start and an end are written with so few digits that nothing is left of the time between them.
inline bool rounded_away(std::string_view start, std::string_view end) {
  return !start.empty() && start == end && last_digit(start) >= kCoarseTime;
}

}  // namespace tacho
