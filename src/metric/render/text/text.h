// Renders the analysis as text: plain tables, or the box grid and headings of rocprof-compute. Also writes csv files of
// the same tables.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "metric/analysis/analysis.h"
#include "metric/render/text/text_options.h"
#include "report/table.h"

namespace tacho::metric {

/// One report for one run, or the comparison of several with the first.
std::string to_text(std::span<const Analysis> runs, const TextOptions& options);

/// A table as it is saved: what one csv file of --save-dfs holds.
struct SavedTable {
  std::string file;  ///< "2.1_Speed-of-Light.csv"
  report::PrintedTable table;
};
/// Every table in full precision; with --compat 3.3 as upstream saves them: rounded, units as displayed.
std::vector<SavedTable> saved_tables(const Analysis& run, const TextOptions& options);

/// All metric values of all runs in one table: run, id, slug, metric, unit, column, value.
report::PrintedTable tidy_table(std::span<const Analysis> runs);

}  // namespace tacho::metric
