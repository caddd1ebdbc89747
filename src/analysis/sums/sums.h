// Sums of periods that `tacho watch -o FILE.tacho` wrote (names.h): added up, shown, two times compared.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/answer.h"
#include "trace/trace.h"

namespace tacho::analysis {

/// Part of a trace's time, ns.
struct TimeRange {
  int64_t from = 0, to = 0;
};

/// What was summed up over periods. Counts are exact, times are estimates.
struct SumRow {
  std::string kind, name;  ///< "kernel", "vecCopy 4096/256"
  uint64_t count = 0, bytes = 0, timed = 0;
  uint64_t untold = 0;   ///< of count: their periods have no timed operation
  double time_ns = 0;    ///< of the others
  double variance = 0;   ///< of time_ns by chance, ns²
  double common_ns = 0;  ///< by how much all of it may be off alike

  /// Those without a time take the mean of the others. Nothing without times.
  std::optional<double> total_ns() const;
  std::optional<double> average_ns() const;
  /// Half the 95 % interval around total_ns() by chance, and with what all times have in common.
  std::optional<double> chance_ns() const;
  std::optional<double> interval_ns() const;
};

/// A mean of telemetry.
struct SumGauge {
  std::string name, unit;
  double mean = 0;
};

struct SumTotals {
  TimeRange covered;  ///< from the first period's begin to the last one's end
  double seconds = 0;
  size_t periods = 0;
  std::vector<SumRow> rows;  ///< longest first
  std::vector<SumGauge> gauges;
};

/// Whether the trace holds such sums.
bool holds_sums(const trace::Trace& trace);
/// Why that which asks for single operations refuses such a file, and what reads it.
std::string sums_sentence(std::string_view name);
/// From the first period's begin to the last one's end; an error where there is none.
Result<TimeRange> span_of_sums(const trace::Trace& trace);
/// The sums of each range: of the periods whose middle lies in it. In one pass.
Result<std::vector<SumTotals>> sum_up(const trace::Trace& trace, std::span<const TimeRange> ranges);

/// A range of time as people write it: "14:00-14:10" (local time, the last such time in `span`), with seconds, with a
/// date ("2026-11-27T14:00-15:00"), open at one end ("14:10-"), or counted from the beginning ("0s-90s", "5min-10min",
/// "1h-2h"). `option` begins the error.
Result<TimeRange> parse_time_range(const trace::Trace& trace, std::string_view text, const TimeRange& span,
                                   std::string_view option);
/// "14:10:00" in local time, with the date where `dated`; seconds from `span`'s begin where the trace does not know the
/// time of day.
std::string clock_text(const trace::Trace& trace, int64_t time, const TimeRange& span, bool dated = false);

/// The rows of these kinds ("kernel", "graph", ...) as a table.
report::Answer sums_answer(const SumTotals& totals, std::span<const std::string_view> kinds);
/// Two times compared: change of the average with its 95 % interval, and of the share of the run.
report::Answer change_answer(const SumTotals& before, const SumTotals& after, std::span<const std::string_view> kinds);
/// What changed: "since 14:10:00 gemm_x takes 8.0 % longer ...", and what the GPUs' telemetry did. `since`: "since
/// 14:10:00", begins the sentence.
std::vector<std::string> change_sentences(const SumTotals& before, const SumTotals& after,
                                          std::span<const std::string_view> kinds, std::string_view since);

}  // namespace tacho::analysis
