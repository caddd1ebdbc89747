// Reductions as operations (reduction.h).
#include "metric/analysis/reduction.h"

namespace tacho::metric {

std::pair<FormulaOp, double> reduction_op(Reduction reduction) {
  switch (reduction) {
    case Reduction::kNone:
      return {FormulaOp::kNone, 0};
    case Reduction::kAvg:
      return {FormulaOp::kAvg, 0};
    case Reduction::kMin:
      return {FormulaOp::kMin, 0};
    case Reduction::kMax:
      return {FormulaOp::kMax, 0};
    case Reduction::kMedian:
      return {FormulaOp::kMedian, 0};
    case Reduction::kStd:
      return {FormulaOp::kStd, 0};
    case Reduction::kQ1:
      return {FormulaOp::kQuantile, 0.25};
    case Reduction::kQ3:
      return {FormulaOp::kQuantile, 0.75};
    case Reduction::kSum:
      return {FormulaOp::kSum, 0};
  }
  return {FormulaOp::kNone, 0};
}

}  // namespace tacho::metric
