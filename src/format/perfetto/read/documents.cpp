// Tells traces apart that lie in one file (documents.h).
#include "format/perfetto/read/documents.h"

#include "format/perfetto/messages.h"

namespace tacho::format::perfetto {

namespace {

constexpr size_t kMostSequences = 1 << 16;

bool begins_with_clocks(const PacketHead& head) {
  return head.event == packet_clock_snapshot && head.state_cleared && head.sequence != 0;
}

}  // namespace

bool DocumentStarts::again(const PacketHead& head) const {
  switch (head.event) {
    case packet_trace_uuid:
      return uuid_ || events_;
    case packet_trace_config:
      return configuration_ && events_;
    case packet_clock_snapshot:
      if (first_sequence_ != 0 && head.sequence == first_sequence_ && begins_with_clocks(head)) return true;
      break;
    default:
      break;
  }
  return head.first && sequences_.contains(head.sequence);
}

bool DocumentStarts::begins(const PacketHead& head) {
  const bool other = any_ && again(head);
  if (other) *this = {};
  if (!any_ && begins_with_clocks(head)) first_sequence_ = head.sequence;
  any_ = true;
  uuid_ |= head.event == packet_trace_uuid;
  configuration_ |= head.event == packet_trace_config;
  events_ |= head.event == packet_track_event || head.event == packet_render_stage ||
             head.event == packet_track_descriptor || head.event == packet_perf_sample;
  if (head.first && sequences_.size() < kMostSequences) sequences_.insert(head.sequence);
  return other;
}

}  // namespace tacho::format::perfetto
