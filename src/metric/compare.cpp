// Matching and differences of runs.
#include "metric/compare.h"

#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace tacho::metric {

namespace {

std::optional<double> number(const report::Cell& cell) {
  if (const auto* value = std::get_if<double>(&cell)) return *value;
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
  return std::nullopt;
}

std::optional<double> change(std::optional<double> base, std::optional<double> other) {
  if (!base || !other) return std::nullopt;
  if (*base == *other) return 0;
  if (!std::isfinite(*base) || !std::isfinite(*other)) return std::nullopt;
  if (*base == 0)
    return *other > 0 ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  return (*other - *base) / std::fabs(*base) * 100;
}

}  // namespace

Comparison compare(std::span<const Analysis> runs) {
  using Key = std::pair<std::string_view, std::int32_t>;
  struct Place {
    const ResultTable* table;
    const ResultRow* row;
  };
  std::vector<std::map<Key, Place>> index(runs.size());
  for (std::size_t r = 1; r < runs.size(); ++r)
    for (const ResultTable& table : runs[r].all().tables)
      for (const ResultRow& row : table.rows) index[r][{row.metric->slug, row.channel}] = {&table, &row};

  Comparison result;
  for (const ResultTable& table : runs.front().all().tables) {
    if (!table.table->comparable) continue;
    ComparedTable out;
    out.base = &table;
    for (std::size_t c = 0; c < table.table->columns.size(); ++c)
      if (table.table->columns[c].role == ColumnRole::Value) out.value_columns.push_back(c);
    for (const ResultRow& row : table.rows) {
      ComparedRow compared;
      compared.base = &row;
      bool everywhere = true;
      std::vector<Place> others;
      for (std::size_t r = 1; r < runs.size(); ++r) {
        const auto found = index[r].find({row.metric->slug, row.channel});
        everywhere = everywhere && found != index[r].end();
        others.push_back(everywhere ? found->second : Place{});
      }
      if (!everywhere) {
        if (row.channel <= 0) result.unmatched.emplace_back(row.metric->slug);
        continue;
      }
      for (const std::size_t c : out.value_columns) {
        ComparedValue value;
        value.values.push_back(number(row.cells[c]));
        value.percent.emplace_back(0);
        for (const Place& other : others) {
          const auto at = other.table->table->column(table.table->columns[c].key);
          value.values.push_back(at ? number(other.row->cells[*at]) : std::nullopt);
          value.percent.push_back(change(value.values.front(), value.values.back()));
        }
        compared.columns.push_back(std::move(value));
      }
      out.rows.push_back(std::move(compared));
    }
    result.tables.push_back(std::move(out));
  }
  return result;
}

LargestChange largest_change(const Comparison& comparison, bool counts_only) {
  LargestChange largest;
  for (const ComparedTable& table : comparison.tables)
    for (const ComparedRow& row : table.rows) {
      if (row.columns.empty()) continue;
      if (counts_only && (row.base->metric->kind == Kind::Rate || row.base->metric->slug == "kernel-time")) continue;
      for (std::size_t r = 1; r < row.columns.front().percent.size(); ++r) {
        const std::optional<double> percent = row.columns.front().percent[r];
        if (!percent || std::fabs(*percent) <= largest.percent) continue;
        largest = {std::fabs(*percent), row.base->id, std::string(row.base->metric->name), r};
      }
    }
  return largest;
}

}  // namespace tacho::metric
