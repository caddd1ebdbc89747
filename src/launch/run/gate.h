// Switches recording on and off by time, signal, launches and markers.
#pragma once

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "launch/recording.h"
#include "tape/pool.h"

namespace tacho::launch {

class Gate {
 public:
  Gate(tape::PoolHeader& header, const Recording& recording) : header_(header), plan_(recording) {
    begin_ = raw_now();
    recording_ = header.enabled.load(std::memory_order_relaxed) != 0;
    samples_ = recording.sample_delay_s <= 0;
    if (!samples_) store();
    if (!recording.periods.empty()) {
      periods_ = recording.periods;
    } else if (recording.delay_s > 0 || recording.duration_s > 0) {
      periods_ = {{recording.delay_s, recording.duration_s, 1}};
    }
    if (!periods_.empty()) {
      set(false);
      phase_begin_ = begin_;
      tick();
    }
  }
  void set(bool on) {
    recording_ = on;
    store();
  }
  void signal(int number) {
    if (plan_.start_trigger.kind == Trigger::Kind::kSignal && plan_.start_trigger.signal == number) set(true);
    if (plan_.stop_trigger.kind == Trigger::Kind::kSignal && plan_.stop_trigger.signal == number) set(false);
  }
  bool wants(int number) const {
    return (plan_.start_trigger.kind == Trigger::Kind::kSignal && plan_.start_trigger.signal == number) ||
           (plan_.stop_trigger.kind == Trigger::Kind::kSignal && plan_.stop_trigger.signal == number);
  }
  // Advances the collection periods and the window of call stacks; returns ms to the next change, -1 when there is
  // none.
  int tick() {
    const int periods = tick_periods(), samples = tick_samples();
    return periods < 0 ? samples : samples < 0 ? periods : std::min(periods, samples);
  }

 private:
  void store() {
    uint64_t bits = recording_ ? plan_.sources | tape::source_bit::kRecording : 0;
    if (!samples_) bits &= ~tape::source_bit::kSample;
    header_.enabled.store(bits, std::memory_order_relaxed);
  }
  int tick_samples() {
    const double seconds = static_cast<double>(raw_now() - begin_) * 1e-9;
    const double until = plan_.sample_delay_s + plan_.sample_duration_s;
    const bool ended = plan_.sample_duration_s > 0 && seconds >= until;
    const bool on = seconds >= plan_.sample_delay_s && !ended;
    if (on != samples_) {
      samples_ = on;
      // Keeps the bits that triggers or the program itself switched meanwhile.
      const uint64_t now = header_.enabled.load(std::memory_order_relaxed), bit = tape::source_bit::kSample;
      if (now != 0) header_.enabled.store(on ? now | (plan_.sources & bit) : now & ~bit, std::memory_order_relaxed);
    }
    if (ended || (on && plan_.sample_duration_s <= 0)) return -1;
    return static_cast<int>(std::min(((on ? until : plan_.sample_delay_s) - seconds) * 1000, 1e6)) + 1;
  }
  int tick_periods() {
    const int64_t now = raw_now();
    while (index_ < periods_.size()) {
      const Recording::Period& period = periods_[index_];
      const double length = on_ ? period.duration_s : period.delay_s;
      if (on_ && period.duration_s <= 0) return -1;  // to the end
      const int64_t until = phase_begin_ + static_cast<int64_t>(length * 1e9);
      if (now < until) return static_cast<int>((until - now) / 1'000'000 + 1);
      phase_begin_ = until;
      on_ = !on_;
      set(on_);
      if (!on_ && ++round_ >= period.repeat && period.repeat != 0) {
        ++index_;
        round_ = 0;
      }
    }
    return -1;
  }

  tape::PoolHeader& header_;
  const Recording& plan_;
  bool recording_ = true, samples_ = true;
  std::vector<Recording::Period> periods_;
  int64_t begin_ = 0, phase_begin_ = 0;
  size_t index_ = 0;
  uint64_t round_ = 0;
  bool on_ = false;
};

}  // namespace tacho::launch
