// Reading sums of periods (sums.h).
#include "analysis/sums/sums.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "analysis/sums/names.h"
#include "trace/read/rows.h"

namespace tacho::analysis {
namespace {

namespace column = event::column;
using event::Table;
using Reading = event::row::Reading;
using R = column::Reading;

constexpr double kNs = 1e9;

constexpr std::array kBlocks = {kCountBlock, kBytesBlock, kTimedBlock, kUntoldBlock,
                                kTimeBlock,  kErrorBlock, kCommonBlock};

// What a counter track of the file holds.
struct SumTrack {
  enum class What : uint8_t { kOther, kPeriod, kSum, kGauge } what = What::kOther;
  size_t block = 0;  // of kBlocks
  size_t row = 0;    // of rows or gauges
};

struct SumTracks {
  std::vector<SumTrack> tracks;
  SumTotals empty;  // its rows and gauges by number
};

SumTracks tracks_of(const trace::Trace& trace) {
  SumTracks found;
  std::map<std::pair<std::string, std::string>, size_t> rows;
  found.tracks.resize(static_cast<size_t>(trace.rows(Table::kTrack)));
  for (size_t i = 1; i < found.tracks.size(); ++i) {
    const auto track = static_cast<int64_t>(i);
    const std::string_view category = trace.text(Table::kTrack, track, column::Track::category);
    if (!category.starts_with(kSumCategory)) continue;
    const int64_t counter = trace.cell(Table::kTrack, track, column::Track::counter);
    const std::string_view block = trace.text(Table::kCounter, counter, column::Counter::block),
                           name = trace.text(Table::kCounter, counter, column::Counter::text);
    SumTrack& one = found.tracks[i];
    if (block == kPeriodCategory) {
      one.what = SumTrack::What::kPeriod;
    } else if (block == kGaugeBlock) {
      one.what = SumTrack::What::kGauge;
      one.row = found.empty.gauges.size();
      found.empty.gauges.push_back(
          {std::string(name), std::string(trace.text(Table::kCounter, counter, column::Counter::unit)), 0});
    } else if (const auto* const at = std::find(kBlocks.begin(), kBlocks.end(), block); at != kBlocks.end()) {
      one.what = SumTrack::What::kSum;
      one.block = static_cast<size_t>(at - kBlocks.begin());
      const std::string kind(category.substr(kSumCategory.size()));
      const auto [place, fresh] = rows.try_emplace({kind, std::string(name)}, found.empty.rows.size());
      one.row = place->second;
      if (fresh) {
        SumRow& row = found.empty.rows.emplace_back();
        row.kind = kind;
        row.name = name;
      }
    }
  }
  return found;
}

// A range and what was found in it so far.
struct OpenTotals {
  TimeRange range;
  SumTotals totals;
  std::vector<double> gauge_seconds;

