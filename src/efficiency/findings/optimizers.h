// Optimizers that step one tensor at a time, where lists of tensors or one fused kernel would do.
#pragma once

#include "analysis/findings/operator_roofs.h"
#include "analysis/operators/operators.h"
#include "efficiency/operator_work.h"
#include "trace/trace.h"

namespace tacho::efficiency {

/// Kernels in a step from which on it is said, and the part of the optimizer's time, in percent, that operators on
/// single tensors have.
inline constexpr int64_t kStepKernels = 50;
inline constexpr double kSinglePart = 70;
/// Elements that a fused AdamW step moves for each parameter (catalog/operators/models.yaml), and the part of the
/// memory's rate, in percent, at which it does.
inline constexpr double kFusedElements = 7, kFusedRate = 70;

/// What could be saved is GPU time beyond a fused AdamW step's over as many elements as the operator that worked on
/// most of them.
void single_tensor_optimizers(const trace::Trace& trace, const analysis::OperatorTree& tree,
                              const Efficiency& efficiency, analysis::OperatorShare& share);

}  // namespace tacho::efficiency
