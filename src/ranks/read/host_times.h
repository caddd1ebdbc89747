// What the host did while the GPU idled before a collective.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ranks/read/rank_run.h"
#include "trace/trace.h"

namespace tacho::ranks {

/// Fills Arrival::call and Arrival::range where the stretch before an arrival idled long enough to ask. `process`: a
/// row; 0 = all of the trace. `is_step`: by row of table label, ranges that say nothing since they mark whole steps.
/// Errors: damaged data.
Status add_host_times(const trace::Trace& trace, int64_t process, const std::vector<bool>& is_step, Names& names,
                      std::vector<Arrival>& arrivals);

}  // namespace tacho::ranks
