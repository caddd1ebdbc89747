// One rank's trace in one pass: how its GPU spent the time, and every collective with what came before it. Memory is
// bounded by the number of collectives and steps of one rank; what is kept for later goes to files without a name.
#pragma once

#include "base/result.h"
#include "ranks/read/rank_run.h"
#include "ranks/read/step_marks.h"
#include "trace/trace.h"

namespace tacho::ranks {

/// The rank's pass. `run` comes with file, rank and process. Where nothing marks steps, `period` says where they begin.
/// Errors: damaged data, no room for a temporary file.
Status pass_over(const trace::Trace& trace, const Period& period, Names& names, Spools& spools, RankRun& run);

}  // namespace tacho::ranks
