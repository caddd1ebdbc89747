// Collecting hardware counters of CUDA kernels inside a target (range_profiler.cpp).
#pragma once

namespace tacho::capture::counter {

/// Called in cuInit in place of the tracing session when the run collects counters. False when nothing can be
/// collected; the reason was said.
bool start_range_profiler(const char* folder);

/// Before _exit: what is measured is written. Nothing where a launch is under way.
void finish_before_exit();

}  // namespace tacho::capture::counter
