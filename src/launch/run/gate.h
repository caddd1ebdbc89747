// Opens and closes recording by time and by signals (tape/gate.h).
#pragma once

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "launch/recording.h"
#include "tape/gate.h"
#include "tape/pool.h"

namespace tacho::launch {

class Gate {
 public:
  Gate(tape::PoolHeader& header, const Recording& recording) : header_(header), plan_(recording) {
    begin_ = raw_now();
    if (!recording.periods.empty()) {
      periods_ = recording.periods;
    } else if (recording.delay_s > 0 || recording.duration_s > 0) {
      periods_ = {{recording.delay_s, recording.duration_s, 1}};
      from_first_opening_ = true;
    }
    if (periods_.empty()) return;
    tape::set_gate(header_, tape::gate::kTime, false);
    phase_begin_ = begin_;
    tick();
  }
  void signal(int number) {
    if (by_signal(plan_.start_trigger, number)) {
      header_.trigger_start.fetch_add(1, std::memory_order_relaxed);
      tape::set_gate(header_, tape::gate::kTrigger, true);
    }
    if (by_signal(plan_.stop_trigger, number)) {
      header_.trigger_stop.fetch_add(1, std::memory_order_relaxed);
      tape::set_gate(header_, tape::gate::kTrigger, false);
    }
  }
  bool wants(int number) const {
    return by_signal(plan_.start_trigger, number) || by_signal(plan_.stop_trigger, number);
  }
  // Advances the collection periods and the window of call stacks; returns ms to the next change, -1 when there is
  // none.
  int tick() {
    const int periods = tick_periods(), samples = tick_samples();
    return periods < 0 ? samples : samples < 0 ? periods : std::min(periods, samples);
  }

 private:
  static constexpr int kLookMs = 5;  // how often to look for what another gate opens

  static bool by_signal(const Trigger& trigger, int number) {
    return trigger.kind == Trigger::Kind::kSignal && trigger.signal == number;
  }
  int tick_samples() {
    const double seconds = static_cast<double>(raw_now() - begin_) * 1e-9;
    const double until = plan_.sample_delay_s + plan_.sample_duration_s;
    const bool ended = plan_.sample_duration_s > 0 && seconds >= until;
    const bool on = seconds >= plan_.sample_delay_s && !ended;
    tape::set_gate(header_, tape::gate::kSampleTime, on);
    if (ended || (on && plan_.sample_duration_s <= 0)) return -1;
    return static_cast<int>(std::min(((on ? until : plan_.sample_delay_s) - seconds) * 1000, 1e6)) + 1;
  }
  int tick_periods() {
    const int64_t now = raw_now();
    while (index_ < periods_.size()) {
      const Recording::Period& period = periods_[index_];
      const double length = on_ ? period.duration_s : period.delay_s;
      if (on_ && period.duration_s <= 0) return -1;  // to the end
      if (on_ && from_first_opening_ && !opened_) {
        if (header_.ever_open.load(std::memory_order_relaxed) == 0) return kLookMs;
        opened_ = true;
        if (!opened_at_once_) phase_begin_ = now;
      }
      const int64_t until = phase_begin_ + static_cast<int64_t>(length * 1e9);
      if (now < until) return static_cast<int>((until - now) / 1'000'000 + 1);
      phase_begin_ = until;
      on_ = !on_;
      tape::set_gate(header_, tape::gate::kTime, on_);
      if (on_) opened_at_once_ = header_.ever_open.load(std::memory_order_relaxed) != 0;
      if (!on_ && ++round_ >= period.repeat && period.repeat != 0) {
        ++index_;
        round_ = 0;
      }
    }
    return -1;
  }

  tape::PoolHeader& header_;
  const Recording& plan_;
  std::vector<Recording::Period> periods_;
  bool from_first_opening_ = false, opened_ = false, opened_at_once_ = false;
  int64_t begin_ = 0, phase_begin_ = 0;
  size_t index_ = 0;
  uint64_t round_ = 0;
  bool on_ = false;
};

}  // namespace tacho::launch
