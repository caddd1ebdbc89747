// The state of a trace's sequences: whose packets they are, what holds until it is said anew, when packets happened.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "format/perfetto/packet_head.h"
#include "format/perfetto/read/clocks.h"
#include "format/perfetto/read/interned.h"
#include "format/perfetto/read/track_events.h"

namespace tacho::format::perfetto {

struct SequenceState {
  bool seen = false;
  bool valid = false;  // it began with a cleared state, and no packet was lost since
  uint32_t default_clock = 0;
  EventDefaults events;
  uint64_t thread_uuid = 0;
  int64_t thread_us = 0;  // of times that count from the event before
  int64_t sample_period = event::kUnknown;
  std::unique_ptr<InternedData> interned;
  IidTable<FactKey> keys;  // of annotations, for the survey
};

class Sequences {
 public:
  /// The state after the packet's flags and defaults; nullptr for a packet that needs a state which is not there. Each
  /// pass over the file has a Sequences of its own.
  SequenceState* take(const PacketHead& head);
  /// The packet's time on its clock (`clock`; 0 = the trace's own). kUnknown = it has none.
  int64_t time(const PacketHead& head, SequenceState& state, uint32_t& clock);
  void snapshot(const PacketHead& head) { clocks_.snapshot(head.sequence, head.body); }

  /// Packets that need a state which is not there; how often packets were dropped before one; packets of sequences that
  /// were too many.
  uint64_t without_state() const { return without_state_; }
  uint64_t dropped() const { return dropped_; }
  uint64_t too_many() const { return too_many_; }

 private:
  static constexpr size_t kMost = 1 << 16;
  void defaults(SequenceState& state, std::string_view message);
  int64_t old_time(std::string_view event, SequenceState& state);

  tsl::robin_map<uint32_t, std::unique_ptr<SequenceState>> states_;
  SequenceState* last_ = nullptr;
  uint32_t last_sequence_ = 0;
  RunningClocks clocks_;
  uint64_t without_state_ = 0, dropped_ = 0, too_many_ = 0;
};

}  // namespace tacho::format::perfetto
