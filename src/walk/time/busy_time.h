// Span, busy and idle time of a device, a track or a rank (docs/definitions.md).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/saturating.h"
#include "walk/time/span.h"

namespace tacho::walk {

/// Takes intervals in ascending order of start; counts time once, however many of them it is in.
class BusyTime {
 public:
  /// Contract: start is not before that of the interval added before. An end before the start counts as the start.
  void add(int64_t start, int64_t end) {
    end = std::max(start, end);
    if (until_ == kNever) span_.first = start;
    add_saturating(busy_, end - std::clamp(until_, start, end));
    span_.last = until_ = std::max(until_, end);
  }
  bool any() const { return until_ != kNever; }
  /// From the first begin to the last end; {0, 0} without intervals.
  const Span& span() const { return span_; }
  /// Time in which at least one of them ran, ns.
  int64_t busy() const { return busy_; }
  /// Time of the span in which none of them ran, ns.
  int64_t idle() const { return span_.length() - busy_; }
  /// The last end so far; the least int64 without intervals.
  int64_t until() const { return until_; }
  /// Busy time before `time`, which is not before the last start.
  int64_t busy_before(int64_t time) const { return until_ > time ? busy_ - (until_ - time) : busy_; }

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::min();
  int64_t busy_ = 0, until_ = kNever;
  Span span_;
};

}  // namespace tacho::walk
