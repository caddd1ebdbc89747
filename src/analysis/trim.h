// Cutting a span of time out of a trace, and putting several traces together.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "trace/trace.h"
#include "trace/writer.h"

namespace tacho::analysis {

struct TrimCounts {
  int64_t kept = 0, dropped = 0;  // rows of facts
};

/// Copies what began at `from` ... `to` (ns, both included). Device work goes with the API call that caused it, wherever it
/// ran itself; without one it goes by its own start. Counter values go with their dispatch, links with both their ends.
/// Dimension rows and strings that nothing refers to stay behind.
Status trim_into(const trace::Trace& trace, trace::TraceWriter& writer, int64_t from, int64_t to,
                 TrimCounts& counts);

struct MergeInput {
  std::shared_ptr<const trace::Trace> trace;
  std::string name;  // for messages
};

/// Copies all of them; every input becomes a run of its own, so that processes with equal numbers stay apart. Traces of other
/// machines are shifted so that equal moments of CLOCK_REALTIME coincide; where that is not known a note says so.
Status merge_into(const std::vector<MergeInput>& inputs, trace::TraceWriter& writer);

}  // namespace tacho::analysis
