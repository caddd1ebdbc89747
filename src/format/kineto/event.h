// One event of a Chrome trace, with the members that tacho uses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "event/schema.h"
#include "format/json/tokens.h"

namespace tacho::format::kineto {

using json::JsonOutcome;
using json::JsonTokens;

/// An id that may be a number or text ("Spans").
struct Id {
  int64_t number = 0;
  std::string_view text;  // if it is no number
  bool given = false;
};

struct Event {
  std::string_view phase;
  std::string_view name, category, scope;
  Id process, thread, id;
  bool global_id = false;              // id2.global: unique in the whole file
  bool any_member = false;             // "{}" has none
  bool any_argument = false;           // args has members
  std::string_view text;               // the whole event
  bool holds_document = false;         // no event, but an object with traceEvents: parse_event() stopped there
  int64_t time = event::kUnknown;      // ns
  int64_t duration = event::kUnknown;  // ns
  // args
  int64_t correlation = event::kUnknown, external = event::kUnknown, device = event::kUnknown,
          context = event::kUnknown, stream = event::kUnknown, bytes = event::kUnknown, registers = event::kUnknown,
          shared = event::kUnknown, private_bytes = event::kUnknown, address = event::kUnknown,
          device_type = event::kUnknown, sequence = event::kUnknown, device_id = event::kUnknown,
          graph_node = event::kUnknown, graph = event::kUnknown, priority = event::kUnknown,
          from_device = event::kUnknown, to_device = event::kUnknown, rank = event::kUnknown,
          hsa_queue = event::kUnknown, python_id = event::kUnknown, total_allocated = event::kUnknown,
          total_reserved = event::kUnknown;
  int64_t occupancy = event::kUnknown;                                     // percent()
  int64_t grid[3] = {event::kUnknown, event::kUnknown, event::kUnknown};   // workgroups
  int64_t block[3] = {event::kUnknown, event::kUnknown, event::kUnknown};  // work-items
  std::string_view label, kind, description;        // args.name or args.labels of metadata, args.kind, args.desc
  std::string_view kernel_details, memcpy_details;  // of XLA: "regs:32 grid:8,1,1 block:128,1,1"
  std::string_view arguments;                       // of a call or a kernel, as tacho writes them
  std::string_view end;                             // likewise: "not recorded" of what was open when recording ended
  // What torch.distributed tells about the collective that a kernel carries out.
  struct Collective {
    std::string_view name, type, in_split, out_split, group, group_description, members, sequence, communicator;
    int64_t in_elements = event::kUnknown, out_elements = event::kUnknown, group_size = event::kUnknown;
  } collective;
  // What torch.profiler tells about an operator's inputs, as JSON.
  struct Inputs {
    std::string_view dims, types, strides, concrete;
  } inputs;
  // Texts among the args of device work that have no meaning here, as JSON: where the work is a graph's, these are
  // the annotations that torch.cuda.graph_annotations adds to its nodes.
  struct Annotation {
    std::string_view name, value;
  };
  std::vector<Annotation> annotations;
  // Numbers among the args of counters and profiler ranges.
  struct Value {
    std::string_view name;
    double value;
  };
  std::vector<Value> values;
  int64_t bad_values = 0, surplus_values = 0;  // args of counters that are no numbers, or more than values holds
  int64_t place = 0;                           // in its file, from 1; 0 = not known any more

  // Texts that contained escapes.
  std::string buffers[10];
  size_t buffers_used = 0;
};

/// The cell of a percentage, the bit pattern of a double. False if the text is no number from 0 to 100.
bool percent(std::string_view text, int64_t& cell);

/// Parses the event object at the reader's place into `event` (cleared first). kBad: json.what() says why.
JsonOutcome parse_event(JsonTokens& json, Event& event);

}  // namespace tacho::format::kineto
