// Collects counters from formulas (wanted.h).
#include "counter/wanted.h"

#include <set>

#include "metric/analysis/roofline_points.h"
#include "metric/expression/expression.h"
#include "metric/formula/program.h"
#include "workload/workload.h"

namespace tacho::counter {

namespace {

class Collector {
 public:
  explicit Collector(const metric::Catalog& catalog) : catalog_(catalog) {}

  /// Adds the counters in a formula. Unless `level` is "", the metric reads them all from that level's pass.
  Status add(std::string_view text, std::string_view level = {}) {
    const auto formula = metric::parse_formula(text);
    if (!formula) return fail("{} in the formula \"{}\"", formula.error().message, text);
    for (const metric::FormulaStep& step : formula->steps) {
      if (step.op == metric::FormulaOp::kCounter && step.first < 0) {
        if (workload::is_id_column(step.text)) continue;
        counters.insert(level.empty() ? std::string(step.text) : fmt::format("{}:{}", level, step.text));
      } else if (step.op == metric::FormulaOp::kCounter || step.op == metric::FormulaOp::kChannel ||
                 step.op == metric::FormulaOp::kSumOf) {
        counters.insert(std::string(step.text) + "[");
      } else if (step.op == metric::FormulaOp::kValue) {
        if (!level.empty() && step.text == "denom") counters.insert(fmt::format("{}:SQ_WAVES", level));
        TACHO_TRY(add_value(step.text));
      }
    }
    return {};
  }

  std::set<std::string> counters;

 private:
  Status add_value(std::string_view name) {
    if (!values_.insert(std::string(name)).second) return {};
    if (name == "denom") {
      for (const std::string_view normalisation : {"per_wave", "per_cycle", "per_second", "per_kernel"}) {
        const std::string_view formula =
            metric::builtin_formula("denom", normalisation, metric::denominator_of(catalog_, normalisation));
        if (formula.empty()) continue;
        TACHO_TRY(add(formula));
      }
      return {};
    }
    const std::string_view formula = metric::builtin_formula(name, "per_kernel");
    return formula.empty() ? Status() : add(formula);
  }

  const metric::Catalog& catalog_;
  std::set<std::string> values_;
};

// True for a metric that needs its own level pass, one more run of the whole program, to fill one cell, and that never
// had a value in 3.3.0.
bool only_when_asked_for(const metric::Metric& metric) {
  if (metric.coll_level.empty() || metric.compat_cells.empty()) return false;
  for (const metric::Cell& cell : metric.compat_cells)
    if (!cell.formula.empty() && cell.formula != "None") return false;
  return true;
}

}  // namespace

Result<WantedCounters> wanted_counters(const metric::Catalog& catalog, std::span<const metric::Selection> selections) {
  Collector collector(catalog);
  WantedCounters wanted;
  std::set<std::string> levels;
  std::set<const metric::Metric*> seen;
  const auto add = [&](const metric::MetricTable& table, const metric::Metric& metric) -> Status {
    if (!seen.insert(&metric).second) return {};
    ++wanted.metrics;
    for (size_t c = 0; c < metric.cells.size() && c < table.columns.size(); ++c)
      if (table.columns[c].role == metric::ColumnRole::kValue && !metric.cells[c].formula.empty())
        if (const Status added = collector.add(metric.cells[c].formula, metric.coll_level); !added)
          return fail("metric {}: {}", metric.slug, added.error().message);
    if (!metric.coll_level.empty()) levels.insert(std::string(metric.coll_level));
    return {};
  };
  // The roofline's points are not metrics: when the roofline is selected, collect the counters they are computed from.
  for (const metric::Selection& selection : selections) {
    if (selection.block == nullptr || selection.block->number != 4 || selection.metric != nullptr) continue;
    const metric::IntensityFormulas formulas = metric::intensity_formulas(catalog.facts, "", false);
    for (const std::string& text :
         {formulas.flops, formulas.l1_bytes, formulas.l2_bytes, formulas.hbm_bytes, formulas.lds_bytes})
      if (!text.empty()) TACHO_TRY(collector.add(text));
    break;
  }
  for (const metric::Block& block : catalog.blocks)
    for (const metric::MetricTable& table : block.tables)
      for (const metric::Metric& metric : table.metrics) {
        bool chosen = selections.empty() && !only_when_asked_for(metric);
        for (const metric::Selection& selection : selections)
          chosen = chosen || (selection.block == &block && (selection.table == nullptr || selection.table == &table) &&
                              (selection.metric == nullptr || selection.metric == &metric));
        if (chosen) TACHO_TRY(add(table, metric));
      }
  // Always collect the denominator.
  TACHO_TRY(collector.add("1 / $denom"));
  wanted.counters.assign(collector.counters.begin(), collector.counters.end());
  wanted.levels.assign(levels.begin(), levels.end());
  return wanted;
}

}  // namespace tacho::counter
