// Renders the analysis as text: plain tables, or the box grid and headings of rocprof-compute. Also writes csv files of
// the same tables.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metric/analysis/analysis.h"
#include "report/table.h"

namespace tacho::metric {

struct TextOptions {
  bool boxed = false;  ///< rocprof-compute's look: Metric_ID column, box grid, every table with its own heading
  int decimals = 2;
  size_t max_stat_num = 10;          ///< rows of the Top Stats tables
  std::vector<std::string> columns;  ///< --cols: numbers from 0 or titles; empty = all
  bool description = false;          ///< --include-cols Description
  bool errors = false;               ///< --errors: how far each mean may be off, as repeats of a launch tell
  bool statistics_only = false;      ///< --list-stats
  bool per_kernel = false;
  bool full = false;       ///< every table; else the first screen alone, unless -b or a table's option asks for tables
  double report_diff = 0;  ///< several runs: mark what changed by more than this many percent
  bool roofline_dispatches = false;        ///< a point for every dispatch instead of every kernel
  std::vector<std::string> memory_levels;  ///< roofs of these only: "hbm", "l2", "l1", "lds"; empty: all
  /// of the roofs; empty: those that the kernels use, each under its own
  std::vector<std::string> data_types;
  report::Screen screen;
};

/// One report for one run, or the comparison of several with the first.
std::string to_text(std::span<const Analysis> runs, const TextOptions& options);

/// A table as it is saved: what one csv file of --save-dfs holds.
struct SavedTable {
  std::string file;  ///< "2.1_Speed-of-Light.csv"
  report::Table table;
};
/// Every table in full precision; with --compat 3.3 as upstream saves them: rounded, units as displayed.
std::vector<SavedTable> saved_tables(const Analysis& run, const TextOptions& options);

/// All metric values of all runs in one table: run, id, slug, metric, unit, column, value.
report::Table tidy_table(std::span<const Analysis> runs);

/// Checks --cols against the catalog's columns; the error names the columns there are.
Status check_columns(const Catalog& catalog, const std::vector<std::string>& columns);

/// A unit as rocprof-compute 3.3 displays it ("GFLOP/s" -> "Gflop/s").
std::string capitalised(std::string_view unit);

}  // namespace tacho::metric
