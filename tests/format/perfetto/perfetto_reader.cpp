// The decoder of perfetto_reader.h.
#include "format/perfetto/perfetto_reader.h"

#include <algorithm>
#include <initializer_list>
#include <memory>

namespace tacho::test {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

enum class Kind { kVarint, kFixed64, kText, kMessage };

struct Message {
  struct Field {
    uint32_t number;
    Kind kind;
    const Message* message = nullptr;
  };
  std::vector<Field> fields;
};

// Per field: number, wire type; all are in v46 (June 2024) with the same meaning as today.
const Message kClock{{{1, Kind::kVarint}, {2, Kind::kVarint}, {3, Kind::kVarint}, {4, Kind::kVarint}}};
const Message kSnapshot{{{1, Kind::kMessage, &kClock}, {2, Kind::kVarint}}};
const Message kDefaults{{{58, Kind::kVarint}}};
const Message kProcess{{{1, Kind::kVarint}, {2, Kind::kText}, {6, Kind::kText}, {7, Kind::kVarint}, {8, Kind::kText}}};
const Message kThread{{{1, Kind::kVarint}, {2, Kind::kVarint}, {5, Kind::kText}}};
const Message kCounter{{{1, Kind::kVarint},
                        {2, Kind::kText},
                        {3, Kind::kVarint},
                        {4, Kind::kVarint},
                        {5, Kind::kVarint},
                        {6, Kind::kText}}};
const Message kDescriptor{{{1, Kind::kVarint},
                           {2, Kind::kText},
                           {3, Kind::kMessage, &kProcess},
                           {4, Kind::kMessage, &kThread},
                           {5, Kind::kVarint},
                           {8, Kind::kMessage, &kCounter},
                           {9, Kind::kVarint},
                           {10, Kind::kText}}};
const Message kAnnotation{{{1, Kind::kVarint},
                           {2, Kind::kVarint},
                           {3, Kind::kVarint},
                           {4, Kind::kVarint},
                           {5, Kind::kFixed64},
                           {6, Kind::kText},
                           {7, Kind::kVarint},
                           {10, Kind::kText},
                           {17, Kind::kVarint}}};
const Message kEvent{{{3, Kind::kVarint},
                      {4, Kind::kMessage, &kAnnotation},
                      {9, Kind::kVarint},
                      {10, Kind::kVarint},
                      {11, Kind::kVarint},
                      {22, Kind::kText},
                      {23, Kind::kText},
                      {30, Kind::kVarint},
                      {44, Kind::kFixed64},
                      {47, Kind::kFixed64},
                      {48, Kind::kFixed64}}};
const Message kNamed{{{1, Kind::kVarint}, {2, Kind::kText}}};
const Message kFrame{{{1, Kind::kVarint}, {2, Kind::kVarint}, {3, Kind::kVarint}, {4, Kind::kVarint}}};
const Message kCallstack{{{1, Kind::kVarint}, {2, Kind::kVarint}}};
const Message kMapping{{{1, Kind::kVarint},
                        {2, Kind::kVarint},
                        {3, Kind::kVarint},
                        {4, Kind::kVarint},
                        {5, Kind::kVarint},
                        {6, Kind::kVarint},
                        {7, Kind::kVarint}}};
const Message kInterned{{{1, Kind::kMessage, &kNamed},
                         {2, Kind::kMessage, &kNamed},
                         {3, Kind::kMessage, &kNamed},
                         {5, Kind::kMessage, &kNamed},
                         {6, Kind::kMessage, &kFrame},
                         {7, Kind::kMessage, &kCallstack},
                         {17, Kind::kMessage, &kNamed},
                         {19, Kind::kMessage, &kMapping},
                         {29, Kind::kMessage, &kNamed}}};
const Message kSample{{{1, Kind::kVarint},
                       {2, Kind::kVarint},
                       {3, Kind::kVarint},
                       {4, Kind::kVarint},
                       {5, Kind::kVarint},
                       {6, Kind::kVarint}}};
const Message kPacket{{{6, Kind::kMessage, &kSnapshot},
                       {8, Kind::kVarint},
                       {10, Kind::kVarint},
                       {11, Kind::kMessage, &kEvent},
                       {12, Kind::kMessage, &kInterned},
                       {13, Kind::kVarint},
                       {58, Kind::kVarint},
                       {59, Kind::kMessage, &kDefaults},
                       {60, Kind::kMessage, &kDescriptor},
                       {66, Kind::kMessage, &kSample}}};

pbf_wire_type wire_of(Kind kind) {
  return kind == Kind::kVarint    ? pbf_wire_type::varint
         : kind == Kind::kFixed64 ? pbf_wire_type::fixed64
                                  : pbf_wire_type::length_delimited;
}

void check_known(pbf_reader reader, const Message& message, const std::string& where,
                 std::vector<std::string>& errors) {
  while (reader.next()) {
    const Message::Field* known = nullptr;
    for (const auto& field : message.fields)
      if (field.number == reader.tag()) known = &field;
    const std::string at = where + "." + std::to_string(reader.tag());
    if (known == nullptr || wire_of(known->kind) != reader.wire_type()) {
      errors.push_back("unknown field or wire type " + at);
      reader.skip();
    } else if (known->kind == Kind::kMessage) {
      check_known(reader.get_message(), *known->message, at, errors);
    } else {
      reader.skip();
    }
  }
}

using Names = std::map<uint64_t, std::string>;

void read_named(pbf_reader reader, Names& names) {
  uint64_t iid = 0;
  std::string text;
  while (reader.next()) {
    if (reader.tag() == 1)
      iid = reader.get_uint64();
    else
      text = reader.get_bytes();
  }
  names[iid] = text;
}

struct Frame {
  uint64_t function = 0, mapping = 0;
};

struct State {
  std::map<uint32_t, Names> names;
  std::map<uint64_t, Frame> frames;
  std::map<uint64_t, std::vector<uint64_t>> callstacks;
  std::set<uint64_t> mappings;
  bool cleared = false;
  int64_t clock = 0;
  bool clock_defined = false;
};

void read_interned(pbf_reader reader, State& state) {
  while (reader.next()) {
    const uint32_t tag = reader.tag();
    if (tag == 6) {
      pbf_reader part = reader.get_message();
      uint64_t iid = 0;
      Frame frame;
      while (part.next()) {
        const uint64_t value = part.get_uint64();
        if (part.tag() == 1) iid = value;
        if (part.tag() == 2) frame.function = value;
        if (part.tag() == 3) frame.mapping = value;
      }
      state.frames[iid] = frame;
    } else if (tag == 7) {
      pbf_reader part = reader.get_message();
      uint64_t iid = 0;
      std::vector<uint64_t> frames;
      while (part.next()) {
        const uint64_t value = part.get_uint64();
        if (part.tag() == 1) iid = value;
        if (part.tag() == 2) frames.push_back(value);
      }
      state.callstacks[iid] = frames;
    } else if (tag == 19) {
      pbf_reader part = reader.get_message();
      while (part.next()) {
        const uint64_t value = part.get_uint64();
        if (part.tag() == 1) state.mappings.insert(value);
      }
    } else {
      read_named(reader.get_message(), state.names[tag]);
    }
  }
}

}  // namespace

