// Table 21.1: PC samples by kernel, source line and instruction.
#pragma once

#include "metric/analysis/analysis.h"
#include "report/table.h"

namespace tacho::metric {

/// Empty when the run has no PC samples or -b leaves them out. It leaves out the kernels that -k leaves out; Pct is the
/// share of the samples of the others. Stochastic sampling adds how often the wave issued and what stalled it.
report::PrintedTable pc_sample_table(const Analysis& run);

}  // namespace tacho::metric
