// Encodes packets (packets.h).
#include "format/perfetto/packets.h"

#include <algorithm>
#include <cstring>

#include "base/text/utf8.h"
#include "format/perfetto/encode.h"

namespace tacho::format::perfetto {

using protozero::pbf_writer;

namespace {

constexpr uint32_t kIncrementalClock = 64;
enum ClockId : uint32_t { kRealtime = 1, kMonotonic = 3, kMonotonicRaw = 5, kBoottime = 6 };

}  // namespace

void EventBody::number_field(uint32_t field, uint64_t value) {
  char bytes[20];
  const char* const end = put_varint(put_tag2(bytes, field, 0), value);
  bytes_.append(bytes, static_cast<size_t>(end - bytes));
}

void EventBody::number(uint32_t name_iid, uint32_t field, uint64_t value) {
  if (!annotations_) return;
  char bytes[32];
  char* at = bytes + 2;
  *at++ = tag1(annotation_name_iid, 0);
  at = put_varint(at, name_iid);
  at = put_varint(put_tag2(at, field, 0), value);
  bytes[0] = tag1(event_annotations, 2);
  bytes[1] = static_cast<char>(at - bytes - 2);
  bytes_.append(bytes, static_cast<size_t>(at - bytes));
}

namespace {

void add_text(pbf_writer& out, uint32_t field, std::string_view text) {
  if (is_plain(text)) return out.add_string(field, text.data(), text.size());
  out.add_string(field, valid_utf8(text));
}

}  // namespace

void EventBody::name(std::string_view text) {
  pbf_writer out(bytes_);
  add_text(out, event_name, text);
}

void EventBody::add_double(uint32_t name_iid, double value) {
  if (!annotations_) return;
  pbf_writer out(bytes_);
  pbf_writer annotation(out, event_annotations);
  annotation.add_uint32(annotation_name_iid, name_iid);
  annotation.add_double(annotation_double, value);
}

void EventBody::add_string(uint32_t name_iid, std::string_view value) {
  if (!annotations_) return;
  pbf_writer out(bytes_);
  pbf_writer annotation(out, event_annotations);
  annotation.add_uint32(annotation_name_iid, name_iid);
  add_text(annotation, annotation_string, value);
}

void EventBody::add_message(uint32_t field, std::string_view message) {
  perfetto::add_bytes(bytes_, field, message);
}

void Packets::add_sequence(pbf_writer& out) const {
  out.add_uint32(packet_sequence, sequence_);
  if (machine_ != 0) out.add_uint32(packet_machine, machine_);
}

void Packets::packet(std::string_view bytes) {
  char head[16];
  head[0] = tag1(1, 2);
  const char* const end = put_varint(head + 1, bytes.size());
  file_.write({head, static_cast<size_t>(end - head)});
  file_.write(bytes);
}

namespace {
void add_clocks(pbf_writer& snapshot, const Packets::ClockValues& at, bool incremental) {
  const auto add = [&](uint32_t id, int64_t value) {
    if (value < 0) return;
    pbf_writer clock(snapshot, snapshot_clock);
    clock.add_uint32(clock_id, id);
    clock.add_uint64(clock_timestamp, static_cast<uint64_t>(value));
    if (id == kIncrementalClock) clock.add_bool(clock_incremental, true);
  };
  if (incremental) add(kIncrementalClock, at.boottime);
  add(kBoottime, at.boottime);
  add(kMonotonic, at.monotonic);
  add(kMonotonicRaw, at.raw);
  add(kRealtime, at.realtime);
  if (incremental) snapshot.add_uint32(snapshot_primary, kBoottime);  // once, and before any time stamp
}
}  // namespace

void Packets::begin(const ClockValues& at) {
  first_ = last_ = std::max<int64_t>(at.boottime, 0);
  std::string bytes;
  pbf_writer out(bytes);
  {
    pbf_writer snapshot(out, packet_clock_snapshot);
    add_clocks(snapshot, at, true);
  }
  add_sequence(out);
  out.add_uint32(packet_flags, 1);
  {
    pbf_writer defaults(out, packet_defaults);
    defaults.add_uint32(defaults_timestamp_clock, kIncrementalClock);
  }
  packet(bytes);
}

void Packets::clock_snapshot(const ClockValues& at) {
  std::string bytes;
  pbf_writer out(bytes);
  {
    pbf_writer snapshot(out, packet_clock_snapshot);
    add_clocks(snapshot, at, false);
  }
  if (machine_ != 0) add_sequence(out);
  packet(bytes);
}

void Packets::descriptor(const std::string& track_descriptor) {
  std::string bytes;
  pbf_writer out(bytes);
  // Dated at the beginning of the trace: a process or thread must not start after its first event.
  out.add_uint64(packet_timestamp, static_cast<uint64_t>(first_));
  out.add_uint32(packet_timestamp_clock, kBoottime);
  add_sequence(out);
  out.add_message(packet_track_descriptor, track_descriptor);
  packet(bytes);
}

void Packets::fact(uint32_t field, std::string_view content) {
  std::string bytes;
  pbf_writer out(bytes);
  out.add_uint64(packet_timestamp, static_cast<uint64_t>(first_));
  out.add_uint32(packet_timestamp_clock, kBoottime);
  add_sequence(out);
  out.add_message(field, content.data(), content.size());
  packet(bytes);
}

void Packets::process(uint64_t uuid, int64_t pid, std::string_view name, std::string_view command,
                      std::span<const std::string> labels) {
  std::string bytes;
  pbf_writer out(bytes);
  out.add_uint64(track_uuid, uuid);
  pbf_writer process(out, track_process);
  process.add_int32(process_pid, static_cast<int32_t>(pid));
  if (!command.empty()) add_text(process, process_cmdline, command);
  add_text(process, process_name, name);
  for (const std::string& label : labels) add_text(process, process_labels, label);
  process.commit();
  descriptor(bytes);
}

void Packets::thread(uint64_t uuid, int64_t pid, int64_t tid, std::string_view name) {
  std::string bytes;
  pbf_writer out(bytes);
  out.add_uint64(track_uuid, uuid);
  pbf_writer thread(out, track_thread);
  thread.add_int32(thread_pid, static_cast<int32_t>(pid));
  thread.add_int32(thread_tid, static_cast<int32_t>(tid));
  add_text(thread, thread_name, name);
  thread.commit();
  descriptor(bytes);
}

void Packets::track(uint64_t uuid, uint64_t parent, std::string_view name) {
  std::string bytes;
  pbf_writer out(bytes);
  out.add_uint64(track_uuid, uuid);
  add_text(out, track_name, name);
  if (parent != 0) out.add_uint64(track_parent, parent);
  descriptor(bytes);
}

void Packets::counter(uint64_t uuid, uint64_t parent, std::string_view name, CounterUnit unit,
                      std::string_view unit_name) {
  std::string bytes, counter;
  pbf_writer out(bytes), counter_out(counter);
  out.add_uint64(track_uuid, uuid);
  add_text(out, track_name, name);
  if (parent != 0) out.add_uint64(track_parent, parent);
  if (unit != CounterUnit::kNone)
    counter_out.add_uint32(counter_unit, static_cast<uint32_t>(unit));
  else if (!unit_name.empty())
    add_text(counter_out, counter_unit_name, unit_name);
  out.add_message(track_counter, counter);  // present even if empty: that makes it a counter
  descriptor(bytes);
}

uint32_t Packets::intern_fresh(uint32_t kind, std::string_view text) {
  const uint32_t iid = indexes_[kind].next++;
  pbf_writer out(interned_);
  pbf_writer entry(out, kind);
  entry.add_uint32(interned_iid, iid);
  add_text(entry, interned_text, text);
  return iid;
}

uint32_t Packets::intern(uint32_t kind, std::string_view text) {
  Index& index = indexes_[kind];
  const auto found = index.numbers.find(text);
  if (found != index.numbers.end()) return found->second;
  const uint32_t iid = intern_fresh(kind, text);
  index.numbers.emplace(text, iid);
  return iid;
}

void Packets::intern_message(uint32_t kind, std::string_view message) {
  pbf_writer out(interned_);
  out.add_message(kind, message.data(), message.size());
}

uint64_t Packets::delta(int64_t time) {
  if (time <= last_) return 0;
  const auto delta = static_cast<uint64_t>(time - last_);
  last_ = time;
  return delta;
}

void Packets::message(int64_t time, uint32_t field, std::initializer_list<std::string_view> parts) {
  const uint64_t since = delta(time);
  size_t content = 0;
  for (const std::string_view part : parts) content += part.size();
  const size_t size = 1 + varint_size(since) + 1 + varint_size(sequence_) + 2 +
                      (machine_ == 0 ? 0 : 2 + varint_size(machine_)) + varint_size(field << 3) + varint_size(content) +
                      content + (interned_.empty() ? 0 : 1 + varint_size(interned_.size()) + interned_.size());
  constexpr size_t kMostReserved = 32 * 1024;
  const bool direct = size < kMostReserved;
  if (!direct) scratch_.resize(size + 16);
  char* const begin = direct ? file_.reserve(size + 16) : scratch_.data();
  char* at = begin;
  *at++ = tag1(1, 2);
  at = put_varint(at, size);
  *at++ = tag1(packet_timestamp, 0);
  at = put_varint(at, since);
  *at++ = tag1(packet_sequence, 0);
  at = put_varint(at, sequence_);
  *at++ = tag1(packet_flags, 0);
  *at++ = 2;
  if (machine_ != 0) at = put_varint(put_tag2(at, packet_machine, 0), machine_);
  at = put_varint(put_tag2(at, field, 2), content);
  for (const std::string_view part : parts) at = put_bytes(at, part);
  if (!interned_.empty()) {
    *at++ = tag1(packet_interned_data, 2);
    at = put_varint(at, interned_.size());
    at = put_bytes(at, interned_);
    interned_.clear();
  }
  const auto written = static_cast<size_t>(at - begin);
  if (direct) {
    file_.advance(written);
  } else {
    file_.write({begin, written});
  }
}

void Packets::event(int64_t time, uint32_t type, uint64_t track, std::string_view body, std::string_view more,
                    bool flow, uint64_t flow_id) {
  char head[16], tail[16];
  char *at = head, *behind = tail;
  *at++ = tag1(event_type, 0);
  *at++ = static_cast<char>(type);
  *at++ = tag1(event_track, 0);
  at = put_varint(at, track);
  if (flow) {
    behind = put_tag2(behind, event_flow_ids, 1);
    std::memcpy(behind, &flow_id, 8);
    behind += 8;
  }
  message(time, packet_track_event,
          {{head, static_cast<size_t>(at - head)}, body, more, {tail, static_cast<size_t>(behind - tail)}});
}

void Packets::counter_value(int64_t time, uint64_t track, int64_t value) {
  char bytes[16];
  char* at = put_tag2(bytes, event_counter_value, 0);
  at = put_varint(at, static_cast<uint64_t>(value));
  event(time, 4, track, {bytes, static_cast<size_t>(at - bytes)}, {}, false, 0);
}

void Packets::counter_value(int64_t time, uint64_t track, double value) {
  char bytes[16];
  char* const at = put_tag2(bytes, event_double_value, 1);
  std::memcpy(at, &value, 8);
  event(time, 4, track, {bytes, static_cast<size_t>(at + 8 - bytes)}, {}, false, 0);
}

void Packets::sample(int64_t time, int64_t pid, int64_t tid, uint32_t callstack) {
  std::string bytes;
  pbf_writer sample(bytes);
  sample.add_uint32(sample_pid, static_cast<uint32_t>(pid));
  sample.add_uint32(sample_tid, static_cast<uint32_t>(tid));
  sample.add_uint32(sample_callstack, callstack);
  sample.add_enum(sample_mode, 2);
  message(time, packet_perf_sample, {bytes});
}

}  // namespace tacho::format::perfetto
