// Comparison of several runs: the same metrics side by side, matched by slug, so that other architectures
// compare too.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "metric/analysis.h"

namespace tacho::metric {

/// One value of one metric in all runs.
struct ComparedValue {
  std::vector<std::optional<double>> values;  ///< one a run
  std::vector<std::optional<double>>
      percent;  ///< change against run 0; nullopt where one is missing; infinite from 0
};

struct ComparedRow {
  const ResultRow* base = nullptr;     ///< row of run 0
  std::vector<ComparedValue> columns;  ///< one a Value column of the table of run 0, in its order
};

struct ComparedTable {
  const ResultTable* base = nullptr;
  std::vector<std::size_t> value_columns;  ///< indices into the table's columns
  std::vector<ComparedRow> rows;           ///< metrics that all runs have
};

struct Comparison {
  std::vector<ComparedTable> tables;
  std::vector<std::string> unmatched;  ///< slugs of run 0 that another run's architecture does not have
};

Comparison compare(std::span<const Analysis> runs);

/// Largest |change| over the first value column of every row; 0 with one run.
struct LargestChange {
  double percent = 0;
  std::string id, name;
  std::size_t run = 0;
};
/// `counts_only`: what depends on time (rates, kernel times) is left out.
LargestChange largest_change(const Comparison& comparison, bool counts_only = false);

}  // namespace tacho::metric
