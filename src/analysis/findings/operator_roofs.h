// Input of findings from outside this room: how far operators stay below their roofs, and what they do that they need
// not (efficiency/findings/operator_findings.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/time/slow_stretches.h"

namespace tacho::analysis {

/// GPU time of operators that have something in common.
struct OperatorShare {
  int64_t ns = 0;
  int64_t saved = 0;               ///< of it, what could be saved at most
  std::string worst;               ///< the costliest of them: "aten::mm [[8, 4096], [4096, 4096]]"
  std::vector<std::string> lines;  ///< one for each of the costliest
  int64_t saved_least = 0;         ///< and what could be saved at least
  std::string what = {};           ///< of which kinds it is, in words
};

/// Operators that are far below what the device can do, and kernels that are near it.
struct OperatorRoofs {
  int64_t gpu = 0;                   ///< GPU time of the trace, ns; of operators with shapes, where these were sampled
  double part = 1;                   ///< of the operators' GPU time: what `gpu` is, where shapes were sampled
  std::string sampled;               ///< a sentence, where shapes were sampled
  int64_t lost = 0;                  ///< time of those operators above what their roofs ask, ns
  int64_t lost_least = 0;            ///< above what healthy operators of their kind take, ns
  int64_t operators = 0;             ///< how many: rows of operator, shapes and phase
  int64_t modelled = 0;              ///< GPU time of all operators that were held against a roof, ns
  std::string worst;                 ///< the costliest of them
  double percent = 0;                ///< of its roof
  std::string bound;                 ///< "memory"
  std::vector<std::string> lines;    ///< one for each of the costliest, with its causes
  std::vector<bool> near_peak = {};  ///< by row of table kernel: it reaches most of the roof
  std::vector<SlowStretch> slow = {};  ///< by launches and shapes
  OperatorShare converting;            ///< matrix operators that change type or layout of their inputs: that time
  OperatorShare single;                ///< matrix products of 32-bit numbers, where the device has a faster type
  OperatorShare few_rows;              ///< matrix products that read their weights for few rows
  OperatorShare unfused;               ///< attention that writes its scores to memory
  OperatorShare doubles;               ///< operators on 64-bit floating-point numbers
  OperatorShare copying;               ///< copies on the device outside of operators with matrix work
  OperatorShare optimizer;             ///< optimizers that step one tensor at a time
};

}  // namespace tacho::analysis
