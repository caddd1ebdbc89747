// Where a run's start-up ends and its repeated work begins, per device: what happens once at the start is not the
// character of the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "analysis/operators/places.h"
#include "base/result.h"
#include "trace/trace.h"

namespace tacho::analysis {

/// By DeviceNumbers::device(): when the work that repeats began, in trace time. Devices without a start-up of their own
/// are left out.
///
/// A kernel repeats that ran five times or more and went on for at least half of the time that was left when it first
/// ran. The work that repeats begins with the first launch of the kernels that, in the order of their first launches,
/// reach a tenth of the device time of all kernels that repeat: kernels that also served the start-up (fills, say) are
/// a small part of it. It is no start-up when more than a fifth of the device's kernels ran before, or when it is less
/// than a twentieth of the device's span.
Result<std::unordered_map<size_t, int64_t>> steady_starts(const trace::Trace& trace, const DeviceNumbers& numbers);

}  // namespace tacho::analysis
