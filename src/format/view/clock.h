// Trace time (CLOCK_MONOTONIC_RAW) in the clocks that other tools' files speak.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "trace/trace.h"

namespace tacho::format {

/// One moment in every clock that the trace knows, ns; event::kUnknown where it does not.
struct Moment {
  int64_t raw, monotonic, boottime, realtime;
};
/// The trace's clock tuples (not those of devices) in ascending raw time; of equal ones the first.
Result<std::vector<Moment>> clock_moments(const trace::Trace& trace);

/// Piecewise linear between the trace's clock tuples, continued at the outermost pieces' rates; the identity
/// for a trace without tuples. Not thread-safe: remembers the last piece.
class ClockMap {
 public:
  enum class Clock { kBoottime, kMonotonic, kRealtime };
  static Result<ClockMap> make(const trace::Trace& trace, Clock clock);
  int64_t operator()(int64_t raw) const {
    const Piece* piece = &pieces_[at_];
    if (raw < piece->from || raw >= piece->to) piece = &find(raw);
    const int64_t since = raw - piece->origin;
    return piece->value + since + static_cast<int64_t>(static_cast<double>(since) * piece->drift);
  }
  /// False: the trace has no tuple of that clock, so times are passed on as they are.
  bool known() const { return known_; }

 private:
  struct Piece {
    int64_t from, to, origin, value;
    double drift;  // rate - 1
  };
  const Piece& find(int64_t raw) const;
  std::vector<Piece> pieces_;
  mutable size_t at_ = 0;
  bool known_ = false;
};

}  // namespace tacho::format
