// Ranges whose begins and ends are rows of their own.
#pragma once

#include <cstdint>
#include <functional>

#include "base/files/sorted_file.h"
#include "base/result.h"
#include "event/schema.h"
#include "format/import/bad_rows.h"
#include "trace/write/writer.h"

namespace tacho::format::imported {

/// Pairs begins and ends by lane, time and name, in whatever order the file has them. A lane is a line whose ranges
/// nest: a thread's track, or what a tool's asynchronous begins and ends share, such as (category, id, scope). An end
/// with a name closes the innermost open range of that name or without any; an end without a name closes the innermost
/// range. Of one moment the file's order counts, but an end that closes nothing waits for the begins of its moment that
/// stand behind it. Memory is bounded.
class RangePairs {
 public:
  /// `lane`: any number that the begin and its end share. `track`, `label`: the cells of the row. `name`: what an end's
  /// name may be compared with, 0 = none.
  void begin(int64_t lane, int64_t time, int64_t track, int64_t label, int64_t name = 0) {
    edges_.add({lane, time, ++order_, false, track, label, name});
  }
  /// `place`: the row's number in its file, for BadRows.
  void end(int64_t lane, int64_t time, int64_t name = 0, int64_t held = -1, int64_t place = 0) {
    edges_.add({lane, time, ++order_, true, held, place, name});
  }
  /// A begin whose row the caller makes: finish() hands back `held` and that of the end, numbers from 0 (-1 = none).
  void begin_held(int64_t lane, int64_t time, int64_t held, int64_t name) {
    edges_.add({lane, time, ++order_, false, kHeld, held, name});
  }
  /// `end`: kUnknown = it never ended.
  using HeldRange = std::function<Status(int64_t held, int64_t held_by_end, int64_t start, int64_t end)>;
  /// Adds the ranges, of those without an end with unknown duration (counted as LossReason::kOpenAtExit). Counts ends
  /// without a begin, and ranges within very many others, in `bad`.
  Status finish(trace::TraceWriter& writer, BadRows& bad, const HeldRange& held = {});

  static constexpr int64_t kHeld = -1;  // in place of a track

 private:
  struct RangeEdge {
    int64_t lane, time, order;
    bool ends;
    int64_t track, label, name;  // of an end: what it holds, its place, name
    bool operator<(const RangeEdge& other) const {
      if (lane != other.lane) return lane < other.lane;
      return time != other.time ? time < other.time : order < other.order;
    }
  };

  int64_t order_ = 0;
  SortedFile<RangeEdge> edges_;
};

}  // namespace tacho::format::imported
