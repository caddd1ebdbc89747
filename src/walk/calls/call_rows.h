// Finds the row of the API call that caused device work, in any order of asking and however large the trace is.
#pragma once

#include <tsl/robin_map.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "trace/trace.h"
#include "trace/write/scratch.h"
#include "walk/calls/causes.h"

namespace tacho::walk {

/// Causes for those who want rows: drivers count correlations up, so an array by correlation holds most of them, which
/// costs 4 bytes a call on disk and one access a question.
class CallRows {
 public:
  /// The trace must outlive this.
  explicit CallRows(const trace::Trace& trace) : trace_(trace) {}
  CallRows(const CallRows&) = delete;
  CallRows& operator=(const CallRows&) = delete;

  /// The row (from 0, in file order) of the first API call in `process` (row) with this correlation; -1 if there is
  /// none. The first call of this function reads all API calls; errors go to status().
  int64_t find(int64_t process, int64_t correlation);
  /// Duration (ns; kUnknown if still open at exit), track and function of the API call in `row`.
  int64_t duration(int64_t row) { return cell(row, kDuration); }
  int64_t track(int64_t row) { return cell(row, kTrack); }
  int64_t function(int64_t row) { return cell(row, kFunction); }
  const Status& status() const { return status_; }

 private:
  // The correlations of one process that share their upper half: an array holds row + 1 of their calls, 0 = none.
  struct Range {
    int64_t process = 0, upper = 0;
    uint32_t least = UINT32_MAX, most = 0;
    int64_t calls = 0;
    bool dense = false;
    uint64_t first = 0;  // index of `least` in the array of all ranges
  };
  enum CallColumn : uint8_t { kTrack, kDuration, kFunction, kCallColumns };
  struct CallChunk {
    size_t chunk = SIZE_MAX;
    int64_t first_row = 0, rows = 0;
    std::array<std::vector<int64_t>, kCallColumns> columns;
    std::array<bool, kCallColumns> decoded{};
  };
  Range* range_of(int64_t process, int64_t upper, bool make);
  Status index();
  int64_t cell(int64_t row, CallColumn column);

  const trace::Trace& trace_;
  std::vector<Range> ranges_;
  tsl::robin_map<uint64_t, std::vector<uint32_t>> range_index_;
  Range* last_range_ = nullptr;
  trace::Scratch rows_;
  Causes<int64_t> sparse_;           // rows of calls whose correlations are far apart
  std::vector<int64_t> first_rows_;  // of the chunks of table api, and their end
  std::array<CallChunk, 8> chunks_;
  CallChunk* last_chunk_ = nullptr;
  bool indexed_ = false, any_sparse_ = false;
  Status status_;
};

}  // namespace tacho::walk
