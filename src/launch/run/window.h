// When recording was on, for events that tacho itself sees later than they happen (perf samples).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "decode/clock_map.h"
#include "tape/gate.h"
#include "tape/layout.h"

namespace tacho::launch {

class Window {
 public:
  explicit Window(const tape::PoolHeader& header)
      : header_(header), stretches_{{INT64_MIN, tape::open_sources(header.closed, header.sources)}} {}

  /// Takes the changes since the last call. Of more than kGateChanges only the last are known; what lies before them
  /// counts as paused.
  void follow(const decode::ClockMap& clocks) {
    const uint64_t changed = header_.changed.load(std::memory_order_acquire);
    if (changed == taken_) return;
    if (changed - taken_ > tape::kGateChanges) {
      taken_ = changed - tape::kGateChanges;
      stretches_.push_back({stretches_.back().from + 1, 0});
    }
    for (; taken_ < changed; ++taken_) {
      const tape::GateChange& change = header_.changes[taken_ % tape::kGateChanges];
      const uint64_t ticks = change.ticks.load(std::memory_order_acquire);
      const int64_t time = host_clock_is_tsc() ? clocks.from_tsc(ticks) : static_cast<int64_t>(ticks);
      stretches_.push_back({std::max(time, stretches_.back().from), change.sources.load(std::memory_order_relaxed)});
    }
  }
  /// Whether any of `sources` was on at `time` (CLOCK_MONOTONIC_RAW ns).
  bool open(int64_t time, uint64_t sources) const {
    const auto after = std::upper_bound(stretches_.begin(), stretches_.end(), time,
                                        [](int64_t at, const Stretch& stretch) { return at < stretch.from; });
    return after != stretches_.begin() && (std::prev(after)->sources & sources) != 0;
  }
  /// Forgets what nothing after `time` needs.
  void forget(int64_t time) {
    const auto after = std::upper_bound(stretches_.begin(), stretches_.end(), time,
                                        [](int64_t at, const Stretch& stretch) { return at < stretch.from; });
    if (after - stretches_.begin() > 1) stretches_.erase(stretches_.begin(), std::prev(after));
  }

 private:
  struct Stretch {
    int64_t from;
    uint64_t sources;
  };
  const tape::PoolHeader& header_;
  std::vector<Stretch> stretches_;
  uint64_t taken_ = 0;
};

}  // namespace tacho::launch