PerfettoTrace read_perfetto(const std::string& bytes) {
  PerfettoTrace trace;
  auto& errors = trace.errors;
  State state;
  const auto name_of = [&](uint32_t kind, uint64_t iid) -> std::string {
    const auto& names = state.names[kind];
    const auto found = names.find(iid);
    if (found == names.end()) {
      errors.push_back("iid " + std::to_string(iid) + " of interned field " + std::to_string(kind) +
                       " used before it was defined");
      return "?";
    }
    return found->second;
  };
  pbf_reader file(bytes.data(), bytes.size());
  bool first = true;
  std::set<int64_t> processes;
  std::set<std::pair<int64_t, int64_t>> threads;
  while (file.next()) {
    if (file.tag() != 1) {
      errors.push_back("top-level field " + std::to_string(file.tag()));
      file.skip();
      continue;
    }
    const auto view = file.get_view();
    if (view.size() == 0) errors.push_back("empty packet");
    check_known(pbf_reader(view), kPacket, "packet", errors);
    uint64_t timestamp = 0, sequence = 0, flags = 0, clock_id = 64;
    bool has_timestamp = false;
    std::string event, interned, snapshot, descriptor, sample;
    pbf_reader packet(view);
    while (packet.next()) switch (packet.tag()) {
        case 6:
          snapshot = packet.get_bytes();
          break;
        case 8:
          timestamp = packet.get_uint64(), has_timestamp = true;
          break;
        case 10:
          sequence = packet.get_uint32();
          break;
        case 11:
          event = packet.get_bytes();
          break;
        case 12:
          interned = packet.get_bytes();
          break;
        case 13:
          flags = packet.get_uint32();
          break;
        case 58:
          clock_id = packet.get_uint32();
          break;
        case 60:
          descriptor = packet.get_bytes();
          break;
        case 66:
          sample = packet.get_bytes();
          break;
        default:
          packet.skip();
      }
    if ((flags & 1) != 0) state.cleared = true;
    if (first && (flags & 1) == 0) errors.push_back("the first packet does not clear the sequence");
    first = false;
    if ((!event.empty() || !interned.empty() || !sample.empty()) &&
        (sequence == 0 || (flags & 2) == 0 || !state.cleared))
      errors.push_back("an event without sequence or its flag");
    if (!interned.empty()) read_interned(pbf_reader(interned), state);
    if (!snapshot.empty()) {
      std::map<uint32_t, int64_t> clocks;
      pbf_reader reader(snapshot);
      while (reader.next()) {
        if (reader.tag() != 1) {
          if (reader.get_uint32() != 6) errors.push_back("the primary clock is not BOOTTIME");
          continue;
        }
        pbf_reader clock = reader.get_message();
        uint32_t id = 0;
        int64_t value = 0;
        bool incremental = false;
        while (clock.next()) {
          if (clock.tag() == 1)
            id = clock.get_uint32();
          else if (clock.tag() == 2)
            value = static_cast<int64_t>(clock.get_uint64());
          else if (clock.tag() == 3)
            incremental = clock.get_bool();
          else
            clock.skip();
        }
        if (incremental != (id == 64)) errors.push_back("clock " + std::to_string(id) + " incremental?");
        if (clocks.contains(id)) errors.push_back("clock twice in a snapshot");
        clocks[id] = value;
        if (id == 64) state.clock = value, state.clock_defined = true;
      }
      if (clocks.contains(64) && clocks[64] != clocks[6])
        errors.push_back("clock 64 does not start at BOOTTIME's value");
      trace.snapshots.push_back(clocks);
    }
    int64_t time = 0;
    if (has_timestamp && clock_id == 64) {
      if (!state.clock_defined) errors.push_back("delta before the clock was defined");
      state.clock += static_cast<int64_t>(timestamp);
      time = state.clock;
      if (static_cast<int64_t>(timestamp) < 0) errors.push_back("time goes backwards");
    }
    if (!descriptor.empty()) {
      PerfettoTrack track;
      uint64_t uuid = 0;
      pbf_reader reader(descriptor);
      while (reader.next()) switch (reader.tag()) {
          case 1:
            uuid = reader.get_uint64();
            break;
          case 2:
            track.name = reader.get_bytes();
            break;
          case 3: {
            track.is_process = true;
            pbf_reader part = reader.get_message();
            while (part.next()) {
              if (part.tag() == 1)
                track.pid = part.get_int32();
              else if (part.tag() == 2)
                track.command = part.get_bytes();
              else if (part.tag() == 6)
                track.name = part.get_bytes();
              else
                part.skip();
            }
            break;
          }
          case 4: {
            track.is_thread = true;
            pbf_reader part = reader.get_message();
            while (part.next()) {
              if (part.tag() == 1)
                track.pid = part.get_int32();
              else if (part.tag() == 2)
                track.tid = part.get_int32();
              else
                track.name = part.get_bytes();
            }
            break;
          }
          case 5:
            track.parent = reader.get_uint64();
            break;
          case 8: {
            track.is_counter = true;
            pbf_reader part = reader.get_message();
            while (part.next()) {
              if (part.tag() == 3)
                track.unit = part.get_int32();
              else if (part.tag() == 6)
                track.unit_name = part.get_bytes();
              else
                part.skip();
            }
            break;
          }
          default:
            reader.skip();
        }
      if (uuid == 0 || trace.tracks.contains(uuid)) errors.push_back("track id 0 or described twice");
      if (track.is_process && track.pid <= 0) errors.push_back("process without pid");
      if (track.is_thread && (track.pid <= 0 || track.tid <= 0)) errors.push_back("thread without pid or tid");
      if (track.parent != 0 && !trace.tracks.contains(track.parent))
        errors.push_back("parent not described before its child");
      if (track.is_process && !processes.insert(track.pid).second) errors.push_back("two processes of one pid");
      if (track.is_thread && !threads.insert({track.pid, track.tid}).second) errors.push_back("two threads of one tid");
      trace.tracks[uuid] = track;
    }
    if (!event.empty()) {
      PerfettoEvent made;
      made.time = time;
      if (!has_timestamp) errors.push_back("event without a time");
      pbf_reader reader(event);
      while (reader.next()) switch (reader.tag()) {
          case 3:
            made.category = name_of(1, reader.get_uint64());
            break;
          case 4: {
            pbf_reader part = reader.get_message();
            std::string key, value;
            while (part.next()) switch (part.tag()) {
                case 1:
                  key = name_of(3, part.get_uint64());
                  break;
                case 2:
                  value = part.get_bool() ? "true" : "false";
                  break;
                case 3:
                  value = std::to_string(part.get_uint64());
                  break;
                case 4:
                  value = std::to_string(part.get_int64());
                  break;
                case 5:
                  value = std::to_string(part.get_double());
                  break;
                case 6:
                  value = part.get_bytes();
                  break;
                case 17:
                  value = name_of(29, part.get_uint64());
                  break;
                default:
                  part.skip();
              }
            if (!made.args.emplace(key, value).second) errors.push_back("annotation " + key + " twice");
            break;
          }
          case 9:
            made.type = reader.get_int32();
            break;
          case 10:
            made.name = name_of(2, reader.get_uint64());
            break;
          case 11:
            made.track = reader.get_uint64();
            break;
          case 23:
            made.name = reader.get_bytes();
            break;
          case 30:
            made.value = static_cast<double>(reader.get_int64());
            break;
          case 44:
            made.value = reader.get_double();
            break;
          case 47:
          case 48:
            made.flows.push_back(reader.get_fixed64());
            break;
          default:
            reader.skip();
        }
      const auto track = trace.tracks.find(made.track);
      if (track == trace.tracks.end())
        errors.push_back("event on a track that is not described");
      else if (track->second.is_counter != (made.type == 4))
        errors.push_back("a slice on a counter track or the reverse");
      trace.events.push_back(std::move(made));
    }
    if (!sample.empty()) {
      PerfettoSample made;
      made.time = time;
      pbf_reader reader(sample);
      while (reader.next()) switch (reader.tag()) {
          case 2:
            made.pid = reader.get_int32();
            break;
          case 3:
            made.tid = reader.get_int32();
            break;
          case 4: {
            const auto stack = state.callstacks.find(reader.get_uint64());
            if (stack == state.callstacks.end()) {
              errors.push_back("callstack not defined");
              break;
            }
            for (const uint64_t frame : stack->second) {
              if (!state.frames.contains(frame)) errors.push_back("frame not defined");
              const Frame& known = state.frames[frame];
              if (!state.mappings.contains(known.mapping))
                errors.push_back("frame without mapping: v46 drops the stack");
              made.frames.push_back(name_of(5, known.function));
            }
            break;
          }
          default:
            reader.skip();
        }
      trace.samples.push_back(std::move(made));
    }
  }
  // Balance and nesting, in file order, which is time order.
  std::map<uint64_t, int> depth;
  for (const PerfettoEvent& event : trace.events) {
    if (event.type == 1) ++depth[event.track];
    if (event.type == 2 && --depth[event.track] < 0) errors.push_back("an end without a begin");
  }
  for (const auto& [track, open] : depth)
    if (open != 0) errors.push_back("a begin without an end on track " + trace.tracks[track].name);
  return trace;
}

}  // namespace tacho::test
