// Cuts a span of time out of a trace, and merges several traces into one.
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

/// Copies the rows that began at `from` ... `to` (ns, both included). Device work follows the API call that
/// caused it, whenever it ran; without one its own start decides. Counter values follow their dispatch, links
/// need both their ends. Dimension rows and strings that nothing refers to are left out.
Status trim_into(const trace::Trace& trace, trace::TraceWriter& writer, int64_t from, int64_t to,
                 TrimCounts& counts);

struct MergeInput {
  std::shared_ptr<const trace::Trace> trace;
  std::string name;  // for messages
};

/// Copies all inputs. Each becomes a run of its own, so that processes with equal numbers stay apart. Traces
/// of other machines are shifted so that equal moments of CLOCK_REALTIME coincide; a note names those for
/// which that is not known.
Status merge_into(const std::vector<MergeInput>& inputs, trace::TraceWriter& writer);

}  // namespace tacho::analysis
