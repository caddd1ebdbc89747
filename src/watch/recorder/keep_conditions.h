// Triggers that are seen in what programs do: slow steps, idle devices, new kernels, memory, markers, collectives.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "event/watch_table.h"
#include "watch/recorder/keep_trigger.h"
#include "watch/recorder/rank_progress.h"
#include "watch/recorder/ring_file.h"

namespace tacho::watch {

/// Durations of steps of one kind, and whether the next one is slow.
class StepTimes {
 public:
  /// Steps before the first that may be slow, and of how many the median is.
  static constexpr size_t kFirst = 20, kMost = 101;
  /// The median of the steps before, ns; 0 = too few. The step counts from then on.
  int64_t add(int64_t ns);

 private:
  std::vector<int64_t> last_;
  size_t next_ = 0;
};

/// Feed it every record in order.
class KeepConditions {
 public:
  /// `further`: sentences about what else is to be known.
  using Fire =
      std::function<void(const KeepTrigger& trigger, const std::string& why, std::vector<std::string> further)>;
  /// All must outlive it.
  KeepConditions(const event::WatchTable& table, const RingFile& ring, const std::vector<KeepTrigger>& triggers,
                 Fire fire);

  void observe(const KeptRecord& record);
  /// At `now`, CLOCK_MONOTONIC_RAW ns.
  void step(int64_t now);
  /// At the end: why triggers could not be judged, a sentence each.
  std::vector<std::string> unjudged() const;

 private:
  using Thread = std::tuple<uint16_t, uint32_t, uint16_t>;  // process, tid, domain of markers
  struct OpenMarker {
    int64_t start;
    std::string name;
  };
  struct LastLaunch {
    int64_t start = 0;
    StepTimes times;
  };

  const KeepTrigger* trigger_of(KeepCause cause) const;
  void work(const KeptRecord& record, int64_t start, int64_t end);
  void kernel(const KeptRecord& record, int64_t start);
  void graph(const KeptRecord& record, int64_t start);
  void waited(const KeptRecord& record, int64_t start, int64_t end);
  void marker(const KeptRecord& record);
  void end_of_marker();
  void range_took(const OpenMarker& range, int64_t end);
  void memory(const KeptRecord& record);
  void idle(const KeepTrigger& trigger, int64_t now);
  std::vector<std::string> ranks_behind() const;
  std::string process_text(uint16_t process) const;
  void outstanding(int64_t at, bool now);
  void step_took(const KeepTrigger& trigger, StepTimes& times, int64_t ns, const std::string& what);
  std::string row_name(uint32_t row) const;

  const event::WatchTable& table_;
  const RingFile& ring_;
  const std::vector<KeepTrigger>& triggers_;
  Fire fire_;

  // Steps
  std::map<Thread, std::vector<OpenMarker>> open_;
  std::unordered_map<uint64_t, OpenMarker> started_;                       // by ticket: any thread may end them
  bool markers_ = false, named_steps_ = false;                             // some were seen; ranges that are steps
  std::map<std::string, StepTimes> ranges_;                                // by the name of the trigger's ranges
  std::map<std::tuple<uint16_t, uint32_t, uint64_t>, LastLaunch> graphs_;  // by process, row, stream
  bool known_steps_ = false;  // ranges of PyTorch's that are steps were seen
  KeptRecord text_of_;        // a marker whose text goes on
  std::string text_;
  // Idle
  std::set<std::pair<uint16_t, uint64_t>> busy_;  // queues and streams with work for which nobody has waited
  int64_t first_work_ = 0, window_from_ = 0, idle_since_ = 0, idle_ns_ = 0;
  // Kernels
  std::set<std::string> kernels_;
  enum class Row : uint8_t { kUnseen, kSeen, kCollective };
  std::vector<Row> rows_;  // of the table
  // Collectives
  std::unordered_map<uint64_t, std::string> collectives_;  // by ticket, until their times come
  std::map<uint16_t, uint32_t> waiting_collectives_;       // by process, a row: launched since the last wait
  RankProgress ranks_;
  // Memory
  std::map<std::pair<uint16_t, uint64_t>, std::pair<uint64_t, std::string>>
      held_;                                   // by process, address: bytes, device
  std::map<std::string, uint64_t> held_sums_;  // by device
  std::map<std::string, bool> above_;
  bool size_unknown_ = false, size_known_ = false;
};

}  // namespace tacho::watch
