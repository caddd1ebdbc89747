// Matching and differences of runs.
#include "metric/analysis/compare.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace tacho::metric {

namespace {

std::optional<double> number(const report::Cell& cell) {
  if (const auto* value = std::get_if<double>(&cell)) return *value;
  if (const auto* whole = std::get_if<int64_t>(&cell)) return static_cast<double>(*whole);
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

bool depends_on_time(const Metric& metric) {
  return metric.kind == Kind::kRate || metric.slug == "kernel-time";
}

void judge(const ComparedRuns& comparison, bool counts_only, std::string_view kernel, LargestChange& largest) {
  for (const ComparedTable& table : comparison.tables)
    for (const ComparedRow& row : table.rows) {
      if (row.columns.empty() || (counts_only && depends_on_time(*row.base->metric))) continue;
      const ComparedValue& value = row.columns.front();
      for (size_t r = 1; r < value.percent.size(); ++r) {
        if (value.values.front()) ++(value.values[r] ? largest.judged : largest.missing);
        const std::optional<double> percent = value.percent[r];
        if (!percent || std::fabs(*percent) <= largest.percent) continue;
        largest.percent = std::fabs(*percent);
        largest.id = row.base->id;
        largest.name = row.base->metric->name;
        largest.kernel = kernel;
        largest.run = r;
      }
    }
  largest.missing += comparison.unmatched.size();
}

std::map<std::string_view, const KernelStatistics*> kernels_of(const Analysis& run) {
  std::map<std::string_view, const KernelStatistics*> kernels;
  for (const KernelStatistics& kernel : run.kernels())
    if (kernel.selected) kernels.emplace(run.workload().kernels[kernel.kernel], &kernel);
  return kernels;
}

}  // namespace

ComparedRuns compare(std::span<const Evaluation* const> runs, bool everything) {
  using Key = std::pair<std::string_view, int32_t>;
  struct Place {
    const ResultTable* table;
    const ResultRow* row;
  };
  std::vector<std::map<Key, Place>> index(runs.size());
  for (size_t r = 1; r < runs.size(); ++r)
    for (const ResultTable& table : runs[r]->tables)
      for (const ResultRow& row : table.rows) index[r][{row.metric->slug, row.channel}] = {&table, &row};

  ComparedRuns result;
  for (const ResultTable& table : runs.front()->tables) {
    if (!everything && !table.table->comparable) continue;
    ComparedTable out;
    out.base = &table;
    for (size_t c = 0; c < table.table->columns.size(); ++c)
      if (table.table->columns[c].role == ColumnRole::kValue) out.value_columns.push_back(c);
    for (const ResultRow& row : table.rows) {
      ComparedRow compared;
      compared.base = &row;
      bool everywhere = true;
      std::vector<Place> others;
      for (size_t r = 1; r < runs.size(); ++r) {
        const auto found = index[r].find({row.metric->slug, row.channel});
        everywhere = everywhere && found != index[r].end();
        others.push_back(everywhere ? found->second : Place{});
      }
      if (!everywhere) {
        if (row.channel <= 0) result.unmatched.emplace_back(row.metric->slug);
        continue;
      }
      for (const size_t c : out.value_columns) {
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

ComparedRuns compare(std::span<const Analysis> runs, bool everything) {
  std::vector<const Evaluation*> all;
  for (const Analysis& run : runs) all.push_back(&run.all());
  return compare(all, everything);
}

LargestChange largest_change(std::span<const Analysis> runs, bool counts_only) {
  LargestChange largest;
  judge(compare(runs), counts_only, "", largest);
  if (!counts_only) return largest;
  const auto base = kernels_of(runs.front());
  for (size_t r = 1; r < runs.size(); ++r) {
    const auto other = kernels_of(runs[r]);
    std::set<std::string_view> names;
    for (const auto* each : {&base, &other})
      for (const auto& [name, kernel] : *each) names.insert(name);
    for (const std::string_view name : names) {
      const auto before = base.find(name), now = other.find(name);
      const auto launches = [](bool there, auto at) { return there ? static_cast<double>(at->second->count) : 0.0; };
      const bool in_both = before != base.end() && now != other.end();
      const double percent =
          std::fabs(*change(launches(before != base.end(), before), launches(now != other.end(), now)));
      if (percent > largest.percent) {
        largest.percent = percent;
        largest.id = "0.1";
        largest.name = "Count";
        largest.kernel = name;
        largest.run = r;
      }
      if (!in_both) continue;
      const Evaluation one = runs.front().evaluate(before->second->kernel), two = runs[r].evaluate(now->second->kernel);
      const Evaluation* const both[] = {&one, &two};
      LargestChange own;
      judge(compare(both, false), counts_only, name, own);
      if (own.percent <= largest.percent) continue;
      own.run = r;
      own.judged = largest.judged;
      own.missing = largest.missing;
      largest = std::move(own);
    }
  }
  return largest;
}

}  // namespace tacho::metric
