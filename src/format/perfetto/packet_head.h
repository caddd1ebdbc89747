// What surrounds the event of a packet: its time, its sequence, and the state that the sequence keeps.
#pragma once

#include <cstdint>
#include <string_view>

#include "format/perfetto/messages.h"
#include "format/perfetto/wire.h"

namespace tacho::format::perfetto {

/// A packet's fields. It holds one event, if any: field `event` with the content `body`.
struct PacketHead {
  uint64_t timestamp = 0;
  bool has_timestamp = false, state_cleared = false, needs_state = false, dropped = false, first = false,
       damaged = false;
  uint32_t clock = 0;     // of the timestamp; 0 = not told
  uint32_t sequence = 0;  // 0 = not told
  uint32_t machine = 0;
  int64_t trusted_pid = 0;
  uint32_t event = 0;
  std::string_view body, interned, defaults;
};

/// Reads a packet into `head`, which it clears first.
inline void read_head(std::string_view packet, PacketHead& head) {
  head = {};
  WireFields field(packet);
  while (field.next()) {
    // What nearly all packets have, first.
    if (field.number() == packet_track_event && field.is_bytes()) {
      head.event = packet_track_event;
      head.body = field.bytes();
      continue;
    }
    if (field.number() == packet_timestamp) {
      head.timestamp = field.value();
      head.has_timestamp = true;
      continue;
    }
    switch (field.number()) {
      case packet_timestamp_clock:
        head.clock = static_cast<uint32_t>(field.value());
        break;
      case packet_sequence:
        head.sequence = static_cast<uint32_t>(field.value());
        break;
      case packet_flags:
        head.state_cleared |= (field.value() & kStateCleared) != 0;
        head.needs_state |= (field.value() & kNeedsState) != 0;
        break;
      case packet_state_cleared:
        head.state_cleared |= field.value() != 0;
        break;
      case packet_previous_dropped:
        head.dropped = field.value() != 0;
        break;
      case packet_first_on_sequence:
        head.first = field.value() != 0;
        break;
      case packet_trusted_pid:
        head.trusted_pid = static_cast<int32_t>(field.value());
        break;
      case packet_machine:
        head.machine = static_cast<uint32_t>(field.value());
        break;
      case packet_interned_data:
        head.interned = field.bytes();
        break;
      case packet_defaults:
        head.defaults = field.bytes();
        break;
      default:
        // Of messages: the event. Numbers such as the user's id say nothing about the program.
        if (field.is_bytes()) {
          head.event = field.number();
          head.body = field.bytes();
        }
    }
  }
  head.damaged = field.damaged();
}

}  // namespace tacho::format::perfetto
