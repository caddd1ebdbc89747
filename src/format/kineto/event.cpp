// Parses event objects (event.h).
#include "format/kineto/event.h"

namespace tacho::format::kineto {

using json::integer;
using json::real;
using json::thousandfold;
namespace {

#define KINETO_TRY(expression)                                                                    \
  do {                                                                                            \
    if (const JsonOutcome outcome_ = (expression); outcome_ != JsonOutcome::kOk) return outcome_; \
  } while (0)

JsonOutcome text_value(JsonTokens& json, Event& event, std::string_view& text) {
  if (json.peek() != '"') return json.skip();
  std::string& buffer =
      event.buffers_used < std::size(event.buffers) ? event.buffers[event.buffers_used] : event.buffers[0];
  KINETO_TRY(json.string(text, buffer));
  if (text.data() == buffer.data() && event.buffers_used + 1 < std::size(event.buffers)) ++event.buffers_used;
  return JsonOutcome::kOk;
}

// A number, or a number in quotes as some tools write it; anything else leaves `value` unchanged.
template <typename Parse, typename T>
JsonOutcome number_value(JsonTokens& json, Parse parse, T& value) {
  std::string_view text;
  const char c = json.peek();
  if (c == '"') {
    bool escaped;
    KINETO_TRY(json.raw_string(text, escaped));
  } else if (c == '{' || c == '[') {
    return json.skip();
  } else {
    KINETO_TRY(json.word(text));
  }
  T parsed{};
  if (parse(text, parsed)) value = parsed;
  return JsonOutcome::kOk;
}

JsonOutcome id_value(JsonTokens& json, Event& event, Id& id) {
  const char c = json.peek();
  std::string_view text;
  id = Id{};
  if (c == '"') {
    KINETO_TRY(text_value(json, event, text));
  } else if (c == '{' || c == '[') {
    return json.skip();
  } else {
    KINETO_TRY(json.word(text));
    if (text == "null") return JsonOutcome::kOk;
  }
  id.given = true;
  if (!integer(text, id.number)) id.text = text;
  return JsonOutcome::kOk;
}

JsonOutcome triple(JsonTokens& json, int64_t (&values)[3]) {
  if (json.peek() != '[') return json.skip();
  json.step();
  for (int i = 0;; ++i) {
    if (json.peek() == ']') break;
    if (i < 3)
      KINETO_TRY(number_value(json, integer, values[i]));
    else
      KINETO_TRY(json.skip());
    if (json.peek() == ',')
      json.step();
    else if (json.peek() != ']')
      return json.at_end() ? JsonOutcome::kMore : json.bad("an array is not closed");
  }
  json.step();
  return JsonOutcome::kOk;
}

JsonOutcome argument(JsonTokens& json, Event& event, std::string_view key, bool numbers) {
  switch (key.size()) {
    case 4:
      if (key == "grid") return triple(json, event.grid);
      if (key == "kind") return text_value(json, event, event.kind);
      if (key == "name") return text_value(json, event, event.label);
      if (key == "Addr") return number_value(json, integer, event.address);
      if (key == "desc") return text_value(json, event, event.description);
      break;
    case 5:
      if (key == "dtype") return text_value(json, event, event.collective.type);
      if (key == "block") return triple(json, event.block);
      if (key == "bytes" || key == "Bytes") return number_value(json, integer, event.bytes);
      break;
    case 6:
      if (key == "device") return number_value(json, integer, event.device);
      if (key == "stream") return number_value(json, integer, event.stream);
      if (key == "labels") return text_value(json, event, event.label);
      break;
    case 7:
      if (key == "context") return number_value(json, integer, event.context);
      break;
    case 9:
      if (key == "Device Id") return number_value(json, integer, event.device_id);
      break;
    case 10:
      if (key == "Group size") return number_value(json, integer, event.collective.group_size);
      break;
    case 11:
      if (key == "correlation") return number_value(json, integer, event.correlation);
      if (key == "External id" || key == "external id") return number_value(json, integer, event.external);
      if (key == "Device Type") return number_value(json, integer, event.device_type);
      break;
    case 13:
      if (key == "shared memory") return number_value(json, integer, event.shared);
      if (key == "In msg nelems") return number_value(json, integer, event.collective.in_elements);
      if (key == "graph node id") return number_value(json, integer, event.graph_node);
      break;
    case 14:
      if (key == "Out msg nelems") return number_value(json, integer, event.collective.out_elements);
      break;
    case 15:
      if (key == "Collective name") return text_value(json, event, event.collective.name);
      if (key == "Sequence number") return number_value(json, integer, event.sequence);
      break;
    case 18:
      if (key == "Process Group Name") return text_value(json, event, event.collective.group);
      break;
    case 19:
      if (key == "Process Group Ranks") return text_value(json, event, event.collective.members);
      break;
    case 20:
      if (key == "registers per thread") return number_value(json, integer, event.registers);
      break;
    case 25:
      if (key == "Process Group Description") return text_value(json, event, event.collective.group_description);
      break;
    default:
      break;
  }
  const char c = json.peek();
  if (!numbers || c == '{' || c == '[') return json.skip();
  double value = __builtin_nan("");
  KINETO_TRY(number_value(json, real, value));
  if (value == value && event.values.size() < 4096) event.values.push_back({key, value});
  return JsonOutcome::kOk;
}

// Calls member(key) for each member of the object at the reader's place.
template <typename Member>
JsonOutcome object(JsonTokens& json, Member member) {
  KINETO_TRY(json.expect('{'));
  if (json.peek() == '}') {
    json.step();
    return JsonOutcome::kOk;
  }
  while (true) {
    std::string_view key;
    bool escaped;
    KINETO_TRY(json.raw_string(key, escaped));
    KINETO_TRY(json.expect(':'));
    KINETO_TRY(member(key));
    const char c = json.peek();
    json.step();
    if (c == '}') return JsonOutcome::kOk;
    if (c != ',') return json.at() > json.end() ? JsonOutcome::kMore : json.bad("a comma or } was expected");
  }
}

void clear(Event& event) {
  event.phase = 0;
  event.name = event.category = event.label = event.kind = event.description = {};
  event.collective = {};
  event.process = event.thread = event.id = Id{};
  event.time = event.duration = event::kUnknown;
  event.correlation = event.external = event.device = event.context = event.stream = event.bytes = event.registers =
      event.shared = event.address = event.device_type = event.sequence = event.device_id = event.graph_node =
          event::kUnknown;
  for (int i = 0; i < 3; ++i) event.grid[i] = event.block[i] = event::kUnknown;
  event.values.clear();
  event.buffers_used = 0;
}

}  // namespace

JsonOutcome parse_event(JsonTokens& json, Event& event) {
  clear(event);
  return object(json, [&](std::string_view key) {
    switch (key.size()) {
      case 2:
        if (key == "ph") {
          std::string_view text;
          KINETO_TRY(text_value(json, event, text));
          event.phase = text.empty() ? '\0' : text.front();
          return JsonOutcome::kOk;
        }
        if (key == "ts") return number_value(json, thousandfold, event.time);
        if (key == "id") return id_value(json, event, event.id);
        break;
      case 3:
        if (key == "cat") return text_value(json, event, event.category);
        if (key == "pid") return id_value(json, event, event.process);
        if (key == "tid") return id_value(json, event, event.thread);
        if (key == "dur") return number_value(json, thousandfold, event.duration);
        break;
      case 4:
        if (key == "name") return text_value(json, event, event.name);
        if (key == "args") {
          if (json.peek() != '{') return json.skip();
          // Every known tool writes members such as "ph" before the args. If they come later, keeps numbers of all
          // args.
          const bool numbers = event.phase == 0 || event.phase == 'C' || event.category == "cuda_profiler_range";
          return object(json, [&](std::string_view name) { return argument(json, event, name, numbers); });
        }
        break;
      default:
        break;
    }
    return json.skip();
  });
}

}  // namespace tacho::format::kineto
