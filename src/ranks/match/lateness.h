// The rank that made the others of one trace wait most, for the findings about that trace.
#pragma once

#include <optional>

#include "analysis/findings/findings.h"
#include "base/result.h"
#include "trace/trace.h"

namespace tacho::ranks {

/// nullopt for a trace of one rank, for ranks without collectives, and for traces that would take more than a few
/// seconds (kMostRows: rows times ranks). `waited` is the others' mean.
Result<std::optional<analysis::RankLateness>> lateness(const trace::Trace& trace);
inline constexpr int64_t kMostRows = 100'000'000;

}  // namespace tacho::ranks
