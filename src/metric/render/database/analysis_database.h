// The SQLite database of an analysis that AMD's ROCm Optiq opens: tables and views of rocprof-compute's schema 2.0.0
// (docs/commands/analyze.md lists them).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "metric/analysis/analysis.h"

namespace tacho::metric {

inline constexpr std::string_view kAnalysisSchema = "2.0.0";

/// Writes all runs, each as one workload, to `path`, which appears complete or not at all. Values of kernels and of the
/// whole run are those of the tables, in full precision; what is not computable has no row. Start and end of dispatches
/// count in ns from the run's first. `producer` names the program. Without `overwrite` an existing file is an error.
Status write_analysis_database(std::span<const Analysis> runs, const std::string& path, std::string_view producer,
                               bool overwrite);

/// The rows of the database's views as kernel.csv, kernel_metric.csv, workload_metric.csv and pc_sampling.csv in
/// `folder`, as rocprof-compute 3.9 writes them for --output-format csv.
Status write_analysis_views(std::span<const Analysis> runs, const std::string& folder, bool overwrite);

}  // namespace tacho::metric
