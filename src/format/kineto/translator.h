// Turns the events of a Chrome trace into rows (translator.cpp, device_work.cpp).
#pragma once

#include <tsl/robin_map.h>

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/files/sorted_file.h"
#include "base/number_map.h"
#include "format/import/bad_rows.h"
#include "format/import/ranges.h"
#include "format/import/rows.h"
#include "format/import/times.h"
#include "format/kineto/categories.h"
#include "format/kineto/event.h"
#include "format/kineto/held_events.h"
#include "format/kineto/inputs.h"
#include "format/kineto/owners.h"
#include "trace/write/work_times.h"
#include "trace/write/writer.h"

namespace tacho::format::kineto {

/// Adds the rows of events to a writer as they come. What other events decide follows at finish(): kernels whose launch
/// shape stands in their API call, work that only an External id ties to its cause, ranges whose begin and end come
/// apart, arrows between operators, events of processes whose name says only later that they are a GPU.
class Translator {
 public:
  /// `unescaped`: the file's writer does not escape backslashes (JsonTokens).
  Translator(trace::TraceWriter& writer, bool& unescaped)
      : writer_(writer), owners_(writer), next_operator_(kOperators), inputs_(writer), held_(unescaped) {
    work_times_.keep_far();
  }
  void take(Event& event);
  /// A GPU as deviceProperties describes it, before or after its events.
  void describe_device(int64_t id, imported::DeviceHint hint) {
    owners_.tracker().describe(id, std::move(hint), owners_.document_devices());
  }
  /// Another document of the file begins.
  void document_begins() { owners_.document_begins(); }
  /// Events of another rank follow.
  void another_rank() { owners_.another_rank(); }
  /// The process that the document is about.
  int64_t document_process() { return owners_.document_process(); }
  /// A list of events holds something else.
  void no_event() { owners_.tracker().unread("members of lists of events that are none"); }
  /// Errors: temporary files cannot be written or read.
  Status finish();

 private:
  // Correlations of framework operators, and External ids where they stand in for correlations, lie above those of API
  // calls, which vendors count from 1.
  static constexpr int64_t kOperators = int64_t{1} << 48, kExternal = int64_t{1} << 47;

  struct OwnedId {  // correlations and External ids are unique within a process
    int64_t process, id;
    auto operator<=>(const OwnedId&) const = default;
  };
  struct KernelFacts {
    int64_t name, registers, shared, private_bytes, graph, occupancy;
  };
  struct Deferred {  // a kernel whose launch shape stands in its API call
    OwnedId call;
    event::row::Dispatch row;
    KernelFacts facts;
    bool operator<(const Deferred& other) const { return call < other.call; }
  };
  struct Flow {
    int64_t thread, time, id;
    int64_t begin;  // 1 = start, 0 = finish
    bool operator<(const Flow& other) const {
      return thread != other.thread ? thread < other.thread : time < other.time;
    }
  };
  struct Operator {
    int64_t thread, time, duration, external, correlation;
    // Of operators that begin together the inner ones come last, in whatever order the file has them.
    bool operator<(const Operator& other) const {
      return std::tie(thread, time, other.duration, external) <
             std::tie(other.thread, other.time, duration, other.external);
    }
  };
  struct End {
    OwnedId flow;
    int64_t begin, correlation;
    bool operator<(const End& other) const { return flow != other.flow ? flow < other.flow : begin > other.begin; }
  };
  struct Shape {
    int64_t grid[3], block[3], shared;
  };
  struct CallTimes {
    int64_t start, end;
  };
  template <typename Row>
  struct Tied {  // by an External id only
    OwnedId cause;
    Row row;
    bool operator<(const Tied& other) const { return cause < other.cause; }
  };
  struct Nameless {  // an event that may be a GPU's work: its process has no name yet
    int64_t block_scope, pid, tid, time, duration, name, correlation, bytes;
    int64_t grid[3], block[3], registers, shared, static_shared, private_bytes, occupancy;
    event::CopyDirection direction;
    bool copies, fills;
    bool work;  // says itself that it is a kernel or copy
    bool operator<(const Nameless& other) const {
      return block_scope != other.block_scope ? block_scope < other.block_scope : pid < other.pid;
    }
  };
  template <typename Row>
  struct Nesting {  // a call or a range of a file whose events lie in no order
    Row row;
    int64_t id;  // profilers number operators and functions as they begin
    bool operator<(const Nesting& other) const {
      if (row.start != other.row.start) return row.start < other.row.start;
      return row.duration != other.row.duration ? row.duration > other.row.duration : id < other.id;
    }
  };
  struct TimedCall {
    int64_t time, correlation;
    size_t host;  // place in Owners::host_rows()
    int64_t sort_key() const { return time; }
    bool operator<(const TimedCall& other) const { return time < other.time; }
  };
  struct HeldWork {  // that came before the file showed its order
    int64_t time, place, correlation, device;
    int64_t sort_key() const { return time; }
    bool operator<(const HeldWork& other) const { return time < other.time; }
  };
  struct EarlyWork {  // likewise: the first of it, in the order in which it came
    std::string text;
    HeldEvents::Whose whose;
    HeldWork work;
  };
  struct Lane {  // of device work
    int64_t track, device, process;
    int64_t context = 0;  // 0 = none of its events named one yet
  };

