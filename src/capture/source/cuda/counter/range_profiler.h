// Collects hardware counters of CUDA kernels inside a target.
#pragma once

namespace tacho::capture::counter {

/// Call in cuInit, instead of starting the tracing session, when the run collects counters. False when it cannot
/// collect; the user has been warned.
bool start_range_profiler(const char* folder);

/// Writes the measurements so far, before _exit. Does nothing while a launch is under way.
void finish_before_exit();

}  // namespace tacho::capture::counter
