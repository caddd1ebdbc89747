// Finds the launch of each piece of device work: the API call with its correlation and the ranges around that call, in
// one sweep over time, with bounded memory however large the trace is.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trace/read/rows.h"
#include "walk/calls/call_index.h"
#include "walk/calls/open_ranges.h"

namespace tacho::walk {

struct Launch {
  int64_t start = 0;                   // of the call, trace time
  int64_t duration = event::kUnknown;  // of the call, ns
  // Rows are 32 bits wide, since a million launches are kept.
  int32_t track = 0;     // of the calling thread
  int32_t function = 0;  // row of table function
  // The innermost of each kind that is open on the thread then; 0 = none, or not asked for.
  int32_t label = 0;            // push/pop marker: row of table label
  int32_t operator_around = 0;  // operator of a framework: row of table function
  int32_t python = 0;           // Python function: row of table function
};

/// Which rows of table function call a GPU's runtime: all but operators of frameworks and Python functions, which are
/// ranges around calls.
std::vector<bool> calls_of_runtimes(const trace::Trace& trace);

/// A CallIndex that fills itself: it follows the API calls up to a moment that only moves forward.
class Launches {
 public:
  enum class Around { kNothing, kRanges };
  /// With kRanges, launches have label, operator_around and python. The trace must outlive this object.
  Launches(const trace::Trace& trace, Around around);
  /// The call of `process` (row) with this correlation; nullptr = not found. Ask in ascending `time`, the start of the
  /// device work. Clocks may disagree, so it also looks at calls up to kClockSlack later. Valid until the next call.
  const Launch* find(int64_t process, int64_t correlation, int64_t time);
  /// True if the trace has a call that work can be tied to.
  bool any();
  /// The number of find() calls whose call may have been forgotten; forgotten_sentence() words it for users.
  int64_t forgotten() const { return index_.forgotten(); }
  /// The error if the API or marker table is damaged.
  Status status() const;

 private:
  using A = event::column::Api;
  using M = event::column::Marker;
  struct Open {
    enum : uint8_t { kLabel, kOperator, kPython } kind;
    int64_t row;
  };
  void read_call();
  void read_markers(int64_t time);

  const trace::Trace& trace_;
  std::vector<bool> calls_runtime_;  // by row of table function
  CallIndex<Launch> index_;
  OpenRanges<Open> open_;
  std::optional<trace::RowCursor<A::track, A::start, A::duration, A::dim, A::correlation>> calls_;
  std::optional<trace::RowCursor<M::track, M::start, M::duration, M::dim>> markers_;
  bool ranges_, more_calls_ = false, more_markers_ = false, any_ = false;
};

}  // namespace tacho::walk