  static int64_t known(int64_t id) { return id != event::kUnknown ? id : 0; }
  void complete(Event& event);
  void hold_work(const Event& event);
  void hold_until_end(const Event& event);
  void release_early();
  void keep_early();
  Status finish_work();
  Result<SortedFile<TimedCall>> calls_by_time();
  std::map<int64_t, size_t> hosts_of_devices(std::span<const HeldWork> work);
  void host_event(const Event& event, Meaning meaning);
  bool may_be_device_line(const Event& event);
  bool device_line(const Event& event);
  void range_begins(const Event& event);
  void range_ends(const Event& event);
  int64_t nested_lane(const Event& event);
  Status finish_ranges();
  void device_event(const Nameless& each, const Id& pid, const Id& tid, int64_t gpu);
  void kernel_event(const Event& event);
  void copy(const Event& event);
  void fill(const Event& event);
  void counters(const Event& event);
  void call(const Event& event, int64_t track);
  void framework_operator(const Event& event, int64_t track);
  void api(const Event& event, int64_t track, event::Domain domain, int64_t correlation, int64_t inputs = 0);
  void sync(const Event& event);
  void range(const Event& event, int64_t track, event::MarkerKind kind);
  void asynchronous(const Event& event, char phase);
  void tensor(const Event& event, int64_t track);
  void readings(const Event& event);
  void arrow(const Event& event);
  void metadata(const Event& event);
  void unread(const Event& event);
  template <typename Row>
  void nest(SortedFile<Nesting<Row>>& held, const Row& row, const Event& event);
  Status finish_nesting();
  Status finish_deferred();
  Status finish_tied();
  Status finish_flows();
  Status finish_nameless();
  struct DevicesAtWork {
    int64_t count = 0, only = 0;  // only: the row of one of them
  };
  DevicesAtWork devices_at_work(Owners::ScopeId scope);
  void finish_tensors();

  int64_t device(int64_t index, const Event& event, Owners::ScopeId scope);
  Lane lane(const Event& event);
  template <typename Row>
  void work(const Row& row, const Event& event, int64_t process, bool to_host = false);
  void write(const trace::WorkTimes::Origin& origin, const event::row::Dispatch& row) {
    work_times_.dispatch(origin, row);
  }
  void write(const trace::WorkTimes::Origin& origin, const event::row::Copy& row) { work_times_.copy(origin, row); }
  void write(const trace::WorkTimes::Origin& origin, const event::row::Fill& row) { work_times_.fill(origin, row); }
  int64_t device_of_track(int64_t track);
  int64_t kernel(const KernelFacts& facts, const int64_t (&grid)[3], const int64_t (&block)[3]);
  int64_t arguments(const Event& event);
  void put_collective(const Event::Collective& told);
  void put_annotations(const Event& event);
  void finish_annotations();
  int64_t label(std::string_view name, std::string_view category, event::MarkerKind kind);
  void bad_time(event::Table table, const Event& event);
  void bad_values(event::Table table, const Event& event);

  trace::TraceWriter& writer_;
  Owners owners_;
  int64_t next_operator_;
  NumberMap<5> lanes_;
  NumberMap<5> streams_;  // the first lane of a stream, whatever its context
  std::vector<Lane> lane_list_;
  std::array<int64_t, 5> last_lane_ = {event::kUnknown, 0, 0, 0, 0};
  size_t last_lane_place_ = 0;
  imported::RecentRows<event::row::Kernel> kernels_;
  imported::RecentRows<event::row::Function> functions_;
  imported::RecentRows<event::row::Label> labels_;
  imported::RecentRows<event::row::CopyShape> copy_shapes_;
  imported::RecentRows<event::row::Track> async_lines_;
  InputRows inputs_;
  imported::RangePairs nested_, asynchronous_;
  imported::BadRows bad_rows_;
  int64_t taken_ = 0;          // events so far
  NumberMap<4> nested_lanes_;  // by block, pid, tid, host
  HeldEvents held_;            // begins of work and calls, ends with arguments, and held_work_
  SortedFile<HeldWork> held_work_;
  std::vector<EarlyWork> early_;
  Status early_status_;
  bool settling_ = false;  // the events come from there
  imported::UnmeasuredRows unmeasured_;
  trace::WorkTimes work_times_{writer_, size_t{1} << 18, 8192};
  KeyIndex<Shape, OwnedId> launches_;
  KeyIndex<CallTimes, OwnedId> call_times_;     // of calls with a correlation
  KeyIndex<int64_t, OwnedId> operator_causes_;  // External id -> the operator's correlation
  KeyIndex<int64_t, OwnedId> external_calls_;   // calls that have no correlation but an External id
  SortedFile<Deferred> deferred_;
  SortedFile<Tied<event::row::Dispatch>> tied_dispatches_;
  SortedFile<Tied<event::row::Copy>> tied_copies_;
  SortedFile<Tied<event::row::Fill>> tied_fills_;
  SortedFile<Nameless> nameless_;
  SortedFile<Nesting<event::row::Api>> nesting_calls_;
  SortedFile<Nesting<event::row::Marker>> nesting_ranges_;
  SortedFile<Flow> flows_;
  SortedFile<Operator> operators_;
  bool any_flow_ = false;
  NumberMap<3> tensor_shapes_;      // by device's scope, index, operation
  std::string text_, key_, value_;  // of the arguments at hand
  size_t annotation_bytes_ = 0;     // of different texts
  int64_t annotations_left_out_ = 0, annotated_fills_ = 0;
  int64_t ordinal_ = 0;
};

}  // namespace tacho::format::kineto
