// Columns and cells as reports show them (columns.h).
#include "metric/render/text/columns.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tacho::metric {

std::optional<double> number_of(const report::Cell& cell) {
  if (const auto* value = std::get_if<double>(&cell)) return *value;
  if (const auto* whole = std::get_if<int64_t>(&cell)) return static_cast<double>(*whole);
  return std::nullopt;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// rocprof-compute 3.4 and later say "Percent of Peak".
static bool names_column(std::string_view text, const metric::MetricColumn& column) {
  const std::string name = lower(text) == "percent of peak" ? "pct of peak" : lower(text);
  return name == lower(column.title) || name == column.key;
}

bool column_chosen(const TextOptions& options, const metric::MetricColumn& column, size_t index) {
  if (options.columns.empty()) return true;
  for (const std::string& text : options.columns) {
    size_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc{} && end == text.data() + text.size()) {
      if (number == index) return true;
    } else if (names_column(text, column)) {
      return true;
    }
  }
  return false;
}

double round_decimals(double value, int decimals) {
  const double scale = std::pow(10.0, decimals);
  return std::isfinite(value) && std::isfinite(value * scale) ? std::nearbyint(value * scale) / scale : value;
}

void apply_display_faults(const ResultTable& table, const ResultRow& row, const AnalysisOptions& options,
                          std::vector<report::Cell>& cells) {
  size_t unit_at = cells.size();
  for (size_t c = 0; c < table.table->columns.size(); ++c)
    if (table.table->columns[c].role == ColumnRole::kUnit) unit_at = c;
  if (unit_at == cells.size()) return;
  std::string unit = normalised_unit(row.metric->compat_unit.empty() ? row.metric->unit : row.metric->compat_unit,
                                     options.normalisation);
  unit = capitalised(unit);
  if (lower(unit).find("ns") != std::string::npos) {
    // The true times were converted already; the others are divided here.
    const double divisor = row.metric->unit == "ns" ? 1 : time_unit_divisor(options.time_unit);
    for (size_t c = 0; c < cells.size(); ++c) {
      const std::string_view title = table.table->columns[c].title;
      if (title != "Avg" && title != "Min" && title != "Max") continue;
      if (auto* value = std::get_if<double>(&cells[c])) *value /= divisor;
    }
    unit = options.time_unit;
  }
  cells[unit_at] = std::move(unit);
}

std::string capitalised(std::string_view unit) {
  std::string text = lower(unit);
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

Status check_columns(const Catalog& catalog, const std::vector<std::string>& columns) {
  for (const std::string& text : columns) {
    size_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_number = error == std::errc{} && end == text.data() + text.size();
    bool found = false;
    std::vector<std::string> known;
    for (const Block& block : catalog.blocks)
      for (const metric::MetricTable& table : block.tables)
        for (size_t c = 0; c < table.columns.size(); ++c) {
          found = found || (is_number ? number == c : names_column(text, table.columns[c]));
          if (block.number <= 10 && std::find(known.begin(), known.end(), table.columns[c].title) == known.end())
            known.emplace_back(table.columns[c].title);
        }
    if (found) continue;
    std::string list;
    for (const std::string& title : known) list += (list.empty() ? "" : ", ") + title;
    return fail(
        "--cols {}: no table has such a column; give numbers counted from 0 (0 is the metric's name) or titles: {}",
        text, list);
  }
  return {};
}

}  // namespace tacho::metric
