// Closing, dropping and folding periods (periods.h).
#include "watch/sums/periods.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace tacho::watch {
namespace {

using event::WatchKind;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kMinute = 60 * kSecond, kHour = 3600 * kSecond;
constexpr size_t kFolded = 24;  // periods that become one

uint64_t since(uint64_t now, uint64_t before) {
  return now > before ? now - before : 0;
}

AllLevels since(const AllLevels& now, const AllLevels& before) {
  AllLevels levels;
  for (size_t i = 0; i < levels.size(); ++i) {
    levels[i].count = since(now[i].count, before[i].count);
    levels[i].timed = since(now[i].timed, before[i].timed);
    levels[i].time = since(now[i].time, before[i].time);
    levels[i].squares = std::max(0.0, now[i].squares - before[i].squares);
  }
  return levels;
}

void add_to(PeriodSum& into, const PeriodSum& from) {
  into.count += from.count;
  into.bytes += from.bytes;
  into.timed += from.timed;
  into.untold += from.untold;
  into.time_ns += from.time_ns;
  into.error_ns = std::sqrt(into.error_ns * into.error_ns + from.error_ns * from.error_ns);
  into.common_ns += from.common_ns;
}

size_t sums_of(const std::deque<SumPeriod>& periods) {
  size_t sums = 0;
  for (const SumPeriod& period : periods) sums += period.sums.size();
  return sums;
}

// The oldest of the shortest periods that are many: hours become days, these become 24 days, and so on. Of the hours
// the last 24 stay, since minutes refine them.
std::deque<SumPeriod>::iterator foldable(std::deque<SumPeriod>& periods) {
  int64_t longest = 2 * kHour;
  for (size_t kept = kFolded; longest < INT64_MAX / static_cast<int64_t>(kFolded); longest *= kFolded, kept = 0) {
    const auto first = std::find_if(periods.begin(), periods.end(),
                                    [&](const SumPeriod& period) { return period.length() < longest; });
    const auto end = std::find_if(first, periods.end(), [&](const SumPeriod& period) {
      return period.length() < longest / static_cast<int64_t>(kFolded);
    });
    if (static_cast<size_t>(end - first) >= kFolded + kept) return first;
  }
  return periods.begin();
}

}  // namespace

SumPeriods::SumPeriods(int64_t began, int64_t unix_offset, const PeriodLimits& limits)
    : limits_(limits), unix_offset_(unix_offset) {
  second_.begin = minute_.begin = hour_.begin = began;
}

uint32_t SumPeriods::series_of(WatchKind kind, const std::string& name, const std::string& unit) {
  const auto [at, fresh] = numbers_.try_emplace({kind, name}, static_cast<uint32_t>(series_.size()));
  if (fresh) {
    series_.push_back({kind, name, unit});
    now_.emplace_back();
    each_.push_back(0);
  }
  return at->second;
}

void SumPeriods::add(int64_t now, const WatchSnapshot& snapshot, const std::vector<vendor::GpuReading>& gpus) {
  if (now <= second_.begin) return;
  for (const RowSums& row : snapshot.rows) {
    const uint32_t series = series_of(row.kind, row.title(), "");
    now_[series] = {row.count, row.bytes, row.levels};
    each_[series] = row.each_ns;
  }
  for (const vendor::GpuReading& reading : gpus) {
    if (reading.text.ends_with("since the driver was loaded")) continue;  // a mean of these means nothing
    const uint32_t series = series_of(WatchKind::kNone, reading.name, reading.unit);
    for (OpenPeriod* open : {&second_, &minute_, &hour_}) {
      auto& [sum, number] = open->gauges[series];
      sum += reading.value;
      ++number;
    }
  }
  seconds_.push_back(close(second_, now, limits_.second_rows));
  const auto passed = [&](int64_t begin, int64_t unit) {
    return (now + unix_offset_) / unit != (begin + unix_offset_) / unit;
  };
  if (passed(minute_.begin, kMinute)) minutes_.push_back(close(minute_, now, limits_.minute_rows));
  if (passed(hour_.begin, kHour)) {
    hours_.push_back(close(hour_, now, limits_.hour_rows));
    hour_sums_ += hours_.back().sums.size();
    fold_hours();
  }
  rotate(now);
}

SumPeriod SumPeriods::close(OpenPeriod& open, int64_t now, size_t most_rows) {
  SumPeriod period;
  period.begin = open.begin;
  period.end = now;
  open.base.resize(now_.size());
  for (uint32_t series = 0; series < now_.size(); ++series) {
    const Base &at = now_[series], &before = open.base[series];
    PeriodSum sum;
    sum.series = series;
    sum.count = since(at.count, before.count);
    if (sum.count == 0) continue;
    sum.bytes = since(at.bytes, before.bytes);
    if (const auto time = estimate_time(since(at.levels, before.levels))) {
      sum.timed = time->timed;
      // An operation counts in the period of its begin, and its time in that of its end.
      sum.time_ns = time->total_ns;
      sum.error_ns = time->error_ns.value_or(time->total_ns);  // nothing is known: as large as the time
      sum.common_ns = each_[series] * static_cast<double>(sum.count);
    } else {
      sum.untold = sum.count;
    }
    period.sums.push_back(sum);
  }
  for (const auto& [series, gauge] : open.gauges)
    period.gauges.emplace_back(series, gauge.first / static_cast<double>(gauge.second));
  open.gauges.clear();
  open.begin = now;
  open.base = now_;
  share_row(period, most_rows);
  return period;
}

