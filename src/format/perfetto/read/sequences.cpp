// Keeps the state of sequences (sequences.h).
#include "format/perfetto/read/sequences.h"

namespace tacho::format::perfetto {

using event::kUnknown;

void Sequences::defaults(SequenceState& state, std::string_view message) {
  state.default_clock = 0;
  state.events = {};
  for (WireFields field(message); field.next();) {
    if (field.number() == defaults_timestamp_clock) state.default_clock = static_cast<uint32_t>(field.value());
    if (field.number() == defaults_track_event)
      for (WireFields inner(field.bytes()); inner.next();) {
        constexpr size_t kMostCounters = 64;
        if (inner.number() == event_defaults_track) state.events.track = inner.value();
        if (inner.number() == event_defaults_counters)
          inner.each_number([&](uint64_t uuid) {
            if (state.events.counters.size() < kMostCounters) state.events.counters.push_back(uuid);
          });
        if (inner.number() == event_defaults_double_counters)
          inner.each_number([&](uint64_t uuid) {
            if (state.events.double_counters.size() < kMostCounters) state.events.double_counters.push_back(uuid);
          });
      }
    if (field.number() != defaults_perf_sample) continue;
    for (WireFields inner(field.bytes()); inner.next();) {
      if (inner.number() != sample_defaults_timebase) continue;
      for (WireFields base(inner.bytes()); base.next();)
        if (base.number() == timebase_frequency && base.value() > 0 && base.value() <= 1'000'000'000)
          state.sample_period = 1'000'000'000 / base.signed_value();
    }
  }
}

SequenceState* Sequences::take(const PacketHead& head) {
  if (last_ == nullptr || head.sequence != last_sequence_) {
    auto found = states_.find(head.sequence);
    if (found == states_.end()) {
      if (states_.size() >= kMost) return ++too_many_, nullptr;
      found = states_.emplace(head.sequence, std::make_unique<SequenceState>()).first;
    }
    last_ = found->second.get();
    last_sequence_ = head.sequence;
  }
  SequenceState& state = *last_;
  if (head.dropped && state.seen && !head.first) {
    ++dropped_;
    state.valid = false;
  }
  state.seen = true;
  if (head.state_cleared) {
    state.valid = true;
    state.default_clock = 0;
    state.events = {};
    if (state.interned != nullptr) state.interned->clear();
    state.keys.clear();
  }
  if (!head.defaults.empty()) defaults(state, head.defaults);
  if (head.needs_state && !state.valid) return ++without_state_, nullptr;
  return &state;
}

// Old writers put the time into the event: microseconds, absolute or since the event before.
int64_t Sequences::old_time(std::string_view event, SequenceState& state) {
  bool told = false;
  for (WireFields field(event); field.next();) {
    if (field.number() != event_delta_us && field.number() != event_absolute_us) continue;
    told = true;
    if (field.number() == event_absolute_us)
      state.thread_us = field.signed_value();
    else if (__builtin_add_overflow(state.thread_us, field.signed_value(), &state.thread_us))
      return kUnknown;
  }
  int64_t ns = 0;
  return told && !__builtin_mul_overflow(state.thread_us, int64_t{1000}, &ns) ? ns : kUnknown;
}

int64_t Sequences::time(const PacketHead& head, SequenceState& state, uint32_t& clock) {
  if (!head.has_timestamp) {
    clock = builtin_clock::kMonotonic;
    return head.event == packet_track_event ? old_time(head.body, state) : kUnknown;
  }
  clock = head.clock != 0 ? head.clock : state.default_clock;
  return clocks_.time(head.sequence, clock, head.timestamp);
}

}  // namespace tacho::format::perfetto
