// Operators of a trace as findings need them: far below their roof and why, converting their inputs, in a slow type,
// for few rows, unfused.
#pragma once

#include <optional>

#include "analysis/findings/operator_roofs.h"
#include "base/result.h"
#include "trace/trace.h"

namespace tacho::efficiency {

/// The part of a roof, in percent, below which an operator is worth a look, and what healthy ones of its kind reach.
/// Between the two it is one only if a cause decides.
inline constexpr double kLowCompute = 30, kLowMemory = 50, kHealthyCompute = 50, kHealthyMemory = 70;

/// nullopt for a trace without operators that a model applies to.
Result<std::optional<analysis::OperatorRoofs>> operator_roofs(const trace::Trace& trace);

}  // namespace tacho::efficiency
