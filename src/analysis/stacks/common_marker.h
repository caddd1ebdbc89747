// Where the timelines of two runs of one program meet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "trace/trace.h"

namespace tacho::analysis {

/// The first begin of a marker in each of two traces.
struct CommonMarker {
  int64_t at_a = 0, at_b = 0;  // ns, trace time of each
  std::string text_a, text_b;  // they differ in numbers at most
};

/// Of the markers that both traces have, numbers in their texts aside ("ProfilerStep#7" is "ProfilerStep#3"): one that
/// names a step, an iteration, an epoch, a batch or a frame, ranges of these before marks, if there is one, else any,
/// ranges first too; of several the one that begins first in `a`. nullopt: they
/// have none in common.
Result<std::optional<CommonMarker>> first_common_marker(const trace::Trace& a, const trace::Trace& b);

}  // namespace tacho::analysis
