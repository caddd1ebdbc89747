// Times as people write them (sums.h).
#include <time.h>

#include <charconv>
#include <cmath>

#include "analysis/sums/sums.h"
#include "base/format.h"
#include "report/text.h"
#include "walk/time/clock.h"

namespace tacho::analysis {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// A moment of a day, or since the beginning.
struct WrittenTime {
  enum class Kind : uint8_t { kOpen, kSince, kOfDay, kDated } kind = Kind::kOpen;
  int64_t since = 0;  // ns
  tm parts{};
};

std::optional<int> digits(std::string_view& text, size_t most) {
  int value = 0;
  size_t size = 0;
  while (size < text.size() && size < most && text[size] >= '0' && text[size] <= '9')
    value = value * 10 + (text[size++] - '0');
  if (size == 0) return std::nullopt;
  text.remove_prefix(size);
  return value;
}
bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<WrittenTime> since_begin(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value >= 0) || value > 1e9) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  const double seconds = unit == "s" ? 1 : unit == "min" ? 60 : unit == "h" ? 3600 : 0;
  if (seconds == 0) return std::nullopt;
  WrittenTime written;
  written.kind = WrittenTime::Kind::kSince;
  written.since = std::llround(value * seconds * 1e9);
  return written;
}

std::optional<WrittenTime> written_time(std::string_view text) {
  if (text.empty()) return WrittenTime();
  if (const auto since = since_begin(text)) return since;
  WrittenTime written;
  written.kind = WrittenTime::Kind::kOfDay;
  if (text.size() > 10 && (text[10] == 'T' || text[10] == ' ')) {
    const auto year = digits(text, 4);
    if (!year || !take(text, '-')) return std::nullopt;
    const auto month = digits(text, 2);
    if (!month || !take(text, '-')) return std::nullopt;
    const auto day = digits(text, 2);
    if (!day || *month < 1 || *month > 12 || *day < 1 || *day > 31) return std::nullopt;
    text.remove_prefix(1);
    written.kind = WrittenTime::Kind::kDated;
    written.parts.tm_year = *year - 1900;
    written.parts.tm_mon = *month - 1;
    written.parts.tm_mday = *day;
  }
  const auto hour = digits(text, 2);
  if (!hour || !take(text, ':')) return std::nullopt;
  const auto minute = digits(text, 2);
  if (!minute || *hour > 23 || *minute > 59) return std::nullopt;
  int second = 0;
  if (take(text, ':')) {
    const auto given = digits(text, 2);
    if (!given || *given > 59) return std::nullopt;
    second = *given;
  }
  if (!text.empty()) return std::nullopt;
  written.parts.tm_hour = *hour;
  written.parts.tm_min = *minute;
  written.parts.tm_sec = second;
  return written;
}

// Trace time and the time of day.
class Calendar {
 public:
  Calendar(walk::OutputClock clock, TimeRange span) : clock_(std::move(clock)), span_(span) {}
  bool known() const { return clock_.known(); }
  int64_t unix_of(int64_t time) const { return clock_(time); }
  // Clocks of one machine differ by an offset that changes slowly.
  int64_t time_of(int64_t unix_ns) const {
    int64_t time = unix_ns - (clock_(span_.from) - span_.from);
    for (int step = 0; step < 3; ++step) time += unix_ns - clock_(time);
    return time;
  }
  // The moment on the day that lies `days` before the span's last one.
  int64_t on_day(const WrittenTime& written, int days) const {
    tm parts = written.parts;
    if (written.kind == WrittenTime::Kind::kOfDay) {
      const time_t last = unix_of(span_.to) / kSecond;
      tm day{};
      localtime_r(&last, &day);
      parts.tm_year = day.tm_year;
      parts.tm_mon = day.tm_mon;
      parts.tm_mday = day.tm_mday - days;
    }
    parts.tm_isdst = -1;
    return time_of(mktime(&parts) * kSecond);
  }

 private:
  walk::OutputClock clock_;
  TimeRange span_;
};

