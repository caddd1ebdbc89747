// Reads one rank's trace in one pass: how its GPU spent the time, and every collective with the stretch before it.
// Memory is bounded by the number of collectives and steps of one rank; results go to unnamed files.
#pragma once

#include "base/result.h"
#include "ranks/read/rank_run.h"
#include "ranks/read/step_marks.h"
#include "trace/trace.h"

namespace tacho::ranks {

/// Passes over a rank's trace. The caller sets file, rank and process of `run`. If nothing marks steps, `period` says
/// where they begin. Errors: damaged data, no room for a temporary file.
Status pass_over(const trace::Trace& trace, const Period& period, Names& names, Spools& spools, RankRun& run);

}  // namespace tacho::ranks
