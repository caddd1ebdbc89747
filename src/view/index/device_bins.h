// A device's activity over time: time busy, with kernels, with copies or fills, with those while no kernel ran, with
// collectives, and the gaps between, in bins of equal width.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "walk/time/span.h"

namespace tacho::view {

/// Sums over a span of time; two neighbouring spans add up.
struct BusySums {
  int64_t busy = 0, kernels = 0, copies = 0, exposed = 0, collectives = 0;  // ns
  // Time without work: at the begin, the longest inside, at the end. Without any work all of it is `lead` and `trail`.
  int64_t lead = 0, longest = 0, trail = 0;
  int64_t width = 0;  // of the span
  int64_t longest_gap() const {
    return lead > longest ? (lead > trail ? lead : trail) : longest > trail ? longest : trail;
  }
  void append(const BusySums& next);
};

/// Disjoint intervals that grow at the end.
class Union {
 public:
  /// Adds the part of an interval that lies after all earlier ones, or joins it to the last. In order of start.
  void add(int64_t start, int64_t end) {
    if (end <= start) return;
    if (!spans_.empty() && start <= spans_.back().second) {
      if (end > spans_.back().second) spans_.back().second = end;
      return;
    }
    spans_.emplace_back(start, end);
  }
  /// The parts before `limit`, removed.
  std::vector<std::pair<int64_t, int64_t>> take(int64_t limit);

 private:
  std::vector<std::pair<int64_t, int64_t>> spans_;
};

enum class WorkKind : uint8_t { kKernel, kCollective, kCopy, kFill };

/// Gathers a device's work, in order of start, into `bins` bins of `width` ns from 0 on.
class DeviceBins {
 public:
  DeviceBins(int64_t bins, int64_t width);
  void add(int64_t start, int64_t end, WorkKind work);
  /// No work that begins before `time` comes any more.
  void advance(int64_t time);
  /// From the first begin to the last end of the intervals added; of length 0 before the first.
  walk::Span span() const { return span_.first <= span_.last ? span_ : walk::Span{}; }
  int64_t bins() const { return static_cast<int64_t>(bins_.size()); }
  int64_t width() const { return width_; }
  /// The bins [from, to) together.
  BusySums sum(int64_t from, int64_t to) const;

 private:
  struct Bin {
    int64_t busy = 0, kernels = 0, copies = 0, exposed = 0, collectives = 0;
    int64_t lead = -1, longest = 0,
            last = 0;  // lead < 0: no work; last: where the last work ended, from the bin's begin
  };
  void spread(const std::vector<std::pair<int64_t, int64_t>>& spans, int64_t Bin::*member);
  BusySums of(const Bin& bin) const;

  int64_t width_;
  std::vector<Bin> bins_;
  walk::Span span_{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  Union all_, kernels_, copies_, collectives_;
};

/// The parts of `a` that no interval of `b` covers; both are disjoint and in order.
std::vector<std::pair<int64_t, int64_t>> without(const std::vector<std::pair<int64_t, int64_t>>& a,
                                                 const std::vector<std::pair<int64_t, int64_t>>& b);

}  // namespace tacho::view