// Kernels and graphs beyond the first ones by time, then count, share a row of their kind.
void SumPeriods::share_row(SumPeriod& period, size_t most_rows) {
  const auto many = [&](const PeriodSum& sum) {
    const WatchKind kind = series_[sum.series].kind;
    return kind == WatchKind::kKernel || kind == WatchKind::kGraph;
  };
  const auto rest = std::partition(period.sums.begin(), period.sums.end(), many);
  const auto size = static_cast<size_t>(rest - period.sums.begin());
  if (size > most_rows) {
    std::sort(period.sums.begin(), rest, [](const PeriodSum& a, const PeriodSum& b) {
      return a.time_ns != b.time_ns ? a.time_ns > b.time_ns
             : a.count != b.count   ? a.count > b.count
                                    : a.series < b.series;
    });
    std::map<uint32_t, PeriodSum> shared;
    const auto first = period.sums.begin() + static_cast<ptrdiff_t>(most_rows);
    for (auto each = first; each != rest; ++each) {
      const WatchKind kind = series_[each->series].kind;
      const uint32_t series = series_of(kind, kind == WatchKind::kKernel ? kOtherKernels : "(other graphs)", "");
      PeriodSum& sum = shared[series];
      sum.series = series;
      add_to(sum, *each);
    }
    period.sums.erase(first, rest);
    for (const auto& [series, sum] : shared) {
      const auto found = std::find_if(period.sums.begin(), period.sums.end(),
                                      [of = series](const PeriodSum& one) { return one.series == of; });
      if (found != period.sums.end())
        add_to(*found, sum);
      else
        period.sums.push_back(sum);
    }
  }
  period.sums.shrink_to_fit();
}

// From here on there are minutes: the end of the last hour that is a day old.
int64_t SumPeriods::minutes_from(int64_t now) const {
  int64_t from = INT64_MIN;
  for (const SumPeriod& hour : hours_)
    if (hour.end <= now - limits_.minutes_kept * kSecond) from = hour.end;
  return from;
}

// From here on there are seconds: the end of the last minute that is an hour old.
int64_t SumPeriods::seconds_from(int64_t now) const {
  int64_t from = minutes_from(now);
  for (const SumPeriod& minute : minutes_)
    if (minute.end <= now - limits_.seconds_kept * kSecond) from = std::max(from, minute.end);
  return from;
}

void SumPeriods::rotate(int64_t now) {
  const auto drop = [](std::deque<SumPeriod>& periods, int64_t from) {
    while (!periods.empty() && periods.front().begin < from) periods.pop_front();
  };
  drop(seconds_, seconds_from(now));
  drop(minutes_, minutes_from(now));
}

void SumPeriods::fold_hours() {
  while (hour_sums_ > limits_.hour_sums && hours_.size() > 2 * kFolded) {
    const auto first = foldable(hours_);
    const auto last = first + kFolded;
    std::map<uint32_t, PeriodSum> sums;
    std::map<uint32_t, std::pair<double, double>> gauges;
    SumPeriod folded;
    folded.begin = first->begin;
    folded.end = std::prev(last)->end;
    for (auto each = first; each != last; ++each) {
      hour_sums_ -= each->sums.size();
      for (const PeriodSum& sum : each->sums) {
        sums[sum.series].series = sum.series;
        add_to(sums[sum.series], sum);
      }
      const auto length = static_cast<double>(each->length());
      for (const auto& [series, value] : each->gauges) {
        gauges[series].first += value * length;
        gauges[series].second += length;
      }
    }
    for (const auto& [series, sum] : sums) folded.sums.push_back(sum);
    for (const auto& [series, gauge] : gauges) folded.gauges.emplace_back(series, gauge.first / gauge.second);
    share_row(folded, limits_.hour_rows);
    hour_sums_ += folded.sums.size();
    *first = std::move(folded);
    hours_.erase(first + 1, last);
  }
}

std::vector<const SumPeriod*> SumPeriods::periods() const {
  std::vector<const SumPeriod*> all;
  const int64_t now = second_.begin, minutes = minutes_from(now), seconds = seconds_from(now);
  for (const SumPeriod& hour : hours_)
    if (hour.end <= minutes) all.push_back(&hour);
  for (const SumPeriod& minute : minutes_)
    if (minute.begin >= minutes && minute.end <= seconds) all.push_back(&minute);
  for (const SumPeriod& second : seconds_)
    if (second.begin >= seconds) all.push_back(&second);
  return all;
}

size_t SumPeriods::sums() const {
  return sums_of(seconds_) + sums_of(minutes_) + sums_of(hours_);
}

}  // namespace tacho::watch
