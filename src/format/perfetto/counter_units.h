// Units of counters as Perfetto numbers them (GpuCounterDescriptor.MeasureUnit).
#pragma once

#include <cstdint>
#include <string_view>

namespace tacho::format::perfetto {

/// A unit and the one below the line; 0 = none. `known`: the text is a unit that Perfetto has, or empty.
struct CounterUnits {
  uint32_t numerator = 0, denominator = 0;
  bool known = true;
  bool bytes = false;  // of memory or traffic
};
/// "B/s", "W", "%"; not known: "cycles", "pages".
CounterUnits counter_units(std::string_view text);
/// What stands in a counter's description before a unit that Perfetto does not have.
inline constexpr std::string_view kUnitBefore = "Unit: ";
/// The groups of counters whose hardware block is not known.
inline constexpr std::string_view kGroupOfKernels = "Kernels", kGroupOfTelemetry = "Telemetry";
constexpr bool is_own_group(std::string_view group) {
  return group == kGroupOfKernels || group == kGroupOfTelemetry;
}
/// The text of a unit by its number; "" for those that Perfetto does not have.
std::string_view unit_word(uint64_t unit);

}  // namespace tacho::format::perfetto
