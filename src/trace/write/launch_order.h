// Device work begins after the call that launched it began. Where rows say otherwise, the device's clock and the host's
// are apart; this counts them, whatever recorded them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/format.h"
#include "trace/write/writer.h"

namespace tacho::trace {

/// Give it every call and every piece of device work, in any order. Remembers the last `entries` (a power of two) or
/// so: what finds its call forgotten is not checked.
class LaunchOrder {
 public:
  explicit LaunchOrder(size_t entries = size_t{1} << 15) : size_(entries) {}

  /// `process`: whatever tells processes apart whose correlations may be equal.
  void call(int64_t process, int64_t correlation, int64_t start) {
    if (correlation == 0) return;
    Entry& entry = of(process, correlation);
    // A runtime's call and the driver's call in it have one number: the outer one counts.
    entry.call = entry.call == event::kUnknown ? start : std::min(entry.call, start);
    if (entry.work != event::kUnknown) compare(entry, entry.work);
    entry.work = event::kUnknown;
  }
  void work(int64_t process, int64_t correlation, int64_t start) {
    if (correlation == 0) return;
    Entry& entry = of(process, correlation);
    if (entry.call != event::kUnknown) return compare(entry, start);
    entry.work = entry.work == event::kUnknown ? start : std::min(entry.work, start);
  }

  /// Says what was out of order. `row`: of table process, 0 = of several.
  void finish(TraceWriter& writer, int64_t row) {
    if (early_ == 0) return;
    writer.lose(row, event::Table::kDispatch, event::LossReason::kClockOrder, early_);
    const auto middle = distances_.begin() + static_cast<ptrdiff_t>(distances_.size() / 2);
    std::nth_element(distances_.begin(), middle, distances_.end());
    const auto us = [](int64_t ns) { return static_cast<double>(ns) / 1000; };
    writer.note(
        row, event::NoteSeverity::kWarning,
        fmt::format("{} of {} kernels, copies and fills begin before the call that launched them began, by {:.1f} us "
                    "in the middle and {:.1f} us at most: the device's clock was not the host's there, and how "
                    "long these launches took is unknown",
                    early_, checked_, us(*middle), us(worst_)));
    early_ = 0;
  }

 private:
  struct Entry {
    int64_t process = 0, correlation = 0;
    int64_t call = event::kUnknown, work = event::kUnknown;  // starts
  };
  static constexpr int64_t kTolerance = 20'000;  // ns; clocks that were paired are no nearer
  static constexpr size_t kMostDistances = 65'536;

  Entry& of(int64_t process, int64_t correlation) {
    if (entries_.empty()) entries_.resize(size_);
    const auto key = static_cast<uint64_t>(correlation) ^ static_cast<uint64_t>(process) * 0x9e3779b97f4a7c15ULL ^
                     static_cast<uint64_t>(correlation) >> 33;
    Entry& entry = entries_[key & (size_ - 1)];
    if (entry.process != process || entry.correlation != correlation) entry = {process, correlation};
    return entry;
  }
  void compare(const Entry& entry, int64_t start) {
    ++checked_;
    const int64_t distance = entry.call - start;
    if (distance <= kTolerance) return;
    ++early_;
    worst_ = std::max(worst_, distance);
    if (distances_.size() < kMostDistances) distances_.push_back(distance);
  }

  size_t size_;
  std::vector<Entry> entries_;
  std::vector<int64_t> distances_;
  int64_t checked_ = 0, early_ = 0, worst_ = 0;
};

}  // namespace tacho::trace
