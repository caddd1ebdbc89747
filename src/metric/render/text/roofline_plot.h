// Draws the roofline as a character plot with logarithmic axes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "metric/analysis/roofline_points.h"

namespace tacho::metric {

/// The name of a roof in text: its slug, or what the vendor calls it where that is another word ("DRAM").
std::string shown_roof(const RooflineModel& model, const std::string& slug);

/// Roofs as lines and points as their numbers (at their HBM intensity; where that is missing at L2's), with both axes
/// labelled; `numbers` has one for each point. Empty when there is nothing to draw.
std::string roofline_plot(std::span<const Roof> roofs, std::span<const IntensityPoint> points,
                          std::span<const size_t> numbers, const RooflineModel& model, size_t width, size_t height);

}  // namespace tacho::metric