  // The period's length, s, if it belongs to the range.
  bool holds(int64_t begin, double seconds) const {
    const auto middle = begin + static_cast<int64_t>(seconds * kNs / 2);
    return middle >= range.from && middle < range.to;
  }
  void add(const SumTrack& track, double value, double seconds) {
    if (track.what == SumTrack::What::kGauge) {
      totals.gauges[track.row].mean += value * seconds;
      gauge_seconds[track.row] += seconds;
      return;
    }
    SumRow& row = totals.rows[track.row];
    const double sum = value * seconds;
    const std::string_view block = kBlocks[track.block];
    const auto whole = static_cast<uint64_t>(std::max(0.0, std::round(sum)));
    if (block == kCountBlock) row.count += whole;
    if (block == kBytesBlock) row.bytes += whole;
    if (block == kTimedBlock) row.timed += whole;
    if (block == kUntoldBlock) row.untold += whole;
    if (block == kTimeBlock) row.time_ns += sum;
    if (block == kErrorBlock) row.variance += sum * sum;
    if (block == kCommonBlock) row.common_ns += sum;
  }
  SumTotals take() {
    std::vector<SumGauge> gauges;
    for (size_t i = 0; i < gauge_seconds.size(); ++i) {
      if (gauge_seconds[i] <= 0) continue;
      gauges.push_back(std::move(totals.gauges[i]));
      gauges.back().mean /= gauge_seconds[i];
    }
    totals.gauges = std::move(gauges);
    std::erase_if(totals.rows, [](const SumRow& row) { return row.count == 0; });
    std::sort(totals.rows.begin(), totals.rows.end(), [](const SumRow& a, const SumRow& b) {
      const double left = a.total_ns().value_or(-1), right = b.total_ns().value_or(-1);
      return left != right ? left > right : a.count != b.count ? a.count > b.count : a.name < b.name;
    });
    return std::move(totals);
  }
};

// {begin: length, s} of all periods.
Result<std::map<int64_t, double>> periods_of(const trace::Trace& trace, const SumTracks& tracks) {
  std::map<int64_t, double> periods;
  Status status;
  for (const auto& chunk : trace::chunks<R::track, R::start, R::value>(trace, status))
    for (size_t i = 0; i < chunk.size(); ++i) {
      const auto track = static_cast<size_t>(chunk.track[i]);
      if (track >= tracks.tracks.size() || tracks.tracks[track].what != SumTrack::What::kPeriod) continue;
      const double seconds = chunk.value[i].value();
      if (seconds > 0 && seconds < 1e9) periods[chunk.start[i]] = seconds;
    }
  TACHO_TRY(status);
  return periods;
}

}  // namespace

std::optional<double> SumRow::total_ns() const {
  if (timed == 0 || count <= untold) return std::nullopt;
  return time_ns * static_cast<double>(count) / static_cast<double>(count - untold);
}
std::optional<double> SumRow::average_ns() const {
  if (timed == 0 || count <= untold) return std::nullopt;
  return time_ns / static_cast<double>(count - untold);
}
std::optional<double> SumRow::chance_ns() const {
  if (timed == 0 || count <= untold) return std::nullopt;
  constexpr double kTwoSided95 = 1.959964;
  return kTwoSided95 * std::sqrt(variance) * static_cast<double>(count) / static_cast<double>(count - untold);
}
std::optional<double> SumRow::interval_ns() const {
  const auto chance = chance_ns();
  if (!chance) return std::nullopt;
  return std::sqrt(*chance * *chance + 4 * common_ns * common_ns);
}

bool holds_sums(const trace::Trace& trace) {
  return trace.property(Table::kEnd, 0, "watch").has_value();
}

std::string sums_sentence(std::string_view name) {
  return fmt::format(
      "{}: holds sums of tacho watch and no single operations: tacho stats, diff, view and query read it; tacho watch "
      "--keep and tacho trace record operations",
      name);
}

Result<TimeRange> span_of_sums(const trace::Trace& trace) {
  TACHO_ASSIGN(const auto periods, periods_of(trace, tracks_of(trace)));
  if (periods.empty()) return fail("{}: holds no sums of tacho watch", trace.path());
  const auto& [begin, seconds] = *periods.rbegin();
  return TimeRange{periods.begin()->first, begin + std::llround(seconds * kNs)};
}

Result<std::vector<SumTotals>> sum_up(const trace::Trace& trace, std::span<const TimeRange> ranges) {
  const SumTracks tracks = tracks_of(trace);
  TACHO_ASSIGN(const auto periods, periods_of(trace, tracks));
  std::vector<OpenTotals> open;
  for (const TimeRange& range : ranges) {
    OpenTotals& one = open.emplace_back();
    one.range = range;
    one.totals.rows = tracks.empty.rows;
    one.totals.gauges = tracks.empty.gauges;
    one.gauge_seconds.resize(one.totals.gauges.size());
    for (const auto& [begin, seconds] : periods) {
      if (!one.holds(begin, seconds)) continue;
      if (one.totals.periods++ == 0) one.totals.covered.from = begin;
      one.totals.covered.to = begin + std::llround(seconds * kNs);
      one.totals.seconds += seconds;
    }
  }
  Status status;
  for (const auto& chunk : trace::chunks<R::track, R::start, R::value>(trace, status))
    for (size_t i = 0; i < chunk.size(); ++i) {
      const auto number = static_cast<size_t>(chunk.track[i]);
      if (number >= tracks.tracks.size()) continue;
      const SumTrack& track = tracks.tracks[number];
      if (track.what == SumTrack::What::kOther || track.what == SumTrack::What::kPeriod) continue;
      const auto period = periods.find(chunk.start[i]);
      const double value = chunk.value[i].value();
      if (period == periods.end() || !std::isfinite(value)) continue;
      for (OpenTotals& one : open)
        if (one.holds(period->first, period->second)) one.add(track, value, period->second);
    }
  TACHO_TRY(status);
  std::vector<SumTotals> all;
  for (OpenTotals& one : open) all.push_back(one.take());
  return all;
}

}  // namespace tacho::analysis
