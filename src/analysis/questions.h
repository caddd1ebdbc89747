// The questions behind `tacho report`: gaps, launch delay, queue depth, overlap, exclusive time, histogram of
// durations. They cover rocmProfileData's helpful queries, but keep GPUs and threads apart where those mix them. The
// trace must outlive the answer.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/answer.h"
#include "trace/trace.h"

namespace tacho::analysis {

/// "GPU 0", "0: Instinct MI300X": a device (row) in these answers; "GPU 1 (GPU 0)" where another device has its number
/// and name, with DeviceNumbers::text() in front.
std::string gpu_name(const trace::Trace& trace, int64_t device);

/// Per GPU: the times between two operations in which nothing ran. Lists separately the gaps during which the next
/// operation had already been requested (its API call began before the previous operation ended): time lost between
/// kernels.
Result<report::Answer> gaps(const trace::Trace& trace);

/// Per GPU, API function and kernel: time from the end of the API call to the start of the kernel, for launches on an
/// idle GPU (every operation requested before had finished).
Result<report::Answer> launch_delay(const trace::Trace& trace);

/// Per GPU: how long each number of operations was pending. An operation is pending from the start of its API call to
/// its own end.
Result<report::Answer> queue_depth(const trace::Trace& trace);

/// Per GPU: how long each number of operations ran at the same time, and how long copies overlapped kernels.
Result<report::Answer> overlap(const trace::Trace& trace);

/// Exclusive time of API calls, operators, functions and markers (per thread) and of GPU operations (per GPU). Time
/// counts only for the innermost call or range or, on a GPU, for the operation that began last. Percentages are of the
/// row's kind; functions of Python that only wait are the last kind.
Result<report::Answer> exclusive(const trace::Trace& trace);

/// GPU operations by duration: count and total time of each bin between the bounds (ns, ascending).
Result<report::Answer> bins(const trace::Trace& trace, std::span<const int64_t> bounds);
inline constexpr int64_t kDefaultBins[] = {10'000, 25'000, 100'000, 1'000'000};

}  // namespace tacho::analysis
