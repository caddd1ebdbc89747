// The operation of formulas behind a column's reduction.
#pragma once

#include <utility>

#include "metric/catalog/catalog.h"
#include "metric/expression/expression.h"

namespace tacho::metric {

/// {Avg -> AVG, Q1 -> QUANTILE 0.25, ...}
std::pair<FormulaOp, double> reduction_op(Reduction reduction);

}  // namespace tacho::metric
