// The columns and cells of reports: which ones --cols chooses, and how --compat 3.3 changes values and units.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metric/analysis/analysis.h"
#include "metric/render/text/text_options.h"
#include "report/table.h"

namespace tacho::metric {

/// The cell's number, integers included; nothing for words and missing values.
std::optional<double> number_of(const report::Cell& cell);

/// ASCII letters in lower case.
std::string lower(std::string_view text);

/// Whether --cols (everything by default) shows the column at `index` of its table.
bool column_chosen(const TextOptions& options, const metric::MetricColumn& column, size_t index);

/// To that many decimals, ties to even; infinities stay.
double round_decimals(double value, int decimals);

/// The faults of upstream's display, for --compat 3.3: units capitalised as a word, and every row whose unit contains
/// the letters "ns" divided by the time unit and labelled with it.
void apply_display_faults(const ResultTable& table, const ResultRow& row, const AnalysisOptions& options,
                          std::vector<report::Cell>& cells);

/// Checks --cols against the catalog's columns; the error names the columns there are.
Status check_columns(const Catalog& catalog, const std::vector<std::string>& columns);

/// A unit as rocprof-compute 3.3 displays it ("GFLOP/s" -> "Gflop/s").
std::string capitalised(std::string_view unit);

}  // namespace tacho::metric
