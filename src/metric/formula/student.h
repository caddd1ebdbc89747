// Student's t: the half-width of a 95 % interval in standard errors.
#pragma once

#include <array>
#include <cstddef>

namespace tacho::metric {

/// The 97.5 % quantile for `freedom` >= 1 degrees of freedom; from 31 on within 0.002.
inline double student(double freedom) {
  constexpr std::array kQuantiles = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                     2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                     2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  const auto at = static_cast<size_t>(freedom);
  return at <= kQuantiles.size() ? kQuantiles[at - 1] : 1.96 + 2.4 / freedom;
}

}  // namespace tacho::metric
