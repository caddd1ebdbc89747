// A profile folder as a trace: its kernels with their counters, for formats of timelines.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "trace/trace.h"

namespace tacho::cli {

/// The dispatches of a profile folder (workload/workload.h) with the counters of its joined passes, in a temporary
/// trace. Those without times stand one behind the other without an end. Errors: those of reading the folder.
Result<std::shared_ptr<const trace::Trace>> trace_of_profile(const std::string& folder);

}  // namespace tacho::cli
