// Parses event objects (event.h).
#include "format/kineto/event.h"

#include <bit>

namespace tacho::format::kineto {

using json::integer;
using json::is;
using json::real;
using json::thousandfold;
namespace {

#define KINETO_TRY(expression)                                                                    \
  do {                                                                                            \
    if (const JsonOutcome outcome_ = (expression); outcome_ != JsonOutcome::kOk) return outcome_; \
  } while (0)

// A text, or the characters of a number or a truth value; null is none.
JsonOutcome text_value(JsonTokens& json, Event& event, std::string_view& text) {
  if (const char c = json.peek(); c != '"') {
    if (c == '{' || c == '[') return json.skip();
    KINETO_TRY(json.word(text));
    if (text == "null") text = {};
    return JsonOutcome::kOk;
  }
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

// The JSON of a value, whatever it is.
JsonOutcome json_value(JsonTokens& json, std::string_view& text) {
  json.skip_space();
  const char* const start = json.at();
  KINETO_TRY(json.skip());
  text = {start, static_cast<size_t>(json.at() - start)};
  return JsonOutcome::kOk;
}

// The value of a counter's series: a number, also in quotes, or a truth value. null is none.
JsonOutcome counter_value(JsonTokens& json, Event& event, std::string_view key) {
  std::string_view text;
  bool escaped;
  KINETO_TRY(json.peek() == '"' ? json.raw_string(text, escaped) : json.word(text));
  double value = text == "true" ? 1 : 0;
  if (text == "null" || text.empty()) return JsonOutcome::kOk;
  if (text != "true" && text != "false" && !real(text, value)) {
    ++event.bad_values;
    return JsonOutcome::kOk;
  }
  if (event.values.size() < 4096)
    event.values.push_back({key, value});
  else
    ++event.surplus_values;
  return JsonOutcome::kOk;
}

// A text that is nothing else may be an annotation of a graph's node.
JsonOutcome annotation(JsonTokens& json, Event& event, std::string_view key) {
  constexpr size_t kMost = 64;
  // Texts that profilers write themselves.
  if (is(key, "memory bandwidth (GB/s)") || is(key, "limitingFactors") || is(key, "end") || is(key, "src") ||
      is(key, "dst") || is(key, "kernel") || is(key, "ptr"))
    return json.skip();
  std::string_view value;
  KINETO_TRY(json_value(json, value));
  if (event.annotations.size() < kMost) event.annotations.push_back({key, value});
  return JsonOutcome::kOk;
}

// What args of an event hold beside the known ones.
enum class Others : uint8_t { kNothing, kNumbers, kAnnotations };

JsonOutcome argument(JsonTokens& json, Event& event, std::string_view key, Others others) {
  switch (key.size()) {
    case 3:
      if (is(key, "Seq")) return text_value(json, event, event.collective.sequence);
      if (is(key, "end") && others != Others::kNumbers) return text_value(json, event, event.end);
      break;
    case 4:
      if (is(key, "grid")) return triple(json, event.grid);
      if (is(key, "kind")) return text_value(json, event, event.kind);
      if (is(key, "name") && others == Others::kAnnotations) break;
      if (is(key, "name")) return text_value(json, event, event.label);
      if (is(key, "Addr")) return number_value(json, integer, event.address);
      if (is(key, "desc")) return text_value(json, event, event.description);
      if (is(key, "Rank")) return number_value(json, integer, event.rank);
      break;
    case 5:
      if (is(key, "dtype")) return text_value(json, event, event.collective.type);
      if (is(key, "block")) return triple(json, event.block);
      if (is(key, "queue")) return number_value(json, integer, event.hsa_queue);
      if (is(key, "bytes") || is(key, "Bytes")) return number_value(json, integer, event.bytes);
      break;
    case 6:
      if (is(key, "device")) return number_value(json, integer, event.device);
      if (is(key, "stream")) return number_value(json, integer, event.stream);
      if (is(key, "labels")) return text_value(json, event, event.label);
      break;
    case 7:
      if (is(key, "context")) return number_value(json, integer, event.context);
      break;
    case 8:
      if (is(key, "priority")) return number_value(json, integer, event.priority);
      if (is(key, "graph id")) return number_value(json, integer, event.graph);
      if (is(key, "toDevice")) return number_value(json, integer, event.to_device);
      if (is(key, "Comms Id")) return text_value(json, event, event.collective.communicator);
      break;
    case 9:
      if (is(key, "Python id")) return number_value(json, integer, event.python_id);
      if (is(key, "Device Id")) return number_value(json, integer, event.device_id);
      if (is(key, "arguments")) return text_value(json, event, event.arguments);
      if (is(key, "hsa_queue")) return number_value(json, integer, event.hsa_queue);
      if (is(key, "on stream")) return number_value(json, integer, event.stream);  // tacho's own, of ranges
      break;
    case 10:
      if (is(key, "Group size")) return number_value(json, integer, event.collective.group_size);
      if (is(key, "fromDevice")) return number_value(json, integer, event.from_device);
      if (is(key, "Input Dims")) return json_value(json, event.inputs.dims);
      if (is(key, "Input type")) return json_value(json, event.inputs.types);
      if (is(key, "sycl queue")) return number_value(json, integer, event.stream);
      break;
    case 11:
      if (is(key, "correlation")) return number_value(json, integer, event.correlation);
      if (is(key, "External id") || is(key, "external id")) return number_value(json, integer, event.external);
      if (is(key, "Device Type")) return number_value(json, integer, event.device_type);
      break;
    case 13:
      if (is(key, "Input Strides")) return json_value(json, event.inputs.strides);
      if (is(key, "In split size")) return text_value(json, event, event.collective.in_split);
      if (is(key, "shared memory")) return number_value(json, integer, event.shared);
      if (is(key, "In msg nelems")) return number_value(json, integer, event.collective.in_elements);
      if (is(key, "graph node id")) return number_value(json, integer, event.graph_node);
      break;
    case 14:
      if (is(key, "correlation_id")) return number_value(json, integer, event.correlation);
      if (is(key, "kernel_details")) return text_value(json, event, event.kernel_details);
      if (is(key, "Out split size")) return text_value(json, event, event.collective.out_split);
      if (is(key, "private memory")) return number_value(json, integer, event.private_bytes);
      if (is(key, "memcpy_details")) return text_value(json, event, event.memcpy_details);
      if (is(key, "Total Reserved")) return number_value(json, integer, event.total_reserved);
      if (is(key, "Out msg nelems")) return number_value(json, integer, event.collective.out_elements);
      break;
    case 15:
      if (is(key, "Concrete Inputs")) return json_value(json, event.inputs.concrete);
      if (is(key, "Collective name")) return text_value(json, event, event.collective.name);
      if (is(key, "Total Allocated")) return number_value(json, integer, event.total_allocated);
      if (is(key, "Sequence number")) return number_value(json, integer, event.sequence);
      break;
    case 18:
      if (is(key, "Process Group Name")) return text_value(json, event, event.collective.group);
      break;
    case 19:
      if (is(key, "Process Group Ranks")) return text_value(json, event, event.collective.members);
      break;
    case 20:
      if (is(key, "registers per thread")) return number_value(json, integer, event.registers);
      break;
    case 25:
      if (is(key, "est. achieved occupancy %")) return number_value(json, percent, event.occupancy);
      if (is(key, "Process Group Description")) return text_value(json, event, event.collective.group_description);
      break;
    default:
      break;
  }
  const char c = json.peek();
  if (c == '"' && others == Others::kAnnotations) return annotation(json, event, key);
  if (others != Others::kNumbers || c == '{' || c == '[') return json.skip();
  return counter_value(json, event, key);
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
  event.phase = event.name = event.category = event.scope = event.label = event.kind = event.description =
      event.kernel_details = event.memcpy_details = event.arguments = event.end = {};
  event.collective = {};
  event.inputs = {};
  event.global_id = event.any_member = event.any_argument = event.holds_document = false;
  event.process = event.thread = event.id = Id{};
  event.time = event.duration = event::kUnknown;
  event.correlation = event.external = event.device = event.context = event.stream = event.bytes = event.registers =
      event.shared = event.private_bytes = event.address = event.device_type = event.sequence = event.device_id =
          event.graph_node = event.graph = event.priority = event.from_device = event.to_device = event.rank =
              event.hsa_queue = event.python_id = event.occupancy = event.total_allocated = event.total_reserved =
                  event::kUnknown;
  for (int i = 0; i < 3; ++i) event.grid[i] = event.block[i] = event::kUnknown;
  event.values.clear();
  event.annotations.clear();
  event.bad_values = event.surplus_values = event.place = 0;
  event.buffers_used = 0;
}

}  // namespace

bool percent(std::string_view text, int64_t& cell) {
  double value = 0;
  if (!real(text, value) || !(value >= 0 && value <= 100)) return false;
  cell = std::bit_cast<int64_t>(value);
  return true;
}

JsonOutcome parse_event(JsonTokens& json, Event& event) {
  clear(event);
  return object(json, [&](std::string_view key) {
    event.any_member = true;
    switch (key.size()) {
      case 2:
        if (is(key, "ph")) return text_value(json, event, event.phase);
        if (is(key, "ts")) return number_value(json, thousandfold, event.time);
        if (is(key, "id")) return id_value(json, event, event.id);
        break;
      case 3:
        if (is(key, "cat")) return text_value(json, event, event.category);
        if (is(key, "pid")) return id_value(json, event, event.process);
        if (is(key, "tid")) return id_value(json, event, event.thread);
        if (is(key, "dur")) return number_value(json, thousandfold, event.duration);
        if (is(key, "id2") && json.peek() == '{')
          return object(json, [&](std::string_view name) {
            event.global_id = name == "global";
            return id_value(json, event, event.id);
          });
        break;
      case 4:
        if (is(key, "name")) return text_value(json, event, event.name);
        if (is(key, "args")) {
          if (json.peek() != '{') return json.skip();
          // Every known tool writes members such as "ph" before the args. If they come later, keeps numbers of all
          // args.
          const Others others =
              event.phase.empty() || event.phase == "C" || event.category == "cuda_profiler_range" ? Others::kNumbers
              : event.category == "kernel" || event.category.starts_with("gpu_mem") ? Others::kAnnotations
                                                                                    : Others::kNothing;
          return object(json, [&](std::string_view name) {
            event.any_argument = true;
            return argument(json, event, name, others);
          });
        }
        break;
      case 5:
        if (is(key, "scope")) return text_value(json, event, event.scope);
        break;
      case 11:
        if (is(key, "traceEvents") && (json.peek() == '[' || json.peek() == '{')) {
          event.holds_document = true;
          return json.bad("an object with traceEvents");
        }
        break;
      default:
        break;
    }
    return json.skip();
  });
}

}  // namespace tacho::format::kineto
