// The text of --explain: how tacho computes one metric on one run.
#pragma once

#include <string>

#include "metric/catalog/catalog.h"
#include "metric/formula/program.h"

namespace tacho::metric {

/// Text for a terminal: the metric's meaning, its formulas, the inputs with their values and the value of every step.
/// Tables fit into `width` columns; 0 = any.
std::string explain_metric(const Metric& metric, const MetricTable& table, const std::vector<Cell>& cells,
                           std::string_view id, const Environment& environment, size_t width);

}  // namespace tacho::metric
