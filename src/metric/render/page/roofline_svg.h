// Draws the roofline as a self-contained SVG file: overlays several runs, has tooltips, light and dark styles.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metric/analysis/analysis.h"

namespace tacho::metric {

/// The range of the logarithmic axes.
enum class RooflineAxes {
  kFit,     ///< the points and the corners of the roofs
  kPoints,  ///< the decades of the points alone
  kWhole,   ///< 0.01 to 1000 FLOP/byte, as rocprof-compute's plots
};

struct SvgOptions {
  std::vector<std::string> data_types;     ///< of the roofs; empty: those that the kernels use
  std::vector<std::string> memory_levels;  ///< "hbm", "l2", "l1", "lds"; empty: hbm, l2 and l1
  bool dispatches = false;                 ///< a point for every dispatch (the 2000 longest)
  RooflineAxes axes = RooflineAxes::kFit;
};

/// The first run's points are circles, those of the others diamonds, squares and triangles. Kernels without FLOPs stand
/// on the left axis, as far below the roof of a level there as their bandwidth is below its. Fails when no run has a
/// point.
Result<std::string> roofline_svg(std::span<const Analysis> runs, const SvgOptions& options);

}  // namespace tacho::metric
