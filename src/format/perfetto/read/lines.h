// The tracks of a Perfetto trace, and the processes, threads, queues, devices and counters that they stand for.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/number_map.h"
#include "format/import/tracker.h"
#include "format/perfetto/read/interned.h"
#include "trace/write/writer.h"

namespace tacho::format::perfetto {

/// A track, as its descriptors tell it and, from its first event on, as rows.
struct TraceLine {
  enum class Role : uint8_t { kUnresolved, kThread, kQueue, kRange, kCounter };
  enum class Counts : uint8_t { kReadings, kCopyLevels, kAllocationLevels, kOfDispatches };

  uint64_t uuid = 0, parent = 0;
  std::string name;
  uint32_t machine = 0;
  int32_t pid = 0, tid = 0;
  bool has_process = false, has_thread = false, is_counter = false, has_gpu = false;
  bool unsorted = false;  // its events are not in order of time
  int32_t gpu = 0;
  // Of a counter.
  bool incremental = false;
  int64_t unit = 0, multiplier = 1;
  std::string unit_name;

  // From its first event on. Rows; kUnknown = the line's name does not tell.
  Role role = Role::kUnresolved;
  Counts counts = Counts::kReadings;
  int64_t process = 0, track = 0, device = 0;
  int64_t counter = 0;  // its row; of a queue its number among the device's
  int64_t queue = event::kUnknown, stream = event::kUnknown;
  double level = 0;  // of a counter that counts up or has levels
};

/// What an event tells about the queue that it ran on. kUnknown = nothing.
struct QueueFacts {
  AgentLabel agent;
  bool cpu_agent = false;  // a device of the kind, such as PoCL's
  int64_t device = event::kUnknown, queue = event::kUnknown, stream = event::kUnknown, context = event::kUnknown,
          tid = event::kUnknown;
};

class TraceLines {
 public:
  /// `scope`: the trace's among those of its file.
  TraceLines(trace::TraceWriter& writer, imported::ImportTracker& tracker, imported::ScopeId scope)
      : writer_(writer), tracker_(tracker), scope_(scope) {}

  // Before the events.

  /// A track descriptor; returns the line's number, or UINT32_MAX if there are too many.
  uint32_t describe(std::string_view message, uint32_t machine);
  void process_descriptor(std::string_view message, uint32_t machine);
  uint32_t thread_descriptor(uint64_t uuid, std::string_view message, uint32_t machine);
  void process_tree(std::string_view message, uint32_t machine);
  void gpu_info(std::string_view message, uint32_t machine);
  void system_info(std::string_view message, uint32_t machine);
  /// Says that the file has counters of dispatches.
  void expect_dispatch_counters() { has_dispatch_counters_ = true; }
  /// The line of a uuid, described or not; UINT32_MAX if there are too many.
  uint32_t number(uint64_t uuid);
  /// The uuid of a sequence's thread, by its old descriptor, and of the lines of asynchronous events.
  static uint64_t made_uuid(uint64_t kind, uint64_t a, uint64_t b = 0);
  /// `apart`: the file holds other traces; what belongs to no process becomes the main process's.
  void begin_events(bool apart);

  // With the events.

  /// The line with its rows. `trusted_pid`: of the packet's writer, for tracks without a process.
  TraceLine& resolved(uint32_t number, int64_t trusted_pid);
  TraceLine& line(uint32_t number) { return lines_[number]; }
  int64_t process(uint32_t machine, int64_t pid);
  int64_t main_process() { return process(0, main_pid_); }
  int64_t thread_track(int64_t process, int64_t tid, int64_t name = 0);
  int64_t thread_track_of(uint32_t machine, int64_t pid, int64_t tid);
  /// The row of a device by its number in the file, and by an agent's label (0 where that is the host).
  int64_t device(int64_t gpu, uint32_t machine = 0) { return tracker_.device(gpu, scope(machine)); }
  int64_t agent(const AgentLabel& label, bool host, bool cpu = false);
  void describe_device(int64_t gpu, std::string_view architecture);
  /// The line of a queue for device work on `line`.
  int64_t queue_track(TraceLine& line, const QueueFacts& facts);
  /// The line of a queue that only its numbers tell: a stream's, or a queue's, and the context. `name`: a string's row.
  int64_t queue_track(int64_t process, int64_t device, uint32_t machine, const QueueFacts& facts, int64_t name);
  /// A line of ranges of a process.
  int64_t range_track(int64_t process, std::string_view name);
  bool has_dispatch_counters() const { return has_dispatch_counters_; }
  uint64_t left_out() const { return left_out_; }
  void finish();

 private:
  static constexpr size_t kMostLines = 1 << 19, kMostNames = 1 << 20, kMostTextBytes = 64u << 20;
  struct NamedProcess {
    std::string name, command;
    int64_t row = 0;
    int64_t gpu = event::kUnknown;                          // a process that stands for a GPU
    int64_t rank = event::kUnknown, run = event::kUnknown;  // by its labels
  };
  struct Provisional {
    int64_t track;
    uint32_t line;
  };
  static uint64_t key(uint32_t machine, int64_t id) {
    return static_cast<uint64_t>(machine) << 32 | static_cast<uint32_t>(id);
  }
  imported::ScopeId scope(uint32_t machine);
  void gpu_fact(std::string_view message, int64_t gpu, uint32_t machine, imported::DeviceHint& hint);
  int64_t owner_of_rest() { return apart_ ? main_process() : 0; }
  void name_process(uint32_t machine, int64_t pid, std::string_view name, std::string_view command);
  void name_thread(uint32_t machine, int64_t pid, int64_t tid, std::string_view name);
  void keep(std::string& kept, std::string_view text);
  int64_t thread(uint32_t machine, int64_t process, int64_t tid);
  void resolve(TraceLine& line, int64_t trusted_pid);
  bool gpu_of(const TraceLine& line, int64_t& gpu) const;
  void resolve_counter(TraceLine& line);
  bool queue_by_name(TraceLine& line);
  bool thread_by_name(TraceLine& line, const TraceLine& owner);
  const TraceLine* ancestor_with_process(const TraceLine& line) const;

  trace::TraceWriter& writer_;
  imported::ImportTracker& tracker_;
  imported::ScopeId scope_;
  bool apart_ = false;
  std::vector<TraceLine> lines_;
  tsl::robin_map<uint64_t, uint32_t> numbers_;
  tsl::robin_map<uint64_t, NamedProcess> processes_;
  tsl::robin_map<uint64_t, int64_t> thread_names_;  // by machine and tid: string rows
  tsl::robin_map<uint32_t, imported::ScopeId> scopes_;
  tsl::robin_map<uint32_t, std::string> machines_;  // names by number
  NumberMap<2> threads_;
  NumberMap<2> named_threads_;  // tids by process's key and name: overlapping slices lie on further lines of that name
  NumberMap<7> queue_tracks_;
  struct KnownAgent {
    int64_t number = 0, row = 0;
    AgentLabel::Word word = AgentLabel::Word::kNone;
    bool cpu = false;
  };
  std::vector<KnownAgent> agents_;
  struct ToldAgent {
    AgentLabel label;
    int64_t gpu;
    uint32_t machine;
  };
  std::vector<ToldAgent> told_agents_;  // by the file's own description of its GPUs
  std::vector<Provisional> provisional_;
  int64_t main_pid_ = 0;
  size_t text_bytes_ = 0;
  bool has_dispatch_counters_ = false;
  uint64_t left_out_ = 0, last_uuid_ = 0;
  uint32_t last_number_ = UINT32_MAX;
};

}  // namespace tacho::format::perfetto
