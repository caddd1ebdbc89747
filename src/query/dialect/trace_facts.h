// What the SQL dialects need to know about a trace: facts about tracks, display names, clocks, and the API call that
// caused each piece of device work.
#pragma once

#include <tsl/robin_map.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/sorted_file.h"
#include "base/result.h"
#include "query/engine/relation.h"
#include "trace/call_key.h"
#include "trace/trace.h"
#include "trace/write/scratch.h"
#include "walk/time/clock.h"

namespace tacho::query {

class TraceFacts {
 public:
  static Result<std::shared_ptr<TraceFacts>> make(std::shared_ptr<const trace::Trace> trace);

  const trace::Trace& trace() const { return *trace_; }

  struct Track {
    int64_t process = 0;  // row
    int64_t pid = 0, tid = 0;
    int64_t device = 0;  // row
    int64_t gpu = 0;     // the device's index
    int64_t native = 0, context = 0;
    int64_t queue = 0, sequence = 0;  // as in .rpd files
    bool cuda = false;
  };
  /// Facts about a row of table track; row 0's for a row that does not exist.
  const Track& track(int64_t row) const {
    return tracks_[row >= 0 && row < static_cast<int64_t>(tracks_.size()) ? static_cast<size_t>(row) : 0];
  }

  /// The row of the string table that a dimension's cell names; 0 if it names none, as in a damaged file.
  int64_t string_row(event::Table table, int64_t row, int column) const {
    const int64_t named = trace_->cell(table, row, column);
    return named > 0 && named < trace_->rows(event::Table::kString) ? named : 0;
  }
  /// The readable form of a kernel's name, given the string row of that name. Valid as long as `scratch` stays
  /// untouched.
  std::string_view readable(int64_t string_row, std::string& scratch);

  /// Row (from 0) of the first API call in `process` with this correlation; -1 if there is none. The first call of this
  /// function reads all API calls; errors go to status().
  int64_t cause(int64_t process, int64_t correlation);
  /// Duration (ns; kUnknown if still open at exit) and track of the API call in `row`.
  int64_t call_duration(int64_t row) { return call_cell(row, 1); }
  int64_t call_track(int64_t row) { return call_cell(row, 0); }
  const Status& status() const { return status_; }

  walk::OutputClock& monotonic() { return *monotonic_; }
  walk::OutputClock& boottime() { return *boottime_; }

 private:
  // The correlations of one process that share their upper half. Drivers count them up, so an array holds the rows of
  // their calls: row + 1, 0 = none.
  struct Range {
    int64_t process = 0, upper = 0;
    uint32_t least = UINT32_MAX, most = 0;
    int64_t calls = 0;
    bool dense = false;
    uint64_t first = 0;  // index of `least` in the array of all ranges
  };
  Range* range_of(int64_t process, int64_t upper, bool make);
  Status index_causes();
  int64_t call_cell(int64_t row, int which);

  std::shared_ptr<const trace::Trace> trace_;
  std::vector<Track> tracks_;
  tsl::robin_map<int64_t, std::unique_ptr<std::string>> readable_;
  bool demangle_ = true;
  std::unique_ptr<walk::OutputClock> monotonic_, boottime_;
  std::vector<Range> ranges_;
  tsl::robin_map<uint64_t, std::vector<uint32_t>> range_index_;
  Range* last_range_ = nullptr;
  trace::Scratch rows_;
  KeyIndex<int64_t, trace::CallKey> sparse_;  // rows of calls whose correlations are far apart
  struct CallChunk {
    size_t chunk = SIZE_MAX;
    int64_t first_row = 0, rows = 0;
    std::vector<int64_t> columns[2];  // track, duration
    bool decoded[2] = {};
  };
  std::vector<int64_t> call_chunks_;  // their first rows
  std::array<CallChunk, 8> call_cache_;
  CallChunk* last_chunk_ = nullptr;
  bool indexed_ = false;
  Status status_;
};

/// The strings of a trace as rows from 0 (row 0 is ""), followed by the words that only one dialect has.
class TraceStrings : public Store {
 public:
  TraceStrings(std::shared_ptr<TraceFacts> facts, size_t words);
  size_t chunks(int table) const override;
  ChunkInfo chunk(int table, size_t chunk) const override;
  int64_t rows(int) const override { return strings_ + words_; }
  bool entries(int, size_t, int, std::vector<int64_t>&) const override { return false; }
  std::unique_ptr<trace::TimeCursor> by_time(int, std::span<const int>, int64_t, int64_t) const override {
    return nullptr;
  }
  const std::string& name() const override { return facts_->trace().path(); }
  int64_t strings() const { return strings_; }

 protected:
  Status decode(int table, size_t chunk, int column, std::vector<int64_t>& values) override;

 private:
  std::shared_ptr<TraceFacts> facts_;
  int64_t strings_, words_;
};

}  // namespace tacho::query
