// Piecewise linear clock conversion (clock_map.h).
#include "decode/clock_map.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tacho::decode {
namespace {

// Finds i so that x lies in segment [i, i + 1] of `size` points whose abscissa is at(i); clamps at the ends.
template <typename At>
size_t segment_of(size_t size, size_t guess, At at, int64_t x) {
  if (size < 2) return 0;
  if (guess + 1 < size && at(guess) <= x && x < at(guess + 1)) return guess;
  size_t low = 0, high = size - 1;
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    (at(middle) <= x ? low : high) = middle;
  }
  return low;
}

int64_t scale(int64_t distance, double slope) {
  constexpr double kMost = 4e18;  // what targets write may be anything
  return std::llround(std::clamp(static_cast<double>(distance) * slope, -kMost, kMost));
}
// Times from a damaged pool may be anything: they wrap instead of overflowing.
int64_t plus(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
int64_t minus(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b)); }
double slope_of(int64_t rise, int64_t run) { return static_cast<double>(rise) / static_cast<double>(run); }

}  // namespace

void PiecewiseLinear::add(int64_t x, int64_t y) {
  if (!points_.empty() && x <= points_.back().x) return;
  points_.push_back({x, y});
}

int64_t PiecewiseLinear::operator()(int64_t x) const {
  if (points_.empty()) return x;
  if (points_.size() == 1) return plus(points_[0].y, scale(minus(x, points_[0].x), slope_));
  last_ = segment_of(points_.size(), last_, [&](size_t i) { return points_[i].x; }, x);
  const Point& a = points_[last_];
  const Point& b = points_[last_ + 1];
  return plus(a.y, scale(minus(x, a.x), slope_of(minus(b.y, a.y), minus(b.x, a.x))));
}

int64_t PiecewiseLinear::worst_residual() const {
  int64_t worst = 0;
  for (size_t i = 1; i + 1 < points_.size(); ++i) {
    const Point &a = points_[i - 1], &b = points_[i], &c = points_[i + 1];
    const int64_t line = plus(a.y, scale(minus(b.x, a.x), slope_of(minus(c.y, a.y), minus(c.x, a.x))));
    worst = std::max<int64_t>(worst, std::abs(minus(line, b.y)));
  }
  return worst;
}

void ClockMap::add(const ClockTuple& tuple) {
  if (!tuples_.empty() && (tuple.tsc <= tuples_.back().tsc || tuple.raw <= tuples_.back().raw)) return;
  tuples_.push_back(tuple);
  monotonic_.add(tuple.monotonic, tuple.raw);
  realtime_.add(tuple.realtime, tuple.raw);
}

int64_t ClockMap::from_tsc(uint64_t ticks) const {
  if (tuples_.empty()) return static_cast<int64_t>(ticks);
  if (tuples_.size() == 1)
    return plus(tuples_[0].raw, scale(static_cast<int64_t>(ticks - tuples_[0].tsc), ns_per_tick_));
  last_ = segment_of(tuples_.size(), last_, [&](size_t i) { return static_cast<int64_t>(tuples_[i].tsc); },
                     static_cast<int64_t>(ticks));
  const ClockTuple& a = tuples_[last_];
  // Outside the sampled range, and across short segments, use the longest baseline there is: less noise.
  const ClockTuple& b = tuples_[last_ + 1];
  const double slope = static_cast<double>(minus(b.raw, a.raw)) / static_cast<double>(b.tsc - a.tsc);
  return plus(a.raw, scale(static_cast<int64_t>(ticks - a.tsc), slope));
}

}  // namespace tacho::decode
