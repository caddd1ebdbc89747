// Counters of whole devices in a run's summary (launch/run/device_samples.h).
#pragma once

#include <cstddef>

#include "report/sections.h"
#include "trace/trace.h"

namespace tacho::cli {

bool has_sampled_counters(const trace::Trace& trace);
/// A line for each sampled counter and device, at most `top`. Nothing for a trace without.
void add_sampled_counters(report::Sections& out, const trace::Trace& trace, size_t top);

}  // namespace tacho::cli
