// Reductions as operations (reduction.h).
#include "metric/analysis/reduction.h"

namespace tacho::metric {

std::pair<Op, double> reduction_op(Reduction reduction) {
  switch (reduction) {
    case Reduction::kNone:
      return {Op::kNone, 0};
    case Reduction::kAvg:
      return {Op::kAvg, 0};
    case Reduction::kMin:
      return {Op::kMin, 0};
    case Reduction::kMax:
      return {Op::kMax, 0};
    case Reduction::kMedian:
      return {Op::kMedian, 0};
    case Reduction::kStd:
      return {Op::kStd, 0};
    case Reduction::kQ1:
      return {Op::kQuantile, 0.25};
    case Reduction::kQ3:
      return {Op::kQuantile, 0.75};
    case Reduction::kSum:
      return {Op::kSum, 0};
  }
  return {Op::kNone, 0};
}

}  // namespace tacho::metric
