// Collecting hardware counters of CUDA kernels inside a target (range_profiler.cpp).
#pragma once

namespace tacho::capture::counter {

/// Called in cuInit instead of starting the tracing session when the run collects counters. False when nothing can be
/// collected; the user has been told why.
bool start_range_profiler(const char* folder);

/// Writes what has been measured, before _exit. Does nothing while a launch is under way.
void finish_before_exit();

}  // namespace tacho::capture::counter
