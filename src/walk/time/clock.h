// Converts trace time (CLOCK_MONOTONIC_RAW) to the clocks of other tools' files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/result.h"
#include "trace/trace.h"

namespace tacho::walk {

/// start + duration, ns, limited to the range of int64 (files may contain anything).
inline int64_t time_after(int64_t start, int64_t duration) {
  int64_t end = 0;
  if (!__builtin_add_overflow(start, duration, &end)) return end;
  return duration > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}

/// One moment in every clock that the trace knows, ns; event::kUnknown for the others.
struct Moment {
  int64_t raw, monotonic, boottime, realtime;
};
/// The host's clock tuples in the trace, in ascending raw time; of equal raw times only the first.
Result<std::vector<Moment>> clock_moments(const trace::Trace& trace);

/// Converts trace time to one of these clocks: linear between neighbouring clock tuples, at the rate of the outermost
/// pieces beyond them, unchanged if the trace has no tuples. It remembers the last piece, so it must not be shared
/// between threads.
class OutputClock {
 public:
  enum class Clock { kBoottime, kMonotonic, kRealtime };
  static Result<OutputClock> make(const trace::Trace& trace, Clock clock);
  int64_t operator()(int64_t raw) const {
    raw = std::clamp(raw, -kFarthest, kFarthest);
    const Piece* piece = &pieces_[at_];
    if (raw < piece->from || raw >= piece->to) piece = &find(raw);
    const int64_t since = raw - piece->origin;
    return piece->value + since + static_cast<int64_t>(static_cast<double>(since) * piece->drift);
  }
  /// False: the trace has no tuple of that clock, so times stay as they are.
  bool known() const { return known_; }

 private:
  static constexpr int64_t kFarthest = int64_t{1} << 61;  // 73 years; also the limit for a tuple's times
  struct Piece {
    int64_t from, to, origin, value;
    double drift;  // rate - 1
  };
  const Piece& find(int64_t raw) const;
  std::vector<Piece> pieces_;
  mutable size_t at_ = 0;
  bool known_ = false;
};

}  // namespace tacho::walk
