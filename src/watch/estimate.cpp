// Stratified estimates of sums (estimate.h).
#include "watch/estimate.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace tacho::watch {

double student_95(uint64_t freedom) {
  static constexpr double kExact[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  if (freedom == 0) return INFINITY;
  if (freedom <= std::size(kExact)) return kExact[freedom - 1];
  // Cornish and Fisher's expansion: within 0.003 from 11 on.
  constexpr double z = 1.959964;
  const auto n = static_cast<double>(freedom);
  return z + (z * z * z + z) / (4 * n) + (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * n * n);
}

std::optional<TimeEstimate> estimate_time(const AllLevels& levels, double each_ns) {
  TimeEstimate estimate;
  double known_time = 0, known_count = 0;  // of the strata with times
  double squared_deviations = 0;
  uint64_t strata = 0, freedom = 0;
  for (const LevelSums& level : levels) {
    if (level.timed == 0) continue;
    const auto timed = static_cast<double>(level.timed),
               count = static_cast<double>(std::max(level.count, level.timed));
    const double mean = static_cast<double>(level.time) / timed;
    estimate.timed += level.timed;
    known_time += mean * count;
    known_count += count;
    squared_deviations += std::max(0.0, level.squares - mean * static_cast<double>(level.time));
    freedom += level.timed - 1;
    ++strata;
  }
  if (strata == 0) return std::nullopt;
  const double pooled_variance = freedom > 0 ? squared_deviations / static_cast<double>(freedom) : NAN;
  double variance = 0, all = 0;
  for (const LevelSums& level : levels) {
    const auto timed = static_cast<double>(level.timed),
               count = static_cast<double>(std::max(level.count, level.timed));
    if (count == 0) continue;
    all += count;
    if (level.timed == 0) {
      estimate.total_ns += count * known_time / known_count;
      variance += pooled_variance * (count + count * count / static_cast<double>(estimate.timed));
      continue;
    }
    const double mean = static_cast<double>(level.time) / timed;
    estimate.total_ns += mean * count;
    if (level.timed >= level.count) continue;
    const double own = level.timed > 1
                           ? std::max(0.0, level.squares - mean * static_cast<double>(level.time)) / (timed - 1)
                           : pooled_variance;
    variance += count * count * own / timed * (1 - timed / count);
  }
  if (std::isnan(variance)) return estimate;
  const double common = all * each_ns;
  estimate.error_ns = std::sqrt(variance + common * common);
  const double chance = variance == 0 ? 0 : std::sqrt(variance) * student_95(freedom);
  estimate.interval_ns = std::sqrt(chance * chance + 4 * common * common);
  return estimate;
}

std::optional<double> estimate_bound(const AllLevels& levels) {
  uint64_t bounded = 0, bound_time = 0, unknown = 0;
  double total = 0;
  for (const LevelSums& level : levels) {
    if (level.timed != 0) return std::nullopt;
    bounded += level.bounded;
    bound_time += level.bound_time;
    if (level.bounded != 0)
      total += static_cast<double>(level.bound_time) / static_cast<double>(level.bounded) *
               static_cast<double>(std::max(level.count, level.bounded));
    else
      unknown += level.count;
  }
  if (bounded == 0) return std::nullopt;
  return total + static_cast<double>(unknown) * static_cast<double>(bound_time) / static_cast<double>(bounded);
}

std::optional<double> estimate_quantile(const AllBuckets& buckets, double quantile) {
  uint64_t all = 0;
  for (const uint64_t count : buckets) all += count;
  if (all == 0) return std::nullopt;
  const double wanted = quantile * static_cast<double>(all);
  uint64_t sum = 0;
  uint32_t bucket = 0;
  for (; bucket + 1 < event::kWatchBuckets; ++bucket) {
    sum += buckets[bucket];
    if (static_cast<double>(sum) >= wanted && sum > 0) break;
  }
  const auto from = bucket == 0 ? 0.0 : static_cast<double>(event::watch_bucket_end(bucket - 1));
  if (bucket + 1 == event::kWatchBuckets) return from;
  return (from + static_cast<double>(event::watch_bucket_end(bucket))) / 2;
}

}  // namespace tacho::watch
