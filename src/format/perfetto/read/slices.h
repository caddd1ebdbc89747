// Pairs the begins and ends of slices, and adds what they become.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <vector>

#include "base/files/sorted_file.h"
#include "base/result.h"
#include "event/schema.h"
#include "format/import/times.h"
#include "trace/write/writer.h"

namespace tacho::format::perfetto {

/// A row of a timed table, but for its duration.
struct SliceRow {
  event::Table table = event::Table::kMarker;
  bool unfinished = false;  // its end is only the trace's
  bool of_gpu = false;      // its counters belong to the GPU
  int64_t track = 0, start = 0, dim = 0, correlation = 0;
  int64_t process = 0, device = 0;   // rows; of dispatches
  int64_t number = event::kUnknown;  // bytes, result, payload or ordinal
  int64_t graph_node = 0, text = 0;  // text: arguments
};

/// Adds rows and keeps what later rows need to know about them.
class SliceRows {
 public:
  explicit SliceRows(trace::TraceWriter& writer) : writer_(writer) {}
  /// duration: kUnknown = not known.
  void add(const SliceRow& row, int64_t duration);
  /// Dispatches are found again by their starts from now on.
  void keep_dispatches() { keep_dispatches_ = true; }
  /// A value of a counter of dispatches on a device.
  void dispatch_counter(int64_t process, int64_t device, int64_t time, int64_t counter, double value);
  /// A counter's level: bytes allocated on a device.
  void allocation(int64_t track, int64_t device, int64_t time, double change);
  Status finish();

 private:
  void add_timed(const SliceRow& row, int64_t duration);
  Status dispatch_counters();
  struct DispatchKey {
    int64_t process, device, start;
    auto operator<=>(const DispatchKey&) const = default;
  };
  struct DispatchPlace {
    int64_t track, ordinal;
  };
  struct DispatchValue {
    DispatchKey key;
    int64_t counter;
    double value;
    bool operator<(const DispatchValue& other) const {
      return key != other.key ? key < other.key : counter < other.counter;
    }
  };

  trace::TraceWriter& writer_;
  bool keep_dispatches_ = false;
  KeyIndex<DispatchPlace, DispatchKey> dispatches_;
  SortedFile<DispatchValue> values_;
  KeyIndex<int64_t> call_ends_;  // by correlation
  imported::UnmeasuredRows unmeasured_;
};

/// Begins and ends of lines, in the file's order. A line whose events are in order of time nests: its ends close the
/// innermost slice at once. The events of other lines wait in temporary files, as do those of lines that begin slices
/// while very many are open. Some writers keep begins and ends in columns: a run of n begins and then n ends within
/// which time goes back is n slices in that order, and on a line with such a run also one whose slices in that order
/// follow one another. All others are sorted by time first.
class SlicePairs {
 public:
  SlicePairs(trace::TraceWriter& writer, SliceRows& rows) : writer_(writer), rows_(rows) {}
  void begin(uint32_t line, bool unsorted, const SliceRow& row);
  void end(uint32_t line, bool unsorted, int64_t time);
  /// Adds all that waited. Slices without an end get an unknown duration and are counted (LossReason::kOpenAtExit), as
  /// are ends without a begin (kBadInput).
  Status finish();

 private:
  static constexpr size_t kDeepest = 100'000, kMostOpen = 1 << 18, kMostStarts = 4 << 20;  // the last two of all lines
  struct RunKey {
    int64_t line, run;
    auto operator<=>(const RunKey&) const = default;
  };
  struct ColumnRun {
    RunKey key;
    bool goes_back;  // else the line decides
    bool operator<(const ColumnRun& other) const { return key < other.key; }
  };
  struct WaitingEdge {
    RunKey key;
    int64_t index;  // within the run, of begins and of ends
    int64_t order;  // in the file
    bool ends;
    SliceRow row;  // of an end only the start: its time
    bool operator<(const WaitingEdge& other) const {
      if (key != other.key) return key < other.key;
      return index != other.index ? index < other.index : ends < other.ends;
    }
  };
  struct ByTime {
    bool operator()(const WaitingEdge& a, const WaitingEdge& b) const {
      if (a.key.line != b.key.line) return a.key.line < b.key.line;
      return a.row.start != b.row.start ? a.row.start < b.row.start : a.order < b.order;
    }
  };
  struct UnsortedLine {
    int64_t run = 0, begins = 0, ends = 0, last = 0;
    bool went_back = false, crossed = false;  // of the run: in time; an end before the begin of its place
    bool chained = true;                      // of the run: no end behind the begin of the place after its own
    bool in_columns = false;                  // some run went back
    std::vector<int64_t> starts;              // of the run
  };
  /// A line's open slices. Those that lie deeper than kDeepest are only counted, so that their ends pass.
  struct OpenLine {
    std::vector<SliceRow> slices;
    uint64_t deeper = 0;
    bool waits = false;  // too many were open on all lines: what follows waits as that of unsorted lines
    bool push(const SliceRow& row) {
      if (slices.size() < kDeepest) return slices.push_back(row), true;
      return ++deeper, false;
    }
    bool pop_deeper() { return deeper > 0 && deeper-- > 0; }
  };
  bool waits(uint32_t line) const { return line < open_.size() && open_[line].waits; }
  void wait(uint32_t line, bool ends, const SliceRow& row);
  void close_run(uint32_t line, UnsortedLine& state);
  void close(const SliceRow& row, int64_t end);
  void open_at_exit(const SliceRow& row);
  Status pair_by_time(SortedFile<WaitingEdge, ByTime>& edges);

  trace::TraceWriter& writer_;
  SliceRows& rows_;
  std::vector<OpenLine> open_;  // by line
  tsl::robin_map<uint32_t, UnsortedLine> unsorted_;
  SortedFile<WaitingEdge> waiting_;
  SortedFile<ColumnRun> column_runs_;
  size_t slices_open_ = 0, starts_held_ = 0;
  int64_t order_ = 0;
  bool any_waiting_ = false;
};

}  // namespace tacho::format::perfetto
