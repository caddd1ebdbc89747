// The steps of training that a trace holds, as model FLOPs utilisation counts them.
#pragma once

#include "base/result.h"
#include "efficiency/operator_work.h"
#include "trace/trace.h"

namespace tacho::efficiency {

/// Sets EfficiencyOptions::steps and step_ns where torch.profiler marked steps of the trace's only process.
/// Errors: damaged data.
Status find_steps(const trace::Trace& trace, EfficiencyOptions& options);

}  // namespace tacho::efficiency
