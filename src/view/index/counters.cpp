// Readings of counters, and tiles of them (index.h).
#include "walk/counters.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "trace/read/rows.h"
#include "view/index/index.h"

namespace tacho::view {

using event::kUnknown;
using event::Table;
namespace column = event::column;

namespace {

// From one reading to the next the growth of a sum in a second, times `factor`. Where a sum falls it began anew, and
// nothing is known of that stretch.
void make_rates(std::vector<std::pair<int64_t, double>>& values, double factor) {
  std::vector<std::pair<int64_t, double>> rates;
  for (size_t i = 1; i < values.size(); ++i) {
    const auto& [begin, before] = values[i - 1];
    const auto& [end, now] = values[i];
    if (end > begin && now >= before)
      rates.emplace_back(begin, (now - before) / (static_cast<double>(end - begin) * 1e-9) * factor);
  }
  values = std::move(rates);
}

}  // namespace

Status TileIndex::read_counters() {
  std::vector<std::vector<std::pair<int64_t, double>>> values(lines_.size());
  using R = column::Reading;
  Status status;
  for (const auto& readings : trace::chunks<R::track, R::start, R::value>(*trace_, status)) {
    if (stop_) break;
    for (size_t i = 0; i < readings.size(); ++i) {
      const int64_t line = tree_.line_of(Table::kReading, readings.track[i]);
      if (line >= 0 && readings.start[i] != kUnknown)
        values[static_cast<size_t>(line)].emplace_back(readings.start[i] - t0_, readings.value[i].value());
    }
  }
  TACHO_TRY(status);
  for (auto& each : values)
    std::stable_sort(each.begin(), each.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < values.size(); ++i)
    if (const Line& line = tree_.lines()[i]; line.rate) make_rates(values[i], line.unit == "%" ? 100 : 1);
  if (trace_->rows(Table::kCounterValue) <= Tree::kMostCounterValues) TACHO_TRY(read_dispatch_counters(values));
  const std::unique_lock held(lock_);
  for (size_t i = 0; i < values.size(); ++i) lines_[i].values = std::move(values[i]);
  return {};
}

Status TileIndex::read_dispatch_counters(std::vector<std::vector<std::pair<int64_t, double>>>& values) {
  struct Value {
    int64_t start, ordinal;
    double value;
  };
  std::vector<std::vector<Value>> read(lines_.size());
  TACHO_ASSIGN(const auto passes, walk::FirstPasses::make(*trace_));
  using C = column::CounterValue;
  Status status;
  for (const auto& rows : trace::chunks<C::track, C::start, C::ordinal, C::dim, C::pass, C::value>(*trace_, status)) {
    if (stop_) break;
    for (size_t i = 0; i < rows.size(); ++i)
      if (const int64_t line = tree_.line_of_counter(rows.track[i], rows.dim[i]);
          line >= 0 && rows.start[i] != kUnknown &&
          passes.count(rows.track[i], rows.start[i], rows.ordinal[i], rows.dim[i], rows.pass[i]))
        read[static_cast<size_t>(line)].push_back({rows.start[i] - t0_, rows.ordinal[i], rows.value[i].value()});
  }
  TACHO_TRY(status);
  for (size_t line = 0; line < read.size(); ++line) {
    std::stable_sort(read[line].begin(), read[line].end(), [](const Value& a, const Value& b) {
      return std::tie(a.start, a.ordinal) < std::tie(b.start, b.ordinal);
    });
    const Value* before = nullptr;
    for (const Value& each : read[line]) {
      if (before != nullptr && before->start == each.start && before->ordinal == each.ordinal)
        values[line].back().second += each.value;
      else
        values[line].emplace_back(each.start, each.value);
      before = &each;
    }
  }
  return {};
}

Tile TileIndex::counter_tile(const LineState& line, unsigned level, int64_t index) const {
  Tile tile;
  tile.kind = Tile::Kind::kCounter;
  tile.before = std::nan("");
  tile.lanes = 1;
  const int64_t from = (index << kTileBits) << level, to = from + (kTileBins << level);
  auto at = std::lower_bound(line.values.begin(), line.values.end(), from,
                             [](const auto& value, int64_t time) { return value.first < time; });
  if (at != line.values.begin()) tile.before = std::prev(at)->second;
  for (; at != line.values.end() && at->first < to; ++at) {
    const auto bin = static_cast<uint16_t>((at->first - from) >> level);
    if (tile.readings.empty() || tile.readings.back().bin != bin)
      tile.readings.push_back({bin, at->second, at->second, at->second});
    Tile::Reading& reading = tile.readings.back();
    reading.min = std::min(reading.min, at->second);
    reading.max = std::max(reading.max, at->second);
    reading.last = at->second;
  }
  return tile;
}

std::vector<std::pair<int64_t, double>> TileIndex::values(size_t line) const {
  const std::shared_lock held(lock_);
  return line < lines_.size() ? lines_[line].values : std::vector<std::pair<int64_t, double>>();
}

std::pair<double, double> TileIndex::range(size_t line) const {
  const std::shared_lock held(lock_);
  if (line >= lines_.size() || lines_[line].values.empty()) return {0, 0};
  std::pair<double, double> range{lines_[line].values.front().second, lines_[line].values.front().second};
  for (const auto& [time, value] : lines_[line].values) {
    range.first = std::min(range.first, value);
    range.second = std::max(range.second, value);
  }
  return range;
}

}  // namespace tacho::view
