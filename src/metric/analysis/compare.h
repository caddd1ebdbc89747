// Comparison of several runs: the same metrics side by side, matched by slug, so that other architectures compare too.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "metric/analysis/analysis.h"

namespace tacho::metric {

/// One value of one metric in all runs.
struct ComparedValue {
  std::vector<std::optional<double>> values;  ///< one a run
  /// change against run 0; nullopt if one is missing; infinite from 0
  std::vector<std::optional<double>> percent;
};

struct ComparedRow {
  const ResultRow* base = nullptr;     ///< row of run 0
  std::vector<ComparedValue> columns;  ///< one a Value column of the table of run 0, in its order
};

struct ComparedTable {
  const ResultTable* base = nullptr;
  std::vector<size_t> value_columns;  ///< indices into the table's columns
  std::vector<ComparedRow> rows;      ///< metrics that all runs have
};

struct ComparedRuns {
  std::vector<ComparedTable> tables;
  std::vector<std::string> unmatched;  ///< slugs of run 0 that another run does not have
};

/// `everything`: also the tables that rocprof-compute leaves out of comparisons (the memory chart).
ComparedRuns compare(std::span<const Analysis> runs, bool everything = false);
/// The same of evaluations over parts of the runs, one of each.
ComparedRuns compare(std::span<const Evaluation* const> runs, bool everything = true);

/// Largest |change| over the first value column of every row.
struct LargestChange {
  double percent = 0;    ///< infinite if there was nothing before
  std::string id, name;  ///< of the metric
  std::string kernel;    ///< "" = over all dispatches
  size_t run = 0;
  size_t judged = 0;   ///< values that were compared
  size_t missing = 0;  ///< values of run 0 that another run lacks
};
/// `counts_only`: the counts do not vary from run to run. Leaves out times and values that depend on them (rates,
/// kernel times), and also compares the launches of every kernel and each kernel's own values, so that no kernel hides
/// behind the others.
LargestChange largest_change(std::span<const Analysis> runs, bool counts_only);

}  // namespace tacho::metric
