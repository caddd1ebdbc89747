// How long a run was: one definition for all answers (docs/definitions.md).
#pragma once

#include <cstdint>

#include "base/result.h"
#include "trace/trace.h"

namespace tacho::walk {

/// From a moment to a later one, trace time in ns.
struct Span {
  int64_t first = 0, last = 0;
  int64_t length() const { return last - first; }
};

/// All that a timeline shows, marks and telemetry as well; its first is the zero of the times in texts and pages.
/// {0, 0} for a trace without events.
Span timeline_span(const trace::Trace& trace);

/// The run: from the first begin to the last end of all rows that are work of a device (dispatches, copies, fills) or
/// call-stack samples, and of all others that have a length. Rows that had not ended when the trace was closed count
/// with their begin. Marks, allocations and other moments do not stretch it. A trace of nothing but moments runs from
/// the first to the last of them; one without events is {0, 0}. Reads the rows of the outermost chunks alone, or the
/// sums of an aggregated trace. Errors: damaged data.
Result<Span> run_span(const trace::Trace& trace);

}  // namespace tacho::walk
