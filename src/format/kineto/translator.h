// Turns the events of a Chrome trace into rows (translator.cpp).
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/sorted_file.h"
#include "base/number_map.h"
#include "format/kineto/event.h"
#include "trace/write/writer.h"

namespace tacho::format::kineto {

/// Adds the rows of events to a writer as they come. Kernels whose launch shape stands in their API call, and arrows
/// between operators, follow at finish().
class Translator {
 public:
  /// A GPU as deviceProperties describes it.
  struct Property {
    std::string name;
    int64_t units = 0, memory = 0;  // compute units; bytes; 0 = not told
  };

  explicit Translator(trace::TraceWriter& writer);
  void take(Event& event);
  /// Before the events of that GPU. Of more than 4096 GPUs the rest is ignored.
  void describe_device(int64_t id, Property property) {
    if (properties_.size() < 4096) properties_[id] = std::move(property);
  }
  /// The process whose program was traced.
  int64_t cpu_process();
  /// Errors: temporary files cannot be written or read.
  Status finish();

 private:
  struct Deferred {  // a kernel whose launch shape stands in its API call
    int64_t correlation, track, start, duration, name, registers, shared, graph_node, arguments;
    bool operator<(const Deferred& other) const { return correlation < other.correlation; }
  };
  struct Flow {
    int64_t thread, time, id;
    int64_t begin;  // 1 = start, 0 = finish
    bool operator<(const Flow& other) const {
      return thread != other.thread ? thread < other.thread : time < other.time;
    }
  };
  struct Operator {
    int64_t thread, time, correlation;
    bool operator<(const Operator& other) const {
      return thread != other.thread ? thread < other.thread : time < other.time;
    }
  };
  struct End {
    int64_t id, begin, correlation;
    bool operator<(const End& other) const { return id != other.id ? id < other.id : begin > other.begin; }
  };

  static int64_t known(int64_t id) { return id != event::kUnknown ? id : 0; }
  int64_t number(const Id& id);
  void complete(Event& event);
  void kernel_event(const Event& event);
  void copy(const Event& event);
  void fill(const Event& event);
  void counters(const Event& event);
  void call(const Event& event, int64_t track);
  void api(const Event& event, int64_t track, event::Domain domain, int64_t correlation);
  void sync(const Event& event, int64_t track);
  void range(const Event& event, int64_t track, event::MarkerKind kind);
  void tensor(const Event& event, int64_t track);
  void metadata(const Event& event);

  int64_t process(const Id& id);
  int64_t thread_track(const Id& process, const Id& thread);
  int64_t device(int64_t index, bool nvidia);
  int64_t gpu_track(const Event& event);
  int64_t kernel(int64_t name, const int64_t* grid, const int64_t* block, int64_t registers, int64_t shared);
  int64_t collective(const Event& event);
  int64_t label(std::string_view name, std::string_view category, event::MarkerKind kind);
  int64_t function(std::string_view name, event::Domain domain);
  void bad(event::Table table) { writer_.lose(0, table, event::LossReason::kBadInput, 1); }

  trace::TraceWriter& writer_;
  int64_t next_operator_;
  int64_t cpu_process_ = 0;
  bool cpu_described_ = false;
  tsl::robin_map<int64_t, int64_t> thread_rows_;  // of tracks
  NumberMap<3> threads_, devices_, functions_, copy_shapes_;
  NumberMap<4> gpu_tracks_;
  tsl::robin_map<int64_t, int64_t> processes_;
  tsl::robin_map<std::string, int64_t> texts_;
  NumberMap<3> labels_;
  NumberMap<9> kernels_;
  tsl::robin_map<int64_t, Property> properties_;
  struct OpenRange {
    int64_t start;
    int64_t label;
  };
  tsl::robin_map<int64_t, std::vector<OpenRange>> open_;  // B without its E yet, by track
  struct Shape {
    int64_t grid[3], block[3], shared;
  };
  KeyIndex<Shape> launches_;
  SortedFile<Deferred> deferred_;
  SortedFile<Flow> flows_;
  SortedFile<Operator> operators_;
  bool any_flow_ = false;
  uint64_t unknown_phases_ = 0;
  std::string text_;  // of the collective at hand
  int64_t ordinal_ = 0;
};

}  // namespace tacho::format::kineto
