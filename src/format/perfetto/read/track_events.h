// Track events become calls, work, markers, waits and readings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/sorted_file.h"
#include "base/result.h"
#include "format/import/rows.h"
#include "format/import/tracker.h"
#include "format/perfetto/messages.h"
#include "format/perfetto/read/interned.h"
#include "format/perfetto/read/lines.h"
#include "format/perfetto/read/slices.h"
#include "trace/write/writer.h"

namespace tacho::format::perfetto {

/// What a sequence says once for all of its events.
struct EventDefaults {
  uint64_t track = 0;
  std::vector<uint64_t> counters, double_counters;  // uuids
};

/// The packet around an event.
struct EventPacket {
  int64_t time = event::kUnknown;  // trace time, ns
  uint32_t machine = 0, sequence = 0;
  int64_t trusted_pid = 0;
  const InternedData* interned = nullptr;
  const EventDefaults* defaults = nullptr;
  uint64_t thread_uuid = 0;  // of the sequence's own thread
};

/// What the annotations of an event tell. kUnknown and 0 (rows of strings) = nothing.
struct EventFacts {
  int64_t correlation = event::kUnknown, dispatch_id = event::kUnknown, graph = event::kUnknown,
          graph_node = event::kUnknown, bytes = event::kUnknown, result = event::kUnknown, payload = event::kUnknown,
          scratch = event::kUnknown, shared_all = event::kUnknown, shared_static = event::kUnknown,
          shared_dynamic = event::kUnknown, registers = event::kUnknown, accum_registers = event::kUnknown,
          scalar_registers = event::kUnknown;
  int64_t grid[3] = {event::kUnknown, event::kUnknown, event::kUnknown};
  int64_t group[3] = {event::kUnknown, event::kUnknown, event::kUnknown};
  bool grid_in_items = true, payload_is_real = false, open_at_exit = false, end_not_recorded = false;
  int64_t arguments = 0, domain = 0, category = 0;  // rows of strings
  AgentLabel source, target;
  QueueFacts queue;
  std::string collective;
};

class TrackEvents {
 public:
  TrackEvents(trace::TraceWriter& writer, imported::ImportTracker& tracker, TraceLines& lines, SliceRows& rows)
      : writer_(writer), tracker_(tracker), lines_(lines), rows_(rows), pairs_(writer, rows) {}
  void take(const EventPacket& packet, std::string_view message);
  Status finish();

  /// The correlation of a call without one of its own, by the first event of the GPU that it caused.
  static int64_t of_submission(uint64_t event_id) { return kSubmissions | static_cast<int64_t>(event_id & kLowBits); }
  /// A kernel's row.
  int64_t kernel(int64_t name, const EventFacts& facts, event::DispatchKind kind = event::DispatchKind::kKernel);
  int64_t label(int64_t name, event::MarkerKind kind, const EventFacts& facts, int64_t category);

 private:
  static constexpr size_t kMostFlows = 64, kMostExtras = 64, kMostAnnotations = 4096;  // of an event
  static constexpr int64_t kLowBits = (int64_t{1} << 44) - 1;
  // Correlations that the file does not have, above those that vendors count from 1.
  static constexpr int64_t kSubmissions = int64_t{1} << 47, kOfFlows = int64_t{1} << 46, kOfMarkers = int64_t{1} << 45,
                           kOperators = int64_t{1} << 48;
  struct Parsed {
    EventType type;
    bool has_track, has_int, has_double, has_submission, has_name, has_extra;
    uint64_t track;
    int64_t counter_int;
    double counter_double;
    uint64_t submission;
    EventName name;
    CategoryWords category;
    uint32_t legacy_phase;
    int64_t legacy_duration_us;
    uint64_t legacy_id, legacy_scope;
    bool has_legacy_id, legacy_id_is_local;  // local: of its process
    int64_t legacy_pid, legacy_tid;
  };
  struct FlowEnd {
    uint64_t flow;
    int64_t time, order, process, correlation;
    bool operator<(const FlowEnd& other) const {
      if (flow != other.flow) return flow < other.flow;
      return time != other.time ? time < other.time : order < other.order;
    }
  };

  void parse(const EventPacket& packet, std::string_view message, Parsed& event);
  void parse_legacy(const EventPacket& packet, std::string_view message, Parsed& event);
  void parse_flow(uint64_t flow);
  void parse_category(const CategoryWords& words, Parsed& event);
  void annotations(const EventPacket& packet);
  void annotation(const EventPacket& packet, std::string_view message);
  void legacy(const EventPacket& packet, Parsed& event, uint32_t line);
  void extra_value(double value);
  void extra_counters(const EventPacket& packet, std::string_view message);
  SliceRow row_of(const EventPacket& packet, Parsed& event, TraceLine& line, bool instant);
  void dispatch(SliceRow& row, const Parsed& event, TraceLine& line);
  void copy(SliceRow& row, const Parsed& event, TraceLine& line);
  void fill(SliceRow& row, TraceLine& line);
  void call(SliceRow& row, const Parsed& event, TraceLine& line);
  void sync(SliceRow& row, const Parsed& event, TraceLine& line);
  void marker(SliceRow& row, const EventPacket& packet, const Parsed& event, TraceLine& line, bool instant);
  int64_t track_of(TraceLine& line);
  void begin(const EventPacket& packet, Parsed& event, uint32_t line, bool unsorted);
  void instant(const EventPacket& packet, Parsed& event, uint32_t line, int64_t duration);
  void count(uint32_t line, int64_t time, double value, int64_t trusted_pid);
  Status flows();

  trace::TraceWriter& writer_;
  imported::ImportTracker& tracker_;
  TraceLines& lines_;
  SliceRows& rows_;
  SlicePairs pairs_;
  EventFacts facts_;
  bool facts_used_ = false;
  imported::RecentRows<event::row::Kernel> kernels_;
  imported::RecentRows<event::row::Function> functions_;
  imported::RecentRows<event::row::Label> labels_;
  imported::RecentRows<event::row::CopyShape> copies_;
  SortedFile<FlowEnd> flow_ends_;
  int64_t next_operator_ = kOperators, next_marker_ = kOfMarkers, order_ = 0;
  uint64_t without_name_ = 0, too_many_lines_ = 0, left_out_ = 0, extras_left_out_ = 0, annotations_left_out_ = 0;
  std::vector<std::string_view> annotations_;  // of the event at hand
  std::vector<uint64_t> flows_;
  std::vector<double> values_;
  std::vector<uint64_t> uuids_;
};

/// Puts the value of an annotation into the facts.
struct FactValue {
  bool is_number = false, is_real = false;
  int64_t number = event::kUnknown;
  double real = 0;
  std::string_view text;  // of a text
  int64_t row = 0;        // its string row, if known
  AgentLabel agent;       // it names
  bool cpu = false;       // "CPU"
};
void put_fact(EventFacts& facts, FactKey key, const FactValue& value, trace::TraceWriter& writer);
/// Adds a word about a collective, as src/ranks reads it back ("Collective name=allreduce, dtype=Float").
void put_collective(EventFacts& facts, std::string_view name, std::string_view value);

}  // namespace tacho::format::perfetto
