// What `tacho watch` concludes from the sums of a row, of which 1 of N operations was timed: totals with their error,
// and quantiles.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "event/watch_table.h"

namespace tacho::watch {

/// Sums of the operations during which 1 of 2^level was to be timed.
struct LevelSums {
  uint64_t count = 0, timed = 0, time = 0;  ///< time: of the timed ones, ns
  double squares = 0;                       ///< ns²
  uint64_t bounded = 0, bound_time = 0;     ///< of others at least an upper bound is known, ns
};
using AllLevels = std::array<LevelSums, event::kWatchLevels>;
using AllBuckets = std::array<uint64_t, event::kWatchBuckets>;

struct TimeEstimate {
  uint64_t timed = 0;
  double total_ns = 0;  ///< of all operations, timed or not
  /// The standard error of total_ns; 0 when every operation was timed, nothing when it cannot be told.
  std::optional<double> error_ns;
  /// Half the width of the 95 % interval around total_ns (Student's t); nothing as above.
  std::optional<double> interval_ns;
};

/// The time of all operations of a row: each level is a stratum of a stratified sample (Cochran, Sampling Techniques,
/// chapter 5), with the correction for finite populations. A stratum without a time takes the mean of the others, with
/// the error of a prediction. `each_ns`: by how much each time may be off in the same direction; it is part of the
/// error. Nothing when no operation was timed.
std::optional<TimeEstimate> estimate_time(const AllLevels& levels, double each_ns = 0);

/// The time, ns, that all operations took at most, where only bounds are known; nothing where times are, or neither.
std::optional<double> estimate_bound(const AllLevels& levels);

/// The duration, ns, that the share `quantile` (0 to 1) of operations does not exceed, within an eighth: the middle of
/// its bucket. Nothing without times.
std::optional<double> estimate_quantile(const AllBuckets& buckets, double quantile);

/// The two-sided 95 % quantile of Student's t with `freedom` degrees of freedom, from 1.
double student_95(uint64_t freedom);

}  // namespace tacho::watch
