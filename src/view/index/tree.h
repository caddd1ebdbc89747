// The lines of a run's timeline as a tree: hosts and ranks if there are several, processes, their threads, queues and
// counters. A line may show several rows of table track (a queue that several threads launched into).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trace/trace.h"

namespace tacho::view {

enum class LineKind : uint8_t {
  kHost,
  kRank,
  kProcess,
  kThread,
  kQueue,
  kRange,
  kMemory,
  kCounter,
  kSample,
  kMessage,
  kStack,  // the call stacks of the samples of the line above it, over time
};
std::string_view to_string(LineKind kind);

struct Line {
  int64_t parent = -1;  // index into lines(); -1 = top
  LineKind kind = LineKind::kProcess;
  std::string name;
  std::string unit;     // of counters
  std::string device;   // "GPU 0"; "" = none
  int64_t process = 0;  // row
  int64_t rank = event::kUnknown;
  size_t device_number = SIZE_MAX;  // DeviceNumbers::device() of queues
  uint64_t tables = 0;              // bit (1 << event::Table) of each fact table with rows here
  int64_t about = 0;                // rows, an estimate; of counters exactly
  int64_t busy = 0;                 // ns, of queues: by chunk and table, added up
  bool rate = false;                // of counters: the trace has sums since a beginning, the line shows their growth
  bool helper = false;              // of processes: it only helped others to start, or nothing of it is in the trace
  bool group() const { return kind <= LineKind::kProcess; }
};

class Tree {
 public:
  explicit Tree(const trace::Trace& trace);
  const std::vector<Line>& lines() const { return lines_; }
  /// The line that shows the rows of `fact` on a row of table track; -1 for rows that do not exist.
  int64_t line_of(event::Table fact, int64_t track) const {
    const auto& lines = fact == event::Table::kSample    ? sample_line_
                        : fact == event::Table::kMessage ? message_line_
                                                         : line_;
    return track >= 0 && static_cast<size_t>(track) < lines.size() ? lines[static_cast<size_t>(track)] : -1;
  }

  /// The line of a counter's values of dispatches (table counter_value); -1 if there are too many of them to draw.
  int64_t line_of_counter(int64_t track, int64_t counter) const {
    const auto found = counter_line_.find({line_of(event::Table::kDispatch, track), counter});
    return found == counter_line_.end() ? -1 : found->second;
  }
  /// Of more samples than this the stacks are not drawn over time.
  static constexpr int64_t kMostStackSamples = 300'000;
  /// More values than this are in SQL only.
  static constexpr int64_t kMostCounterValues = 4'000'000;

 private:
  void add_counters(const trace::Trace& trace);

  std::vector<Line> lines_;
  std::vector<int64_t> line_, sample_line_, message_line_;       // by track row
  std::map<std::pair<int64_t, int64_t>, int64_t> counter_line_;  // by line of the queue and row of table counter
};

}  // namespace tacho::view
