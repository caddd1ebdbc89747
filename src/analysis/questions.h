// The questions behind `tacho report`: gaps, launch delay, queue depth, overlap, exclusive time, durations in bins. They
// cover rocmProfileData's helpful queries, per GPU and per thread where those mix them up. The trace must outlive the answer.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/answer.h"
#include "base/result.h"
#include "trace/trace.h"

namespace tacho::analysis {

/// Per GPU: times in which nothing ran between two operations; and of those the ones during which the next operation had
/// been asked for already (its API call began before the operation before it ended): time lost between kernels.
Result<Answer> gaps(const trace::Trace& trace);

/// Per GPU, API function and kernel: time from the end of the API call to the start of the kernel, for launches on an idle
/// GPU (nothing asked for before was still to be done).
Result<Answer> launch_delay(const trace::Trace& trace);

/// Per GPU: how long how many operations were asked for and not yet done (from the start of the API call to the end of the
/// operation).
Result<Answer> queue_depth(const trace::Trace& trace);

/// Per GPU: how long how many operations ran at the same time, and how long copies ran beside kernels.
Result<Answer> overlap(const trace::Trace& trace);

/// API calls and markers (per thread) and GPU operations (per GPU) by exclusive time: what ran inside or started later counts
/// for itself only. Shares are of the row's kind.
Result<Answer> exclusive(const trace::Trace& trace);

/// Operations by duration: counts and total times between the bounds (ns, ascending).
Result<Answer> bins(const trace::Trace& trace, std::span<const int64_t> bounds);
inline constexpr int64_t kDefaultBins[] = {10'000, 25'000, 100'000, 1'000'000};

}  // namespace tacho::analysis
