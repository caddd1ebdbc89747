// Makes rows of track events (track_events.h).
#include "format/perfetto/read/track_events.h"

#include <algorithm>
#include <bit>

#include "format/import/words.h"
#include "format/perfetto/wire.h"
#include "format/shared/rocprof_words.h"

namespace tacho::format::perfetto {

using event::Domain;
using event::kUnknown;
using event::LossReason;
using event::Table;
namespace row = event::row;

int64_t TrackEvents::kernel(int64_t name, const EventFacts& facts, event::DispatchKind kind) {
  row::Kernel made = imported::launch_of(name, facts.grid, facts.group, facts.grid_in_items);
  made.kind = kind;
  made.registers = facts.registers;
  made.accum_registers = facts.accum_registers;
  made.scalar_registers = facts.scalar_registers;
  made.shared_static = facts.shared_static != kUnknown ? facts.shared_static : facts.shared_all;
  made.shared_dynamic = facts.shared_dynamic;
  made.private_bytes = facts.scratch;
  made.graph = std::max<int64_t>(facts.graph, 0);
  return kernels_.row(writer_, made);
}

int64_t TrackEvents::label(int64_t name, event::MarkerKind kind, const EventFacts& facts, int64_t category) {
  const bool payload = facts.payload != kUnknown;
  return labels_.row(writer_, row::Label{.name = name,
                                         .kind = kind,
                                         .domain = facts.domain,
                                         .category = category,
                                         .payload = !payload                ? event::PayloadKind::kNone
                                                    : facts.payload_is_real ? event::PayloadKind::kDouble
                                                                            : event::PayloadKind::kInteger});
}

// Where an event happened that is no device's work.
int64_t TrackEvents::track_of(TraceLine& line) {
  if (line.role == TraceLine::Role::kQueue) return lines_.queue_track(line, facts_.queue);
  if (line.track == 0 || line.role == TraceLine::Role::kCounter)
    return lines_.range_track(line.process, line.name.empty() ? "ranges" : line.name);
  return line.track;
}

void TrackEvents::dispatch(SliceRow& made, const Parsed& event, TraceLine& line) {
  made.table = Table::kDispatch;
  made.track = lines_.queue_track(line, facts_.queue);
  made.process = line.process;
  made.device = facts_.queue.agent.word != AgentLabel::Word::kNone
                    ? lines_.agent(facts_.queue.agent, false, facts_.queue.cpu_agent)
                    : line.device;
  if (line.device == 0) line.device = made.device;
  made.dim = kernel(event.name.text, facts_);
  made.number = facts_.dispatch_id > 0 ? facts_.dispatch_id - 1 : kUnknown;
  made.graph_node = std::max<int64_t>(facts_.graph_node, 0);
  made.text = facts_.arguments;
  if (made.text == 0 && !facts_.collective.empty()) made.text = writer_.string(facts_.collective);
}

void TrackEvents::copy(SliceRow& made, const Parsed& event, TraceLine& line) {
  using event::CopyDirection;
  made.table = Table::kCopy;
  const CopyDirection way = event.name.direction;
  const bool from_host = way == CopyDirection::kHostToDevice || way == CopyDirection::kHostToHost;
  const bool to_host = way == CopyDirection::kDeviceToHost || way == CopyDirection::kHostToHost;
  const bool agents = facts_.source.word != AgentLabel::Word::kNone || facts_.target.word != AgentLabel::Word::kNone;
  const int64_t source = agents ? lines_.agent(facts_.source, from_host) : 0;
  const int64_t target = agents ? lines_.agent(facts_.target, to_host) : 0;
  if (agents && line.device == 0) line.device = target != 0 ? target : source;
  made.track = lines_.queue_track(line, facts_.queue);
  int64_t device = line.device;
  if (facts_.queue.device != kUnknown) device = lines_.device(facts_.queue.device, line.machine);
  row::CopyShape shape = imported::copy_shape(way, device, event.name.from, event.name.to);
  if (agents) {
    shape.source_device = source;
    shape.target_device = target;
  }
  made.dim = copies_.row(writer_, shape);
  made.number = facts_.bytes >= 0 ? facts_.bytes : kUnknown;
  made.graph_node = std::max<int64_t>(facts_.graph_node, 0);
  made.text = facts_.arguments;
}

void TrackEvents::fill(SliceRow& made, TraceLine& line) {
  made.table = Table::kFill;
  made.track = lines_.queue_track(line, facts_.queue);
  const int64_t device =
      facts_.queue.device != kUnknown ? lines_.device(facts_.queue.device, line.machine) : line.device;
  made.dim = writer_.dimension(row::FillShape{.device = device});
  made.number = facts_.bytes >= 0 ? facts_.bytes : kUnknown;
  made.graph_node = std::max<int64_t>(facts_.graph_node, 0);
}

void TrackEvents::call(SliceRow& made, const Parsed& event, TraceLine& line) {
  made.table = Table::kApi;
  made.track = track_of(line);
  Domain domain = event.category.domain;
  // "cuda_api" holds the calls of two APIs: the function's name tells which.
  if (const Domain by_name = event.name.domain;
      domain != Domain::kUnknown && by_name != Domain::kUnknown && api_of(by_name) == api_of(domain))
    domain = by_name;
  made.dim = functions_.row(writer_, row::Function{.name = event.name.text, .domain = domain});
  made.number = facts_.result;
  made.text = facts_.arguments;
  if (made.correlation == 0 && domain == Domain::kOperator) made.correlation = ++next_operator_;
}

void TrackEvents::sync(SliceRow& made, const Parsed& event, TraceLine& line) {
  made.table = Table::kSync;
  const bool on_queue = line.role == TraceLine::Role::kQueue || facts_.queue.device != kUnknown;
  made.track = on_queue ? lines_.queue_track(line, facts_.queue) : track_of(line);
  const int64_t device = facts_.queue.device != kUnknown ? lines_.device(facts_.queue.device, line.machine)
                         : on_queue                      ? line.device
                                                         : 0;
  made.dim = writer_.dimension(row::SyncShape{.kind = event.name.sync, .device = device});
}

void TrackEvents::marker(SliceRow& made, const EventPacket& packet, const Parsed& event, TraceLine& line,
                         bool instant) {
  using Kind = CategoryWords::Kind;
  using event::MarkerKind;
  made.table = Table::kMarker;
  const bool on_queue = event.category.kind == Kind::kDeviceMarker &&
                        (line.role == TraceLine::Role::kQueue || facts_.queue.device != kUnknown);
  made.track = on_queue ? lines_.queue_track(line, facts_.queue) : track_of(line);
  const MarkerKind kind = instant                                 ? MarkerKind::kMark
                          : line.role == TraceLine::Role::kThread ? MarkerKind::kPushPop
                                                                  : MarkerKind::kStartStop;
  // A category of no meaning to tacho stays the marker's; "marker_api" says only that it is one.
  const bool ours = event.category.kind == Kind::kMarker || event.category.kind == Kind::kCall;
  const int64_t category = facts_.category != 0 ? facts_.category : ours ? 0 : event.category.text;
  made.dim = label(event.name.text, kind, facts_, category);
  made.number = facts_.payload;
  if (made.correlation == 0 && !flows_.empty()) {
    made.correlation = ++next_marker_;
    for (const uint64_t flow : flows_) flow_ends_.add({flow, packet.time, ++order_, line.process, made.correlation});
  }
}

// The row of a slice or point; facts_ holds what its annotations say.
SliceRow TrackEvents::row_of(const EventPacket& packet, Parsed& event, TraceLine& line, bool instant) {
  using Kind = CategoryWords::Kind;
  SliceRow made;
  made.start = packet.time;
  made.unfinished = facts_.open_at_exit || facts_.end_not_recorded;
  const Kind kind = event.category.kind;
  const bool marks = kind == Kind::kOther || kind == Kind::kMarker || kind == Kind::kDeviceMarker ||
                     (kind == Kind::kCall && event.category.domain == Domain::kMarker);
  if (facts_.correlation > 0)
    made.correlation = facts_.correlation;
  else if (event.has_submission)
    made.correlation = of_submission(event.submission);
  else if (!flows_.empty() && !marks && event.category.domain != Domain::kOperator)
    made.correlation = kOfFlows | static_cast<int64_t>(TraceLines::made_uuid(3, flows_.back()) & kLowBits);
  if (!event.has_name) ++without_name_;
  if (marks) {
    marker(made, packet, event, line, instant);
    return made;
  }
  switch (kind) {
    case Kind::kDispatch:
      dispatch(made, event, line);
      break;
    case Kind::kCopy:
      copy(made, event, line);
      break;
    case Kind::kFill:
      fill(made, line);
      break;
    case Kind::kSync:
      sync(made, event, line);
      break;
    case Kind::kOverhead: {
      made.table = Table::kOverhead;
      made.track = track_of(line);
      made.dim = writer_.dimension(row::OverheadShape{.kind = event::OverheadKind::kProfiler, .name = event.name.text});
      break;
    }
    default:
      call(made, event, line);
      break;
  }
  return made;
}

void TrackEvents::begin(const EventPacket& packet, Parsed& event, uint32_t line, bool unsorted) {
  annotations(packet);
  pairs_.begin(line, unsorted, row_of(packet, event, lines_.resolved(line, packet.trusted_pid), false));
}

// duration: kUnknown = it is a point.
void TrackEvents::instant(const EventPacket& packet, Parsed& event, uint32_t line, int64_t duration) {
  annotations(packet);
  const bool point = duration == kUnknown;
  const SliceRow made = row_of(packet, event, lines_.resolved(line, packet.trusted_pid), point);
  rows_.add(made, point && made.table == Table::kMarker ? 0 : duration);
}

void TrackEvents::count(uint32_t number, int64_t time, double value, int64_t trusted_pid) {
  TraceLine& line = lines_.resolved(number, trusted_pid);
  value *= static_cast<double>(line.multiplier);
  if (line.incremental) value += line.level;
  const double change = value - line.level;
  line.level = value;
  switch (line.role == TraceLine::Role::kCounter ? line.counts : TraceLine::Counts::kReadings) {
    case TraceLine::Counts::kCopyLevels:
      return;  // the copies themselves say it
    case TraceLine::Counts::kAllocationLevels:
      if (line.track == 0) line.track = lines_.range_track(line.process, "allocations");
      return rows_.allocation(line.track, line.device, time, change);
    case TraceLine::Counts::kOfDispatches:
      return rows_.dispatch_counter(line.process, line.device, time, line.counter, value);
    case TraceLine::Counts::kReadings:
      break;
  }
  if (line.role != TraceLine::Role::kCounter) {
    // A value on a track that no descriptor makes a counter's.
    line.role = TraceLine::Role::kCounter;
    line.track = tracker_.counter_track({.process = line.process, .name = line.name.empty() ? "counter" : line.name});
  }
  writer_.add(row::Reading{.track = line.track, .start = time, .value = std::bit_cast<int64_t>(value)});
}

void TrackEvents::extra_value(double value) {
  if (values_.size() < kMostExtras)
    values_.push_back(value);
  else
    ++extras_left_out_;
}

// Values of other counters that an event brings along: "thread time" and the like.
void TrackEvents::extra_counters(const EventPacket& packet, std::string_view message) {
  for (const bool real : {false, true}) {
    values_.clear();
    uuids_.clear();
    for (WireFields field(message); field.next();) {
      if (field.number() == (real ? event_extra_double_tracks : event_extra_tracks))
        field.each_number([&](uint64_t uuid) {
          if (uuids_.size() < kMostExtras) uuids_.push_back(uuid);
        });
      if (real && field.number() == event_extra_doubles)
        field.each_fixed([&](uint64_t bits) { extra_value(std::bit_cast<double>(bits)); });
      if (!real && field.number() == event_extra_values)
        field.each_number([&](uint64_t value) { extra_value(static_cast<double>(static_cast<int64_t>(value))); });
    }
    if (uuids_.empty() && packet.defaults != nullptr)
      uuids_ = real ? packet.defaults->double_counters : packet.defaults->counters;
    for (size_t i = 0; i < std::min(values_.size(), uuids_.size()); ++i)
      if (const uint32_t line = lines_.number(uuids_[i]); line != UINT32_MAX)
        count(line, packet.time, values_[i], packet.trusted_pid);
  }
}

// Phases of Chrome's own events.
void TrackEvents::legacy(const EventPacket& packet, Parsed& event, uint32_t line) {
  const auto asynchronous = [&] {
    // One line for all slices of an id; it belongs to the process of the thread.
    uint64_t id = event.legacy_id ^ event.legacy_scope;
    if (event.legacy_id_is_local) {
      const int64_t process = lines_.resolved(line, packet.trusted_pid).process;
      id = TraceLines::made_uuid(5, id, static_cast<uint64_t>(process));
    }
    const uint64_t uuid = TraceLines::made_uuid(2, id, static_cast<uint64_t>(event.category.text));
    const uint64_t parent = lines_.line(line).uuid;
    const uint32_t number = lines_.number(uuid);
    if (number != UINT32_MAX && lines_.line(number).role == TraceLine::Role::kUnresolved) {
      lines_.line(number).parent = parent;
      lines_.line(number).name = "asynchronous";
    }
    return number;
  };
  switch (event.legacy_phase) {
    case 'B':
      return begin(packet, event, line, lines_.line(line).unsorted);
    case 'E':
      return pairs_.end(line, lines_.line(line).unsorted, packet.time);
    case 'X': {
      int64_t ns = 0;
      if (event.legacy_duration_us < 0 || __builtin_mul_overflow(event.legacy_duration_us, int64_t{1000}, &ns))
        return writer_.lose(0, Table::kMarker, LossReason::kBadInput, 1);
      return instant(packet, event, line, ns);
    }
    case 'b':
    case 'S':
      if (const uint32_t own = asynchronous(); own != UINT32_MAX) begin(packet, event, own, true);
      return;
    case 'e':
    case 'F':
      if (const uint32_t own = asynchronous(); own != UINT32_MAX) pairs_.end(own, true, packet.time);
      return;
    case 'i':
    case 'I':
    case 'R':
    case 'n':
    case 'T':
    case 'p':
      return instant(packet, event, line, kUnknown);
    case 0:
    case 's':
    case 't':
    case 'f':
      return;  // arrows: their ends are flow ids, too
    default:
      tracker_.unread("events of old phases");
  }
}

void TrackEvents::take(const EventPacket& packet, std::string_view message) {
  uint64_t ended = 0;
  if (is_pair(message, event_type, static_cast<char>(EventType::kEnd), event_track, ended) && packet.time != kUnknown)
    if (const uint32_t line = lines_.number(ended); line != UINT32_MAX)
      return pairs_.end(line, lines_.line(line).unsorted, packet.time);
  Parsed event;
  parse(packet, message, event);
  if (packet.time == kUnknown)
    return writer_.lose(0, event.type == EventType::kCounter ? Table::kReading : Table::kMarker, LossReason::kBadInput,
                        1);
  uint64_t uuid = event.track;
  if (!event.has_track)
    uuid = packet.defaults != nullptr && packet.defaults->track != 0 ? packet.defaults->track : packet.thread_uuid;
  uint32_t line = lines_.number(uuid);
  if (event.legacy_tid != kUnknown) {
    line = lines_.number(
        TraceLines::made_uuid(1, static_cast<uint64_t>(event.legacy_pid), static_cast<uint64_t>(event.legacy_tid)));
    if (line != UINT32_MAX && lines_.line(line).role == TraceLine::Role::kUnresolved) {
      TraceLine& made = lines_.line(line);
      made.has_thread = made.unsorted = true;
      made.pid = static_cast<int32_t>(event.legacy_pid != kUnknown ? event.legacy_pid : packet.trusted_pid);
      made.tid = static_cast<int32_t>(event.legacy_tid);
      made.machine = packet.machine;
    }
  }
  if (line == UINT32_MAX) {
    ++too_many_lines_;
    return;
  }
  switch (event.type) {
    case EventType::kBegin:
      begin(packet, event, line, lines_.line(line).unsorted);
      break;
    case EventType::kEnd:
      pairs_.end(line, lines_.line(line).unsorted, packet.time);
      break;
    case EventType::kInstant:
      instant(packet, event, line, kUnknown);
      break;
    case EventType::kCounter:
      if (event.has_int || event.has_double)
        count(line, packet.time, event.has_double ? event.counter_double : static_cast<double>(event.counter_int),
              packet.trusted_pid);
      else
        writer_.lose(0, Table::kReading, LossReason::kBadInput, 1);
      break;
    case EventType::kLegacy:
      legacy(packet, event, line);
      break;
    default:
      tracker_.unread("track events of other types");
  }
  if (event.has_extra) extra_counters(packet, message);
}

// Two markers of one flow, one after the other, are a cause and its effect.
Status TrackEvents::flows() {
  TACHO_TRY(flow_ends_.finish());
  FlowEnd before{}, end{};
  bool any = false;
  while (flow_ends_.next(end)) {
    if (any && before.flow == end.flow && before.process == end.process)
      writer_.add(row::Link{
          .kind = event::LinkKind::kFlow, .process = end.process, .from = before.correlation, .to = end.correlation});
    before = end;
    any = true;
  }
  return {};
}

Status TrackEvents::finish() {
  TACHO_TRY(pairs_.finish());
  TACHO_TRY(flows());
  if (without_name_ > 0)
    writer_.note(0, event::NoteSeverity::kInfo,
                 fmt::format("{} event{} no name, or one that the file does not define", without_name_,
                             without_name_ == 1 ? " has" : "s have"));
  if (left_out_ > 0) {
    writer_.note(0, event::NoteSeverity::kWarning,
                 fmt::format("events have more flows than tacho keeps of one: {} were left out", left_out_));
    writer_.lose(0, Table::kMarker, LossReason::kBadInput, static_cast<int64_t>(left_out_));
  }
  if (extras_left_out_ > 0) {
    writer_.note(
        0, event::NoteSeverity::kWarning,
        fmt::format("events have more values of counters than tacho keeps of one: {} were left out", extras_left_out_));
    writer_.lose(0, Table::kReading, LossReason::kBadInput, static_cast<int64_t>(extras_left_out_));
  }
  if (annotations_left_out_ > 0) {
    writer_.note(
        0, event::NoteSeverity::kWarning,
        fmt::format("events have more annotations than tacho reads of one: {} were left out", annotations_left_out_));
    writer_.lose(0, Table::kMarker, LossReason::kBadInput, static_cast<int64_t>(annotations_left_out_));
  }
  if (too_many_lines_ > 0)
    writer_.lose(0, Table::kMarker, LossReason::kBadInput, static_cast<int64_t>(too_many_lines_));
  return {};
}

}  // namespace tacho::format::perfetto
