// Units of counters (counter_units.h).
#include "format/perfetto/counter_units.h"

#include <iterator>

namespace tacho::format::perfetto {

namespace {

constexpr std::string_view kWords[] = {
    "",   "bit", "kbit", "Mbit",     "Gbit",   "Tbit",       "Pbit",      "B",           "kB", "MB", "GB",
    "TB", "PB",  "Hz",   "kHz",      "MHz",    "GHz",        "THz",       "PHz",         "ns", "us", "ms",
    "s",  "min", "h",    "vertices", "pixels", "triangles",  "mW",        "W",           "kW", "J",  "V",
    "A",  "C",   "F",    "K",        "%",      "primitives", "fragments", "instructions"};

// 0 = there is none.
uint32_t unit_number(std::string_view text) {
  if (text == "percent") text = "%";
  if (text == "bytes" || text == "byte") text = "B";
  for (size_t at = 1; at < std::size(kWords); ++at)
    if (kWords[at] == text) return static_cast<uint32_t>(at);
  return 0;
}

}  // namespace

std::string_view unit_word(uint64_t unit) {
  return unit < std::size(kWords) ? kWords[unit] : std::string_view();
}

CounterUnits counter_units(std::string_view text) {
  CounterUnits units;
  if (text.empty()) return units;
  const size_t line = text.find('/');
  units.numerator = unit_number(text.substr(0, line));
  if (line != std::string_view::npos) units.denominator = unit_number(text.substr(line + 1));
  units.known = units.numerator != 0 && (line == std::string_view::npos || units.denominator != 0);
  if (!units.known) return CounterUnits{.known = false};
  constexpr uint32_t kByte = 7, kPetabyte = 12;
  units.bytes = units.numerator >= kByte && units.numerator <= kPetabyte;
  return units;
}

}  // namespace tacho::format::perfetto
