// Input of findings from outside this room: how far operators stay below their roofs (efficiency/causes.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tacho::analysis {

/// Operators that are far below what the device can do, and kernels that are near it.
struct OperatorRoofs {
  int64_t gpu = 0;                   ///< GPU time of the trace, ns
  int64_t lost = 0;                  ///< time of those operators above what their roofs ask, ns
  int64_t lost_least = 0;            ///< above what healthy operators of their kind take, ns
  int64_t operators = 0;             ///< how many: rows of operator, shapes and phase
  int64_t modelled = 0;              ///< GPU time of all operators that were held against a roof, ns
  std::string worst;                 ///< the costliest of them: "aten::mm [[8, 4096], [4096, 4096]]"
  double percent = 0;                ///< of its roof
  std::string bound;                 ///< "memory"
  std::vector<std::string> lines;    ///< one for each of the costliest, with its causes
  std::vector<bool> near_peak = {};  ///< by row of table kernel: it reaches most of the roof
};

}  // namespace tacho::analysis