// The range, if it meets the span: of times of a day the last one that does.
std::optional<TimeRange> range_of(const WrittenTime& from, const WrittenTime& to, const Calendar& calendar,
                                  const TimeRange& span) {
  using Kind = WrittenTime::Kind;
  constexpr int kMostDays = 3660;
  const auto days = static_cast<int>(std::min<int64_t>((span.to - span.from) / (86400 * kSecond) + 2, kMostDays));
  const bool of_day = from.kind == Kind::kOfDay || (from.kind == Kind::kOpen && to.kind == Kind::kOfDay);
  const auto on = [&](int day) {
    const auto moment = [&](const WrittenTime& written, int64_t open) {
      if (written.kind == Kind::kOpen) return open;
      return written.kind == Kind::kSince ? span.from + written.since : calendar.on_day(written, day);
    };
    TimeRange range{moment(from, span.from), moment(to, span.to)};
    if (to.kind == Kind::kOfDay && from.kind == Kind::kDated) {  // the first one behind it
      WrittenTime same = to;
      same.kind = Kind::kDated;
      same.parts.tm_year = from.parts.tm_year;
      same.parts.tm_mon = from.parts.tm_mon;
      same.parts.tm_mday = from.parts.tm_mday;
      range.to = calendar.on_day(same, 0);
    }
    if (to.kind == Kind::kOfDay && range.to <= range.from && from.kind != Kind::kOpen)
      range.to += 86400 * kSecond;  // over midnight
    return range;
  };
  // Best one that ends within the span.
  for (const bool within : {true, false})
    for (int day = 0; day < (of_day ? days : 1); ++day) {
      const TimeRange range = on(day);
      if (range.from < range.to && range.from < span.to && range.to > span.from && (!within || range.to <= span.to))
        return range;
    }
  return std::nullopt;
}

}  // namespace

Result<TimeRange> parse_time_range(const trace::Trace& trace, std::string_view text, const TimeRange& span,
                                   std::string_view option) {
  TACHO_ASSIGN(walk::OutputClock clock, walk::OutputClock::make(trace, walk::OutputClock::Clock::kRealtime));
  const Calendar calendar(std::move(clock), span);
  for (size_t at = text.find('-'); at != std::string_view::npos; at = text.find('-', at + 1)) {
    const auto from = written_time(text.substr(0, at)), to = written_time(text.substr(at + 1));
    if (!from || !to || (from->kind == WrittenTime::Kind::kOpen && to->kind == WrittenTime::Kind::kOpen)) continue;
    const auto of_clock = [](const WrittenTime& time) { return time.kind >= WrittenTime::Kind::kOfDay; };
    if ((of_clock(*from) || of_clock(*to)) && !calendar.known())
      return fail("{} {}: {} does not know the time of day; count from its beginning, as in 0s-90s", option, text,
                  trace.path());
    if (const auto range = range_of(*from, *to, calendar, span)) return *range;
    using Kind = WrittenTime::Kind;
    if (from->kind == Kind::kSince && to->kind == Kind::kSince && to->since <= from->since)
      return fail("{} {}: the range ends no later than it begins", option, text);
    return fail("{} {}: {} goes from {} to {}", option, text, trace.path(), clock_text(trace, span.from, span, true),
                clock_text(trace, span.to, span, true));
  }
  return fail("{} {}: give a range, as in 14:00-14:10, 2026-11-27T14:00-14:10, 14:10- or 0s-90s", option, text);
}

std::string clock_text(const trace::Trace& trace, int64_t time, const TimeRange& span, bool dated) {
  const auto clock = walk::OutputClock::make(trace, walk::OutputClock::Clock::kRealtime);
  if (!clock || !clock->known()) return report::format_duration(static_cast<double>(time - span.from));
  // Periods end within a second behind the full minute.
  const time_t seconds = (*clock)(time) / kSecond;
  tm parts{};
  localtime_r(&seconds, &parts);
  char text[32];
  strftime(text, sizeof text, dated ? "%Y-%m-%d %H:%M:%S" : "%H:%M:%S", &parts);
  return text;
}

}  // namespace tacho::analysis
