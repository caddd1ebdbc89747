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
  enum class State {
    kClosed,
    kOpen,
    kUnknown,  // recording changed more often than the pool keeps
  };

  explicit Window(const tape::PoolHeader& header)
      : header_(header), stretches_{{INT64_MIN, tape::open_sources(header.closed, header.sources)}} {}

  /// Takes the changes since the last call.
  void follow(const decode::ClockMap& clocks) {
    const uint64_t changed = header_.changed.load(std::memory_order_acquire);
    if (changed - taken_ > tape::kGateChanges) skip_to(changed - tape::kGateChanges);
    while (taken_ < changed) {
      const tape::GateChange& change = header_.changes[taken_ % tape::kGateChanges];
      const uint64_t number = change.number.load(std::memory_order_acquire);
      const uint64_t ticks = change.ticks.load(std::memory_order_acquire);
      const uint64_t sources = change.sources.load(std::memory_order_acquire);
      if (number == taken_ + 1 && change.number.load(std::memory_order_acquire) == number) {
        const int64_t time = host_clock_is_tsc() ? clocks.from_tsc(ticks) : static_cast<int64_t>(ticks);
        stretches_.push_back({std::max(time, stretches_.back().from), sources});
        ++taken_;
        continue;
      }
      // Still being written, or by a process that was killed there: the next call goes on behind it.
      if (number <= taken_ && waited_for_ != taken_) {
        waited_for_ = taken_;
        return;
      }
      skip_to(taken_ + 1);
    }
    // Two threads that changed gates at once may stand in the other order: the gates have the last word.
    const uint64_t now = tape::open_sources(header_.closed.load(std::memory_order_acquire), header_.sources);
    if (now != stretches_.back().sources && header_.changed.load(std::memory_order_acquire) == changed)
      stretches_.push_back({std::max(raw_now(), stretches_.back().from), now});
  }
  /// Whether any of `sources` was on at `time` (CLOCK_MONOTONIC_RAW ns).
  State at(int64_t time, uint64_t sources) const {
    const auto after = behind(time);
    if (after == stretches_.begin()) return State::kClosed;
    const uint64_t then = std::prev(after)->sources;
    return then == kUnknownSources ? State::kUnknown : (then & sources) != 0 ? State::kOpen : State::kClosed;
  }
  /// Forgets what nothing after `time` needs.
  void forget(int64_t time) {
    const auto after = behind(time);
    if (after - stretches_.begin() > 1) stretches_.erase(stretches_.begin(), std::prev(after));
  }

 private:
  struct Stretch {
    int64_t from;
    uint64_t sources;
  };
  static constexpr uint64_t kUnknownSources = UINT64_MAX;
  static constexpr uint64_t kNone = UINT64_MAX;

  std::vector<Stretch>::const_iterator behind(int64_t time) const {
    return std::upper_bound(stretches_.begin(), stretches_.end(), time,
                            [](int64_t at, const Stretch& stretch) { return at < stretch.from; });
  }
  // Changes up to `taken` are lost. What was then is unknown from the last one that is known.
  void skip_to(uint64_t taken) {
    taken_ = taken;
    if (stretches_.back().sources != kUnknownSources) stretches_.push_back({stretches_.back().from, kUnknownSources});
  }

  const tape::PoolHeader& header_;
  std::vector<Stretch> stretches_;
  uint64_t taken_ = 0, waited_for_ = kNone;
};

}  // namespace tacho::launch
