// The roofline as a plot of characters with logarithmic axes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "metric/analysis/roofline_points.h"

namespace tacho::metric {

/// Roofs as lines and points as digits (the point's number, at its HBM intensity; where that is missing at
/// L2's), with both axes labelled. Empty when there is nothing to draw.
std::string roofline_plot(std::span<const Roof> roofs, std::span<const IntensityPoint> points, size_t width,
                          size_t height);

}  // namespace tacho::metric
