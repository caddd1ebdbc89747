// Which numbers are times and durations: one rule for all that makes rows, reads them or adds them up.
#pragma once

#include <cstdint>

#include "event/schema.h"

namespace tacho::event {

/// Times lie at most this far from 0 (ns: 73 years), and no duration is longer: sums and differences of two fit an
/// int64.
inline constexpr int64_t kFarthestTime = int64_t{1} << 61;

constexpr bool is_time(int64_t ns) {
  return ns >= -kFarthestTime && ns <= kFarthestTime;
}

/// The rule for rows that end before they begin: their duration is unknown. They stay, they count as calls, and they
/// add nothing to a time. The same for an unknown duration (kUnknown), or longer than kFarthestTime.
constexpr int64_t known_duration(int64_t duration) {
  return duration >= 0 && duration <= kFarthestTime ? duration : kUnknown;
}

/// known_duration() of what lasted from `start` to `end`, which may be any numbers.
constexpr int64_t duration_between(int64_t start, int64_t end) {
  int64_t duration = 0;
  return start == kUnknown || end == kUnknown || __builtin_sub_overflow(end, start, &duration)
             ? kUnknown
             : known_duration(duration);
}

}  // namespace tacho::event
