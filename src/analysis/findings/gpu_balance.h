// How evenly the GPUs of one run share its work. A merged trace may hold runs that have nothing to do with each other.
#pragma once

#include <cstdint>

#include "analysis/time/activity.h"
#include "base/result.h"
#include "trace/trace.h"

namespace tacho::analysis {

/// The device's work without collectives that ran alone, ns: those wait for others.
int64_t own_work(const DeviceActivity& device);

/// GPUs of one run, or of runs that are ranks of one job. Runs are ranks of one job if each has a rank number of its
/// own, or, where none has a number, if they ran about as many collectives, and in either case at most an hour apart.
struct GpuBalance {
  const DeviceActivity* busiest = nullptr;  ///< nullptr: no GPU did anything
  const DeviceActivity* least = nullptr;
  int64_t gpus = 0, mean = 0;  ///< that did something; their mean own_work(), ns
  /// From the first to the last event of these runs, ns: of a trace that holds other runs, too, a part of its time.
  int64_t length = 0;
};

/// Of the run whose busiest GPU works longest beyond the mean. Errors: damaged data.
Result<GpuBalance> gpu_balance(const trace::Trace& trace, const Activity& activity);

}  // namespace tacho::analysis
