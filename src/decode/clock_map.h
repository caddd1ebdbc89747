// Converts every clock that records carry into trace time (CLOCK_MONOTONIC_RAW ns), piecewise linearly between sampled
// clock tuples.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace tacho::decode {

/// One line of a piecewise linear function, for x in [begin, end); empty while end <= begin. Caches the last look-up:
/// times come nearly sorted, so the next one mostly falls into the same segment.
struct Segment {
  int64_t begin = 0, end = 0;
  int64_t x = 0, y = 0;  // a point on it
  double slope = 0;
  bool holds(int64_t at) const { return at >= begin && at < end; }
};

/// A function through pairs (x, y) of ascending x. Interpolates between neighbours and extrapolates with the slope of
/// the two outermost pairs, or with the given slope while there is only one pair.
class PiecewiseLinear {
 public:
  explicit PiecewiseLinear(double single_slope = 1.0) : slope_(single_slope) {}
  /// Adds a pair; ignores it unless its x is above the last one's.
  void add(int64_t x, int64_t y);
  /// Takes back the last pair.
  void remove_last();
  bool empty() const { return points_.empty(); }
  int64_t operator()(int64_t x) const;
  /// The largest distance of an inner pair from the line through its neighbours, in ns of y: an estimate of the
  /// interpolation error.
  int64_t worst_residual() const;

 private:
  struct Point {
    int64_t x, y;
  };
  std::vector<Point> points_;
  double slope_;
  mutable Segment last_;
};

/// Converts the machine's clocks with tuples sampled in tacho's process. All processes of a machine share one TSC.
class ClockMap {
 public:
  /// Adds a tuple; ignores it unless it is later than the last one.
  void add(const ClockTuple& tuple);
  /// Call with the tuple of this moment before each conversion of the records up to now. It replaces the last tuple
  /// unless that is at least `spacing` ns after the one before it. So all but the newest records lie between tuples,
  /// and no slope is taken from two tuples so close that their reading error shows.
  void follow(const ClockTuple& tuple, int64_t spacing);
  /// Sets the slope of the TSC to use until there are two tuples.
  void set_ns_per_tick(double value) { ns_per_tick_ = value; }
  int64_t from_tsc(uint64_t ticks) const;
  int64_t from_monotonic(int64_t ns) const { return monotonic_(ns); }
  int64_t from_realtime(int64_t ns) const { return realtime_(ns); }
  const std::vector<ClockTuple>& tuples() const { return tuples_; }

 private:
  std::vector<ClockTuple> tuples_;
  PiecewiseLinear monotonic_, realtime_;
  double ns_per_tick_ = 0;
  mutable Segment last_;
};

}  // namespace tacho::decode
