// What rows of a trace the numbers in somebody's file stand for: processes, threads, queues, devices and counters, made
// at first use and described whenever the file says more.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/number_map.h"
#include "event/schema.h"
#include "trace/write/writer.h"

namespace tacho::format::imported {

/// A rank, host, file, document or run: pids, tids, correlations, devices, flow and External ids are unique within one
/// and mean nothing beyond. 0 = the file itself.
using ScopeId = int32_t;

/// What a file tells about a device; empty and unknown cells stay as they are.
struct DeviceHint {
  event::DeviceKind kind = event::DeviceKind::kGpu;
  std::string name = {}, vendor = {}, architecture = {}, uuid = {}, driver = {};
  /// Further facts, as key and value.
  std::vector<std::pair<std::string, std::string>> properties = {};
  /// What a file of tacho's tells of it: device_origin().
  std::string origin = {};
};

class ImportTracker {
 public:
  explicit ImportTracker(trace::TraceWriter& writer) : writer_(writer) {}

  /// Another scope. Its processes get the run's number `scope`, its devices belong to its main process.
  ScopeId new_scope() { return ++last_scope_; }
  /// A scope for the devices of a process (a row) of another scope.
  ScopeId new_scope(int64_t main_process) {
    mains_[++last_scope_] = main_process;
    return last_scope_;
  }
  ScopeId last_scope() const { return last_scope_; }

  /// The process whose program was traced: device work that no call ties is its. It is the first that process() asks
  /// for by a pid above 0, or the one without a pid until then.
  int64_t main_process(ScopeId scope = 0);
  /// The process of a pid. 0 and kUnknown: the main one.
  int64_t process(int64_t pid, ScopeId scope = 0);
  /// The process of an id that is text; the caller keeps the row.
  int64_t process(std::string_view id, ScopeId scope = 0);
  bool has_process(int64_t pid, ScopeId scope = 0) const { return processes_.contains({scope, pid}); }

  /// The line of a thread of `process` (a row). `native`: its number where `tid` is not one (texts).
  int64_t thread_track(int64_t process, int64_t tid);
  int64_t thread_track(int64_t process, std::string_view id, int64_t native);
  /// Names the thread of a line that thread_track() returned.
  void name_thread(int64_t track, std::string_view name);
  void name_thread(int64_t track, int64_t name);  // a row of string
  /// The thread has this number, whatever it is called in the file.
  void number_thread(int64_t track, int64_t tid);

  /// "GPU 3" until describe() tells more, before or after.
  int64_t device(int64_t index, ScopeId scope = 0);
  bool has_device(int64_t index, ScopeId scope = 0) const { return devices_.contains({scope, index}); }
  /// Says who made a device that nothing else may describe.
  void hint_vendor(int64_t device, std::string_view vendor) {
    writer_.update(event::Table::kDevice, device, event::column::Device::vendor, writer_.string(vendor));
  }
  void describe(int64_t index, DeviceHint facts, ScopeId scope = 0);

  /// The line of a counter: one for each process (or device), counter, id and series. `gpu`: the index of a device that
  /// may come later; finish() ties the line to it, or names it "GPU 3" if it never came.
  struct CounterKey {
    int64_t process = 0, device = 0;  // rows
    int64_t gpu = event::kUnknown;
    ScopeId scope = 0;  // of gpu
    std::string_view name = {}, id = {}, series = {}, unit = {}, block = {};
  };
  int64_t counter_track(const CounterKey& key);

  /// Counts what tacho does not read, by kind: "samples (phase P)".
  void unread(std::string_view what, int64_t count = 1);

  /// Names of counters' series, devices' owners where there are several scopes, and one sentence about unread kinds. No
  /// other call may follow.
  void finish();

 private:
  struct CounterSeries {
    int64_t track;  // row
    std::string id, series;
  };
  struct CounterGroup {
    int64_t gpu;
    ScopeId scope;
    std::vector<CounterSeries> lines;
  };
  struct DescribedDevice {
    ScopeId scope;
    int64_t index;
    DeviceHint facts;
  };
  struct UnreadKind {
    std::string what;
    int64_t count;
  };

  static constexpr size_t kMostCounters = 1 << 18;  // lines; those beyond keep their id and series as a name

  int64_t new_process(int64_t pid, int64_t name, ScopeId scope);
  void apply(int64_t device, const DeviceHint& facts);
  void finish_counters();

  trace::TraceWriter& writer_;
  ScopeId last_scope_ = 0;
  tsl::robin_map<ScopeId, int64_t> mains_;
  tsl::robin_map<int64_t, bool> unclaimed_;   // main processes without a pid, by row
  NumberMap<2> processes_;                    // by scope and pid
  NumberMap<3> thread_tracks_;                // by process, tid, 1 for a text's
  tsl::robin_map<int64_t, int64_t> threads_;  // rows of threads by track
  NumberMap<2> devices_;                      // by scope and index
  std::vector<DescribedDevice> facts_;
  NumberMap<7> counter_tracks_;  // by process, device, gpu, scope, counter, id, series
  NumberMap<5> counter_groups_;
  bool too_many_counters_ = false;
  std::vector<CounterGroup> groups_;
  std::vector<UnreadKind> unread_;
};

}  // namespace tacho::format::imported
