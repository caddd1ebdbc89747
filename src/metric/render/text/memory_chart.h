// Draws the memory chart (table 3.1) as a diagram of 120 columns: compute units, caches, fabric and memory, with
// figures at the arrows between them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tacho::metric {

/// The value of a metric of the chart by its slug, nothing where it is not computable.
using ChartLookup = std::function<std::optional<double>(std::string_view slug)>;

constexpr size_t kMemoryChartWidth = 120;

std::string memory_chart(const ChartLookup& value);

}  // namespace tacho::metric
