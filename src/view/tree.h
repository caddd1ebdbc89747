// The lines of a run's timeline as a tree: hosts and ranks where there are several, processes, their threads, queues and
// counters. A line may stand for several rows of table track (a queue that several threads launched into).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace tacho::view {

enum class LineKind : uint8_t { kHost, kRank, kProcess, kThread, kQueue, kRange, kMemory, kCounter, kSample };
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
  bool group() const { return kind <= LineKind::kProcess; }
};

class Tree {
 public:
  explicit Tree(const trace::Trace& trace);
  const std::vector<Line>& lines() const { return lines_; }
  /// The line that shows the rows of `fact` on a row of table track; -1 for rows that do not exist.
  int64_t line_of(event::Table fact, int64_t track) const {
    const auto& lines = fact == event::Table::kSample ? sample_line_ : line_;
    return track >= 0 && static_cast<size_t>(track) < lines.size() ? lines[static_cast<size_t>(track)] : -1;
  }

 private:
  std::vector<Line> lines_;
  std::vector<int64_t> line_, sample_line_;  // by track row
};

}  // namespace tacho::view
