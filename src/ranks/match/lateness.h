// The rank that made the others of one trace wait most, for the findings about that trace.
#pragma once

#include <optional>

#include "analysis/findings/findings.h"
#include "base/result.h"
#include "trace/trace.h"

namespace tacho::ranks {

/// nullopt for a trace of one rank, of ranks without collectives, or of more rows times ranks than are passed over in a
/// few seconds (kMostRows). `waited` is the others' mean.
Result<std::optional<analysis::RankLateness>> lateness(const trace::Trace& trace);
inline constexpr int64_t kMostRows = 100'000'000;

}  // namespace tacho::ranks
