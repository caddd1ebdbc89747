// Reads the fields of track events (track_events.h).
#include <algorithm>
#include <charconv>

#include "base/format.h"
#include "format/perfetto/read/track_events.h"
#include "format/perfetto/wire.h"

namespace tacho::format::perfetto {

using event::kUnknown;

namespace {

// The whole number that a text is; kUnknown for others.
int64_t number_of(std::string_view text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end && !text.empty() ? number : kUnknown;
}

// "(64,1,1)" into three numbers.
void put_shape(int64_t (&shape)[3], std::string_view text) {
  int64_t numbers[3];
  if (!text.starts_with('(')) return;
  const char *at = text.data() + 1, *const end = text.data() + text.size();
  for (int64_t& number : numbers) {
    const auto [stop, error] = std::from_chars(at, end, number);
    if (error != std::errc() || stop == end || (*stop != ',' && *stop != ')')) return;
    at = stop + 1;
  }
  std::copy(std::begin(numbers), std::end(numbers), std::begin(shape));
}

// The fact that is a number and nothing else; nullptr for other keys.
int64_t* plain_number(EventFacts& facts, FactKey key) {
  switch (key) {
    case FactKey::kCorrelation:
      return &facts.correlation;
    case FactKey::kDispatchId:
      return &facts.dispatch_id;
    case FactKey::kGraph:
      return &facts.graph;
    case FactKey::kGraphNode:
      return &facts.graph_node;
    case FactKey::kContext:
      return &facts.queue.context;
    case FactKey::kQueue:
      return &facts.queue.queue;
    case FactKey::kStream:
      return &facts.queue.stream;
    case FactKey::kTid:
      return &facts.queue.tid;
    case FactKey::kScratch:
      return &facts.scratch;
    case FactKey::kSharedAll:
      return &facts.shared_all;
    case FactKey::kSharedStatic:
      return &facts.shared_static;
    case FactKey::kSharedDynamic:
      return &facts.shared_dynamic;
    case FactKey::kRegisters:
      return &facts.registers;
    case FactKey::kAccumRegisters:
      return &facts.accum_registers;
    case FactKey::kScalarRegisters:
      return &facts.scalar_registers;
    case FactKey::kBytes:
      return &facts.bytes;
    case FactKey::kResult:
      return &facts.result;
    default:
      return nullptr;
  }
}

}  // namespace

void put_collective(EventFacts& facts, std::string_view name, std::string_view value) {
  constexpr size_t kLongest = 4096;
  if (value.empty() || facts.collective.size() > kLongest) return;
  if (!facts.collective.empty()) facts.collective += ", ";
  facts.collective.append(name).append("=").append(value.substr(0, kLongest));
}

void put_fact(EventFacts& facts, FactKey key, const FactValue& value, trace::TraceWriter& writer) {
  const int64_t number = value.is_number ? value.number : number_of(value.text);
  const auto row = [&] { return value.row != 0 ? value.row : writer.string(value.text); };
  const auto agent = [&](AgentLabel& label) {
    if (value.agent.word != AgentLabel::Word::kNone)
      label = value.agent;
    else if (value.is_number)
      label = {AgentLabel::Word::kAgent, value.number};
    else
      label = agent_label(value.text);
  };
  if (int64_t* const plain = plain_number(facts, key)) {
    *plain = number;
    return;
  }
  switch (key) {
    case FactKey::kArguments:
      facts.arguments = row();
      return;
    case FactKey::kDomain:
      facts.domain = row();
      return;
    case FactKey::kCategory:
      facts.category = row();
      return;
    case FactKey::kAgent:
      return agent(facts.queue.agent);
    case FactKey::kSourceAgent:
      return agent(facts.source);
    case FactKey::kTargetAgent:
      return agent(facts.target);
    case FactKey::kAgentType:
      facts.queue.cpu_agent = value.cpu || value.text == "CPU";
      return;
    case FactKey::kDevice:
      facts.queue.device = number >= 0 ? number : kUnknown;
      return;
    case FactKey::kGroup:
      return put_shape(facts.group, value.text);
    case FactKey::kGrid:
      return put_shape(facts.grid, value.text);
    case FactKey::kPayload:
      facts.payload_is_real = value.is_real;
      facts.payload = value.is_real ? std::bit_cast<int64_t>(value.real) : number;
      return;
    case FactKey::kOpenAtExit:
      facts.open_at_exit = number != 0;
      return;
    case FactKey::kEndNotRecorded:
      facts.end_not_recorded = number != 0;
      return;
    default:
      return;  // kinds of memory and the like, which their readers take themselves
  }
}

void TrackEvents::annotation(const EventPacket& packet, std::string_view message) {
  FactKey key = FactKey::kNone;
  std::string_view name;
  FactValue value;
  int64_t array[3];
  size_t elements = 0;
  for (WireFields field(message); field.next();) {
    switch (field.number()) {
      case annotation_name_iid:
        if (packet.interned != nullptr)
          if (const FactName* const found = packet.interned->annotation_names.find(field.value())) {
            key = found->key;
            name = found->text;
          }
        if (key == FactKey::kNone) return;
        break;
      case annotation_name:
        name = field.bytes();
        key = fact_key(name);
        if (key == FactKey::kNone) return;
        break;
      case annotation_bool:
      case annotation_uint:
      case annotation_int:
      case annotation_pointer:
        value.is_number = true;
        value.number = field.signed_value();
        break;
      case annotation_double:
        value.is_number = value.is_real = true;
        value.real = field.real();
        value.number = value.real >= -9e15 && value.real <= 9e15 ? static_cast<int64_t>(value.real) : kUnknown;
        break;
      case annotation_string:
      case annotation_json:
        value.text = field.bytes();
        break;
      case annotation_string_iid:
        if (packet.interned == nullptr) break;
        if (const AnnotationText* const text = packet.interned->annotation_texts.find(field.value())) {
          value.row = text->text;
          value.agent = text->agent;
          value.cpu = text->cpu;
        }
        break;
      case annotation_array:
        for (WireFields inner(field.bytes()); inner.next();)
          if ((inner.number() == annotation_int || inner.number() == annotation_uint) && elements < 3)
            array[elements++] = inner.signed_value();
        break;
      default:
        break;
    }
  }
  facts_used_ = true;
  if (key == FactKey::kCollective)
    return put_collective(facts_, name, value.is_number ? std::string_view(std::to_string(value.number)) : value.text);
  if (elements == 3) {
    // Kineto's, in workgroups.
    if (key == FactKey::kGrid) {
      std::copy(std::begin(array), std::end(array), std::begin(facts_.grid));
      facts_.grid_in_items = false;
    }
    if (key == FactKey::kGroup) std::copy(std::begin(array), std::end(array), std::begin(facts_.group));
    return;
  }
  put_fact(facts_, key, value, writer_);
}

void TrackEvents::annotations(const EventPacket& packet) {
  if (facts_used_) facts_ = {};
  facts_used_ = false;
  for (const std::string_view message : annotations_) annotation(packet, message);
}

// The first category that tacho knows, else the first one.
void TrackEvents::parse_category(const CategoryWords& words, Parsed& event) {
  using Kind = CategoryWords::Kind;
  if (event.category.text == 0 || (event.category.kind == Kind::kOther && words.kind != Kind::kOther))
    event.category = words;
}

void TrackEvents::parse_legacy(const EventPacket& packet, std::string_view message, Parsed& event) {
  for (WireFields field(message); field.next();) {
    switch (field.number()) {
      case legacy_name_iid:
        if (!event.has_name && packet.interned != nullptr)
          if (const EventName* const name = packet.interned->names.find(field.value())) {
            event.name = *name;
            event.has_name = true;
          }
        break;
      case legacy_phase:
        event.legacy_phase = static_cast<uint32_t>(field.value());
        break;
      case legacy_duration_us:
        event.legacy_duration_us = field.signed_value();
        break;
      case legacy_unscoped_id:
      case legacy_local_id:
      case legacy_global_id:
        event.legacy_id = TraceLines::made_uuid(field.number(), field.value());
        event.has_legacy_id = true;
        event.legacy_id_is_local = field.number() == legacy_local_id;
        break;
      case legacy_scope:
        event.legacy_scope = std::hash<std::string_view>()(field.bytes());
        break;
      case legacy_pid:
        event.legacy_pid = static_cast<int32_t>(field.value());
        break;
      case legacy_tid:
        event.legacy_tid = static_cast<int32_t>(field.value());
        break;
      default:
        break;
    }
  }
}

void TrackEvents::parse_flow(uint64_t flow) {
  if (std::find(flows_.begin(), flows_.end(), flow) != flows_.end()) return;
  if (flows_.size() < kMostFlows)
    flows_.push_back(flow);
  else
    ++left_out_;
}

void TrackEvents::parse(const EventPacket& packet, std::string_view message, Parsed& event) {
  event = {};
  event.legacy_duration_us = event.legacy_pid = event.legacy_tid = kUnknown;
  annotations_.clear();
  flows_.clear();
  for (WireFields field(message); field.next();) {
    switch (field.number()) {
      case event_type:
        event.type = static_cast<EventType>(field.value());
        break;
      case event_track:
        event.track = field.value();
        event.has_track = true;
        break;
      case event_annotations:
        if (!field.is_bytes()) break;
        if (annotations_.size() < kMostAnnotations)
          annotations_.push_back(field.bytes());
        else
          ++annotations_left_out_;
        break;
      case event_name_iid:
        if (packet.interned != nullptr)
          if (const EventName* const name = packet.interned->names.find(field.value())) {
            event.name = *name;
            event.has_name = true;
          }
        break;
      case perfetto::event_name:
        event.name = name_words(field.bytes());
        event.name.text = writer_.string(field.bytes());
        event.has_name = true;
        break;
      case event_category_iids:
        if (packet.interned != nullptr)
          field.each_number([&](uint64_t iid) {
            if (const CategoryWords* const words = packet.interned->categories.find(iid)) parse_category(*words, event);
          });
        break;
      case event_categories: {
        CategoryWords words = category_words(field.bytes());
        words.text = writer_.string(field.bytes());
        parse_category(words, event);
        break;
      }
      case event_counter_value:
        event.counter_int = field.signed_value();
        event.has_int = true;
        break;
      case event_double_value:
        event.counter_double = field.real();
        event.has_double = true;
        break;
      case event_flow_ids:
      case event_flow_ends:
        field.each_fixed([&](uint64_t flow) { parse_flow(flow); });
        break;
      case event_old_flows:
      case event_old_ends:
        field.each_number([&](uint64_t flow) { parse_flow(flow); });
        break;
      case event_gpu_correlation:
        for (WireFields inner(field.bytes()); inner.next();)
          if (inner.number() == gpu_correlation_submissions && !event.has_submission)
            inner.each_number([&](uint64_t id) {
              if (!event.has_submission) event.submission = id;
              event.has_submission = true;
            });
        break;
      case event_extra_values:
      case event_extra_doubles:
        event.has_extra = true;
        break;
      case event_legacy:
        parse_legacy(packet, field.bytes(), event);
        break;
      default:
        break;
    }
  }
}

}  // namespace tacho::format::perfetto
