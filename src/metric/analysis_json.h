// The JSON of an analysis, schema tacho-analysis/1 (docs/commands/analyze.md describes it).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "metric/analysis.h"
#include "metric/compare.h"

namespace tacho::metric {

struct JsonOptions {
  bool per_kernel = false;  ///< adds "kernels": the tables of every kernel for itself
  /// Adds "inputs": formulas, specification values and counter columns, so that a reader (the HTML report)
  /// can evaluate any choice of dispatches and any normalisation itself. Left out where there are more values
  /// than this.
  std::size_t most_input_values = 0;
};

/// One document for one or several runs; the first is the baseline, all are also in "runs" when there are
/// several.
std::string to_json(std::span<const Analysis> runs, const JsonOptions& options);

}  // namespace tacho::metric
