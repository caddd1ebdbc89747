// Merges summaries: count, total, extremes and variance of rows that were summed separately.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/saturating.h"
#include "trace/store/summary.h"
#include "trace/trace.h"

namespace tacho::analysis {

/// Sums over durations. Rows of unknown duration count in `unknown` only.
struct Sums {
  int64_t count = 0;  // of known duration
  int64_t unknown = 0;
  int64_t total = 0;         // ns
  int64_t min = 0, max = 0;  // ns
  double mean = 0, m2 = 0;   // ns, ns^2: merged after Chan, Golub, LeVeque (1983)
  int64_t bytes = 0;         // over the `sized` rows, whose size is known
  int64_t sized = 0;
  int64_t sized_ns = 0;  // time of those that also have a duration: bytes / sized_ns is their rate in GB/s

  /// One row of `size` bytes (kUnknown: it does not count) that took `duration` (kUnknown likewise).
  void add_size(int64_t size, int64_t duration) {
    if (size == event::kUnknown) return;
    ++sized;
    add_saturating(bytes, size);
    if (duration != event::kUnknown) add_saturating(sized_ns, duration);
  }
  /// For traces of --aggregate, which keep the sum of the bytes only: all rows have a size, or none has.
  void assume_sizes() {
    if (bytes <= 0) return;
    sized = count + unknown;
    sized_ns = total;
  }
  /// Leaves the bytes out: summaries of chunks do not say how many rows have a size. See add_size().
  void add(const trace::Summary& summary) {
    unknown += summary.unknown;
    if (summary.count == 0) return;
    min = count == 0 ? summary.min : std::min(min, summary.min);
    max = count == 0 ? summary.max : std::max(max, summary.max);
    add_saturating(total, summary.sum);
    const auto a = static_cast<double>(count), b = static_cast<double>(summary.count);
    const double delta = summary.mean - mean;
    mean += delta * b / (a + b);
    m2 += summary.m2 + delta * delta * a * b / (a + b);
    count += summary.count;
  }
  void add(const Sums& other) {
    trace::Summary summary;
    summary.count = other.count;
    summary.unknown = other.unknown;
    summary.sum = other.total;
    summary.min = other.min;
    summary.max = other.max;
    summary.mean = other.mean;
    summary.m2 = other.m2;
    add(summary);
    add_saturating(bytes, other.bytes);
    sized += other.sized;
    add_saturating(sized_ns, other.sized_ns);
  }
  void add(int64_t duration) {
    min = count == 0 ? duration : std::min(min, duration);
    max = count == 0 ? duration : std::max(max, duration);
    add_saturating(total, duration);
    ++count;
    const double delta = static_cast<double>(duration) - mean;
    mean += delta / static_cast<double>(count);
    m2 += delta * (static_cast<double>(duration) - mean);
  }
  /// Sample standard deviation (n - 1), ns; 0 for fewer than two.
  double stddev() const { return count > 1 ? std::sqrt(std::max(0.0, m2) / static_cast<double>(count - 1)) : 0.0; }
};

}  // namespace tacho::analysis
