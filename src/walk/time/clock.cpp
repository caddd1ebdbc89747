// Converts clocks with the trace's tuples (clock.h).
#include "walk/time/clock.h"

#include <algorithm>
#include <limits>

namespace tacho::walk {

namespace column = event::column;
using event::kUnknown;
using event::Table;

Result<std::vector<Moment>> clock_moments(const trace::Trace& trace) {
  std::vector<Moment> moments;
  static constexpr int kColumns[] = {column::Clock::raw, column::Clock::monotonic, column::Clock::boottime,
                                     column::Clock::realtime, column::Clock::device};
  const Status read = trace::visit_chunks(trace, Table::kClock, kColumns, [&](size_t, auto values) {
    for (size_t i = 0; i < values[0].size(); ++i)
      if (values[4][i] == 0 && values[0][i] != kUnknown)
        moments.push_back({values[0][i], values[1][i], values[2][i], values[3][i]});
    return true;
  });
  if (!read) return tl::unexpected<Error>(read.error());
  std::stable_sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) { return a.raw < b.raw; });
  moments.erase(
      std::unique(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) { return a.raw == b.raw; }),
      moments.end());
  return moments;
}

Result<OutputClock> OutputClock::make(const trace::Trace& trace, Clock clock) {
  TACHO_ASSIGN(const auto moments, clock_moments(trace));
  std::vector<std::pair<int64_t, int64_t>> points;
  for (const Moment& moment : moments) {
    const int64_t value = clock == Clock::kBoottime    ? moment.boottime
                          : clock == Clock::kMonotonic ? moment.monotonic
                                                       : moment.realtime;
    const auto sane = [](int64_t time) { return time >= -kFarthest && time <= kFarthest; };
    if (value != kUnknown && sane(value) && sane(moment.raw)) points.emplace_back(moment.raw, value);
  }
  constexpr int64_t kFirst = std::numeric_limits<int64_t>::min(), kLast = std::numeric_limits<int64_t>::max();
  OutputClock map;
  map.known_ = !points.empty();
  for (size_t i = 0; i + 1 < points.size(); ++i) {
    const auto [raw, value] = points[i];
    const double length = static_cast<double>(points[i + 1].first - raw);
    double drift = (static_cast<double>(points[i + 1].second - value) - length) / length;
    // A clock that jumped (REALTIME was set), or nonsense in the file, is a step and not a rate.
    if (!(drift > -0.01 && drift < 0.01)) drift = 0;
    map.pieces_.push_back({raw, points[i + 1].first, raw, value, drift});
  }
  if (map.pieces_.empty()) {
    const auto [raw, value] = points.empty() ? std::pair<int64_t, int64_t>{0, 0} : points[0];
    map.pieces_.push_back({kFirst, kLast, raw, value, 0.0});
  }
  map.pieces_.front().from = kFirst;
  map.pieces_.back().to = kLast;
  return map;
}

const OutputClock::Piece& OutputClock::find(int64_t raw) const {
  const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), raw,
                                      [](int64_t time, const Piece& piece) { return time < piece.from; });
  at_ = after == pieces_.begin() ? 0 : static_cast<size_t>(after - pieces_.begin()) - 1;
  return pieces_[at_];
}

}  // namespace tacho::walk
