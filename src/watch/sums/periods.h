// Sums of seconds, minutes and hours for as long as a program is watched, in bounded memory: seconds of the last hour,
// minutes of the last day, hours for ever.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "vendor/gpu_monitor.h"
#include "watch/segment.h"

namespace tacho::watch {

/// What is summed up: the operations of a row, or (kind kNone) a quantity of telemetry.
struct SumSeries {
  event::WatchKind kind = event::WatchKind::kNone;
  std::string name;  ///< RowSums::title(), or the reading's name
  std::string unit;  ///< of telemetry
};

/// A row's sums in a period.
struct PeriodSum {
  uint32_t series = 0;
  uint64_t count = 0, bytes = 0, timed = 0;
  uint64_t untold = 0;   ///< of `count`: nothing is known of their time
  double time_ns = 0;    ///< estimated, of the others
  double error_ns = 0;   ///< its standard error by chance; where that is not known, time_ns
  double common_ns = 0;  ///< by how much time_ns may be off because each time is off in the same direction
};

struct SumPeriod {
  int64_t begin = 0, end = 0;  ///< trace time, ns
  std::vector<PeriodSum> sums;
  std::vector<std::pair<uint32_t, double>> gauges;  ///< means of telemetry by series

  int64_t length() const { return end - begin; }
};

struct PeriodLimits {
  size_t second_rows = 32, minute_rows = 128, hour_rows = 256;  ///< of kernels and graphs; others share a row
  size_t hour_sums = 128'000;                                   ///< beyond them, 24 of the oldest periods become one
  int64_t seconds_kept = 3600, minutes_kept = 86400;            ///< s
};

class SumPeriods {
 public:
  /// `began`: trace time, ns. `unix_offset`: of 1970, ns, so that minutes and hours are those of clocks.
  SumPeriods(int64_t began, int64_t unix_offset, const PeriodLimits& limits = {});

  /// The sums at `now`, about once a second; a period ends at the first of them behind its end by the clock.
  void add(int64_t now, const WatchSnapshot& snapshot, const std::vector<vendor::GpuReading>& gpus);

  const std::vector<SumSeries>& series() const { return series_; }
  /// All periods in order of time; each moment is in one of them. Valid until the next add().
  std::vector<const SumPeriod*> periods() const;
  /// In all periods that are kept.
  size_t sums() const;

 private:
  // The sums of a series when a period began.
  struct Base {
    uint64_t count = 0, bytes = 0;
    AllLevels levels = {};
  };
  struct OpenPeriod {
    int64_t begin = 0;
    std::vector<Base> base;                                  // by series
    std::map<uint32_t, std::pair<double, uint64_t>> gauges;  // sum and number
  };
  uint32_t series_of(event::WatchKind kind, const std::string& name, const std::string& unit);
  SumPeriod close(OpenPeriod& open, int64_t now, size_t most_rows);
  void share_row(SumPeriod& period, size_t most_rows);
  void rotate(int64_t now);
  void fold_hours();
  int64_t minutes_from(int64_t now) const;
  int64_t seconds_from(int64_t now) const;

  PeriodLimits limits_;
  int64_t unix_offset_;
  std::vector<SumSeries> series_;
  std::map<std::pair<event::WatchKind, std::string>, uint32_t> numbers_;
  std::vector<Base> now_;     // by series
  std::vector<double> each_;  // RowSums::each_ns by series
  OpenPeriod second_, minute_, hour_;
  std::deque<SumPeriod> seconds_, minutes_, hours_;
  size_t hour_sums_ = 0;
};

}  // namespace tacho::watch
