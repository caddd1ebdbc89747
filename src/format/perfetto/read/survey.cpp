// Looks a trace through (survey.h).
#include "format/perfetto/read/survey.h"

#include <cstring>

#include "format/perfetto/read/gpu_events.h"

namespace tacho::format::perfetto {

using event::kUnknown;

namespace {

// Whether the key of field 3000 stands anywhere in the bytes: few events have it.
bool may_submit(std::string_view event) {
  static constexpr char kKey[] = {'\xc2', '\xbb', '\x01'};
  constexpr size_t kShort = 64;
  if (event.size() > kShort) return memmem(event.data(), event.size(), kKey, sizeof kKey) != nullptr;
  for (size_t i = 0; i + sizeof kKey < event.size(); ++i)
    if (event[i] == kKey[0] && event[i + 1] == kKey[1] && event[i + 2] == kKey[2]) return true;
  return false;
}

}  // namespace

uint64_t thread_uuid_of(const PacketHead& head) {
  uint64_t pid = 0, tid = 0;
  for (WireFields field(head.body); field.next();) {
    if (field.number() == thread_pid) pid = field.value();
    if (field.number() == thread_tid) tid = field.value();
  }
  return TraceLines::made_uuid(4, pid, tid ^ static_cast<uint64_t>(head.machine) << 32);
}

void Survey::keys(std::string_view interned, SequenceState& state) {
  constexpr uint64_t kMost = 1 << 20;
  for (WireFields field(interned); field.next();) {
    if (field.number() == interned_counter_descriptors && counts_kernels(field.bytes()))
      lines_.expect_dispatch_counters();
    if (field.number() != interned_annotation_names || !field.is_bytes()) continue;
    uint64_t iid = 0;
    std::string_view text;
    for (WireFields inner(field.bytes()); inner.next();) {
      if (inner.number() == interned_iid) iid = inner.value();
      if (inner.number() == interned_text) text = inner.bytes();
    }
    if (++keys_ <= kMost) state.keys.put(iid, fact_key(text));
  }
}

void Survey::old_thread(const PacketHead& head, SequenceState& state) {
  state.thread_uuid = thread_uuid_of(head);
  lines_.thread_descriptor(state.thread_uuid, head.body, head.machine);
  for (WireFields field(head.body); field.next();)
    if (field.number() == thread_reference_us) state.thread_us = field.signed_value();
}

// A call that says which events of the GPU it caused, and its correlation if an annotation has it.
void Survey::submission(std::string_view event, uint64_t uuid, const SequenceState& state) {
  int64_t correlation = kUnknown;
  for (WireFields field(event); field.next();) {
    if (field.number() != event_annotations || !field.is_bytes()) continue;
    FactKey key = FactKey::kNone;
    int64_t number = kUnknown;
    for (WireFields inner(field.bytes()); inner.next();) {
      if (inner.number() == annotation_name) key = fact_key(inner.bytes());
      if (inner.number() == annotation_name_iid)
        if (const FactKey* const found = state.keys.find(inner.value())) key = *found;
      if (inner.number() == annotation_int || inner.number() == annotation_uint) number = inner.signed_value();
    }
    if (key == FactKey::kCorrelation && number > 0) correlation = number;
  }
  for (WireFields field(event); field.next();) {
    if (field.number() != event_gpu_correlation) continue;
    for (WireFields inner(field.bytes()); inner.next();) {
      if (inner.number() != gpu_correlation_submissions) continue;
      inner.each_number([&](uint64_t id) {
        if (correlation == kUnknown) correlation = TrackEvents::of_submission(id);
        submissions_.add(static_cast<int64_t>(id), {uuid, correlation});
      });
    }
  }
}

void Survey::track_event(const PacketHead& head, SequenceState& state, int64_t time, uint32_t clock) {
  uint64_t uuid = 0;
  EventType type = EventType::kLegacy;
  bool has_track = false, has_type = false;
  if (is_pair(head.body, event_type, static_cast<char>(EventType::kEnd), event_track, uuid)) {
    type = EventType::kEnd;
    has_track = has_type = true;
  }
  for (WireFields field(head.body); !(has_track && has_type) && field.next();) {
    if (field.number() == event_type) {
      type = static_cast<EventType>(field.value());
      has_type = true;
    } else if (field.number() == event_track) {
      uuid = field.value();
      has_track = true;
    }
  }
  if (!has_track) uuid = state.events.track != 0 ? state.events.track : state.thread_uuid;
  if (type != EventType::kEnd && type != EventType::kCounter && may_submit(head.body))
    submission(head.body, uuid, state);
  if (type == EventType::kInstant || type == EventType::kCounter) return;
  const uint32_t line = lines_.number(uuid);
  if (line == UINT32_MAX || time == kUnknown) return;
  if (orders_.size() <= line) orders_.resize(line + 1);
  LineOrder& order = orders_[line];
  if (order.time != kUnknown && (order.sequence != head.sequence || order.clock != clock || time < order.time))
    lines_.line(line).unsorted = true;
  order = {head.sequence, clock, time};
}

void Survey::take(const PacketHead& head, SequenceState& state) {
  if (!head.interned.empty()) keys(head.interned, state);
  switch (head.event) {
    case packet_clock_snapshot:
      sequences_.snapshot(head);
      clocks_.snapshot(head.sequence, head.body);
      break;
    case packet_track_descriptor:
      lines_.describe(head.body, head.machine);
      break;
    case packet_process_descriptor:
      lines_.process_descriptor(head.body, head.machine);
      break;
    case packet_thread_descriptor:
      old_thread(head, state);
      break;
    case packet_process_tree:
      lines_.process_tree(head.body, head.machine);
      break;
    case packet_gpu_info:
      lines_.gpu_info(head.body, head.machine);
      break;
    case packet_system_info:
      lines_.system_info(head.body, head.machine);
      break;
    default:
      break;
  }
}

void Survey::see(const PacketHead& head) {
  SequenceState* const state = sequences_.take(head);
  if (state == nullptr) return;
  uint32_t clock = 0;
  const int64_t time = sequences_.time(head, *state, clock);
  if (head.event == packet_track_event) track_event(head, *state, time, clock);
  if (head.event != packet_track_event || !head.interned.empty()) take(head, *state);
}

Status Survey::finish() {
  clocks_.finish();
  return submissions_.finish();
}

}  // namespace tacho::format::perfetto
