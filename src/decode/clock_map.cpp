// Piecewise linear clock conversion (clock_map.h).
#include "decode/clock_map.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tacho::decode {
namespace {

// The i for which x lies in [at(i), at(i + 1)) of `size` points; clamps at the ends.
template <typename At>
size_t segment_of(size_t size, At at, int64_t x) {
  size_t low = 0, high = size - 1;
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    (at(middle) <= x ? low : high) = middle;
  }
  return low;
}

int64_t scale(int64_t distance, double slope) {
  constexpr double kMost = 4e18;  // targets may write any value
  const double value = std::clamp(static_cast<double>(distance) * slope, -kMost, kMost);
  return static_cast<int64_t>(value + (value < 0 ? -0.5 : 0.5));
}
// Times from a damaged pool may be anything: they wrap instead of overflowing.
int64_t plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t minus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
double slope_of(int64_t rise, int64_t run) {
  return static_cast<double>(rise) / static_cast<double>(run);
}

}  // namespace

void PiecewiseLinear::add(int64_t x, int64_t y) {
  if (!points_.empty() && x <= points_.back().x) return;
  points_.push_back({x, y});
  last_.end = last_.begin;
}

void PiecewiseLinear::remove_last() {
  if (!points_.empty()) points_.pop_back();
  last_.end = last_.begin;
}

int64_t PiecewiseLinear::operator()(int64_t x) const {
  if (points_.empty()) return x;
  if (points_.size() == 1) return plus(points_[0].y, scale(minus(x, points_[0].x), slope_));
  if (!last_.holds(x)) {
    const size_t i = segment_of(
        points_.size(), [&](size_t at) { return points_[at].x; }, x);
    const Point &a = points_[i], &b = points_[i + 1];
    last_ = {i == 0 ? INT64_MIN : a.x, i + 2 == points_.size() ? INT64_MAX : b.x, a.x, a.y,
             slope_of(minus(b.y, a.y), minus(b.x, a.x))};
  }
  return plus(last_.y, scale(minus(x, last_.x), last_.slope));
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
  last_.end = last_.begin;
  monotonic_.add(tuple.monotonic, tuple.raw);
  realtime_.add(tuple.realtime, tuple.raw);
}

void ClockMap::follow(const ClockTuple& tuple, int64_t spacing) {
  const size_t count = tuples_.size();
  if (count >= 2 && tuple.tsc > tuples_[count - 1].tsc && tuple.raw > tuples_[count - 1].raw &&
      minus(tuples_[count - 1].raw, tuples_[count - 2].raw) < spacing) {
    tuples_.pop_back();
    monotonic_.remove_last();
    realtime_.remove_last();
  }
  add(tuple);
}

int64_t ClockMap::from_tsc(uint64_t ticks) const {
  if (tuples_.empty()) return static_cast<int64_t>(ticks);
  if (tuples_.size() == 1)
    return plus(tuples_[0].raw, scale(static_cast<int64_t>(ticks - tuples_[0].tsc), ns_per_tick_));
  const auto x = static_cast<int64_t>(ticks);
  if (!last_.holds(x)) {
    const auto tsc = [&](size_t at) { return static_cast<int64_t>(tuples_[at].tsc); };
    const size_t i = segment_of(tuples_.size(), tsc, x);
    const ClockTuple &a = tuples_[i], &b = tuples_[i + 1];
    last_ = {i == 0 ? INT64_MIN : tsc(i), i + 2 == tuples_.size() ? INT64_MAX : tsc(i + 1), tsc(i), a.raw,
             static_cast<double>(minus(b.raw, a.raw)) / static_cast<double>(b.tsc - a.tsc)};
  }
  return plus(last_.y, scale(minus(x, last_.x), last_.slope));
}

}  // namespace tacho::decode
