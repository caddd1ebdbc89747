// Why an operator stays below its roof, as far as shapes, grids and names of kernels tell.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "efficiency/operator_work.h"

namespace tacho::efficiency {

/// A product with fewer rows or columns reads its larger input for little work.
inline constexpr double kFewRows = 64;

struct RoofCause {
  std::string text;
  bool decides = false;  ///< it explains by itself why much of the roof is out of reach
};

/// The most telling first; empty if the trace does not tell why. `units`: compute units, 0 = unknown.
std::vector<RoofCause> causes_of(const trace::Trace& trace, const OperatorWork& work, int64_t units);

/// Workgroups of a kernel: by its launch, else by its tiles for a product's result; 0 = unknown.
int64_t workgroups_of(const trace::Trace& trace, int64_t kernel, const OperatorWork& work);

/// "9.3 %", "41 %".
std::string percent_text(double percent);

/// "aten::mm [[8, 4096], [4096, 4096]]", without the empty lists of values behind the last tensor.
std::string operator_text(std::string_view name, std::string_view shapes);

}  // namespace tacho::efficiency
