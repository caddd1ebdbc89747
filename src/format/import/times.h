// Times of imported rows: one rule for what is a start, a duration, or no measurement at all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "base/files/sorted_file.h"
#include "base/result.h"
#include "event/times.h"
#include "trace/write/writer.h"

namespace tacho::format::imported {

/// A start and a duration (kUnknown = not known), and what to say about them.
struct SpanRead {
  enum class Verdict : uint8_t {
    kGood,
    kDisordered,  // ends before it begins: keep the row, count it as LossReason::kClockOrder
    kOpen,        // has not ended: keep the row
    kBad,         // no start: drop the row, count it as LossReason::kBadInput
  };
  int64_t start = 0, duration = event::kUnknown;
  Verdict verdict = Verdict::kGood;
};

/// What a start and an end mean (ns; kUnknown = the file has none).
inline SpanRead span_of(int64_t start, int64_t end) {
  if (start == event::kUnknown || !event::is_time(start)) return {0, event::kUnknown, SpanRead::Verdict::kBad};
  if (end == event::kUnknown) return {start, event::kUnknown, SpanRead::Verdict::kOpen};
  if (!event::is_time(end)) return {0, event::kUnknown, SpanRead::Verdict::kBad};
  const int64_t duration = event::duration_between(start, end);
  return {start, duration, duration == event::kUnknown ? SpanRead::Verdict::kDisordered : SpanRead::Verdict::kGood};
}

/// Vendors' libraries give start = end = 0 to device work that they did not measure, and some only a start of 0. Such a
/// row is told from one that really began at 0 by the other times: if 0 is farther from them than they are from each
/// other (and than 1 ms), it has no times.
///
/// saw() gets the times of all other rows, take() the rows that looks_so(), finish() adds them: as they are, or at
/// the end of the call that caused them with an unknown duration. Rows without such a call are counted as lost by the
/// vendor (LossReason::kVendor). A note says how many there were. Memory is bounded.
class UnmeasuredRows {
 public:
  void saw(int64_t start, int64_t duration) {
    first_ = std::min(first_, start);
    last_ = std::max(last_, start + std::max<int64_t>(duration, 0));
  }
  /// Rows that start at 0 and end there, or so late that their end may be measured and their start not.
  static bool looks_so(int64_t start, int64_t duration) {
    return start == 0 && (duration == 0 || duration > static_cast<int64_t>(kNear));
  }
  /// Whether 0 is that far from all other times, which lie between `first` and `last`.
  static bool is_far(int64_t first, int64_t last) {
    if (first > last || (first <= 0 && last >= 0)) return false;
    const auto nearest = static_cast<uint64_t>(first > 0 ? first : -last);
    return nearest > std::max(kNear, static_cast<uint64_t>(last) - static_cast<uint64_t>(first));
  }
  void take(const event::row::Dispatch& row) { held_.dispatches.add({row}); }
  void take(const event::row::Copy& row) { held_.copies.add({row}); }
  void take(const event::row::Fill& row) { held_.fills.add({row}); }

  /// call_end(track, correlation): when the call that caused the row ended, kUnknown = not known.
  template <typename CallEnd>
  Status finish(trace::TraceWriter& writer, CallEnd call_end) {
    const bool far = is_far(first_, last_);
    TACHO_ASSIGN(const int64_t kernels, drain(writer, held_.dispatches, far, call_end));
    TACHO_ASSIGN(const int64_t copies, drain(writer, held_.copies, far, call_end));
    TACHO_ASSIGN(const int64_t fills, drain(writer, held_.fills, far, call_end));
    if (!far || kernels + copies + fills == 0) return {};
    std::string what;
    const auto add = [&](int64_t count, std::string_view one, std::string_view many) {
      if (count == 0) return;
      if (!what.empty()) what += ", ";
      what += std::to_string(count);
      what += ' ';
      what += count == 1 ? one : many;
    };
    add(kernels, "kernel", "kernels");
    add(copies, "copy", "copies");
    add(fills, "fill", "fills");
    what += " without times: the profiler did not measure them";
    const int64_t kept = kernels + copies + fills - lost_;
    if (kept > 0) what += ", so they count as calls and add no time";
    if (lost_ > 0)
      what += kept == 0 ? ", and no call tells when they ran, so they are left out"
                        : "; " + std::to_string(lost_) + " of them left out, as no call tells when they ran";
    writer.note(0, event::NoteSeverity::kWarning, what);
    return {};
  }

 private:
  template <typename Row>
  struct Held {
    Row row;
    bool operator<(const Held& other) const { return row.correlation < other.row.correlation; }
  };

  // Less than this is no distance between two clocks.
  static constexpr uint64_t kNear = 1000000;  // ns

  // Adds the rows; returns how many there were.
  template <typename Row, typename CallEnd>
  Result<int64_t> drain(trace::TraceWriter& writer, SortedFile<Held<Row>>& held, bool far, CallEnd& call_end) {
    TACHO_TRY(held.finish());
    int64_t count = 0, lost = 0;
    Held<Row> each;
    while (held.next(each)) {
      // One that began at 0 and ended before the others began has its times.
      if (far && (each.row.duration == 0 || each.row.duration >= first_)) {
        ++count;
        each.row.start = call_end(each.row.track, each.row.correlation);
        each.row.duration = event::kUnknown;
        if (each.row.start == event::kUnknown) {
          ++lost;
          continue;
        }
      }
      writer.add(each.row);
    }
    if (lost > 0) writer.lose(0, Row::kTable, event::LossReason::kVendor, lost);
    lost_ += lost;
    return count;
  }

  int64_t lost_ = 0;
  int64_t first_ = std::numeric_limits<int64_t>::max(), last_ = std::numeric_limits<int64_t>::min();
  struct {
    SortedFile<Held<event::row::Dispatch>> dispatches;
    SortedFile<Held<event::row::Copy>> copies;
    SortedFile<Held<event::row::Fill>> fills;
  } held_;
};

}  // namespace tacho::format::imported
