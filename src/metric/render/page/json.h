// The JSON of an analysis, schema tacho-analysis/1 (docs/commands/analyze.md describes it).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "metric/analysis/analysis.h"
#include "metric/analysis/compare.h"

namespace tacho::metric {

struct JsonOptions {
  bool per_kernel = false;  ///< adds "kernels": the tables of every kernel for itself
  /// Adds "page" to every run: the tables as a program over all dispatches (metric/render/page/page.h).
  bool page = false;
};

/// One document for one or several runs; the first is the baseline, all are also in "runs" when there are several.
std::string to_json(std::span<const Analysis> runs, const JsonOptions& options);

}  // namespace tacho::metric
