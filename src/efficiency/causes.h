// Why an operator stays below its roof, as far as shapes, grids and names of kernels tell; and the operators of a trace
// as findings need them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/findings/operator_roofs.h"
#include "efficiency/operator_work.h"

namespace tacho::efficiency {

/// The part of a roof, in percent, below which an operator is worth a look, and what healthy ones of its kind reach.
inline constexpr double kLowCompute = 30, kLowMemory = 50, kHealthyCompute = 50, kHealthyMemory = 70;

/// Sentences, the most telling first; empty if the trace does not tell why. `units`: compute units, 0 = unknown.
std::vector<std::string> causes_of(const trace::Trace& trace, const OperatorWork& work, int64_t units);

/// nullopt for a trace without operators that a model and a roof apply to.
Result<std::optional<analysis::OperatorRoofs>> operator_roofs(const trace::Trace& trace);

}  // namespace tacho::efficiency
