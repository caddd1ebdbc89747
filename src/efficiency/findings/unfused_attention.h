// Attention that writes its scores to memory: products, softmax and what lies between, where a fused kernel would keep
// the scores on the chip.
#pragma once

#include <span>

#include "analysis/findings/operator_roofs.h"
#include "analysis/operators/operators.h"
#include "efficiency/operator_work.h"
#include "trace/trace.h"

namespace tacho::efficiency {

/// Percent of a roof that fused kernels reach, from short sequences and unusual masks to long sequences. At best:
/// FlashAttention-2, arXiv:2307.08691 (73 % of an A100's peak forward, 63 % backward), FlashAttention-3,
/// arXiv:2407.08608 (75 % of an H100's).
inline constexpr double kFusedLeast = 30, kFusedMost = 75;

/// Two forms are found. Calls of scaled_dot_product_attention without a fused kernel
/// (aten::_scaled_dot_product_attention_math) count with all below them. Attention by hand is a softmax over the last
/// dimension of the scores, a product that writes such scores and another that reads them; of it counts what reads or
/// writes tensors of the scores' dimensions, backwards, too. A fused kernel computes the same products - backwards one
/// of the forward ones once more - and moves their other operands.
void unfused_attention(const trace::Trace& trace, const analysis::OperatorTree& tree, const Efficiency& efficiency,
                       analysis::OperatorShare& share);

}  // namespace tacho::efficiency
