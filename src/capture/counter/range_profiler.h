// Collecting hardware counters of CUDA kernels inside a target (range_profiler.cpp).
#pragma once

namespace tacho::capture::counter {

/// Called in cuInit in place of the tracing session when the run collects counters. False when nothing can be
/// collected; the reason was said.
bool start_range_profiler(const char* folder);

}  // namespace tacho::capture::counter
