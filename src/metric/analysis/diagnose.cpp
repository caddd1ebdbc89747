// Evaluation of the rules and choice of what is worth saying.
#include "metric/analysis/diagnose.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tacho::metric {

namespace {

// A metric's column, as rules name them.
struct Wanted {
  const Metric* metric;
  const Table* table;
  size_t column;
};

std::optional<Wanted> find_column(const Catalog& catalog, std::string_view slug, std::string_view column) {
  const Metric* metric = catalog.metric(slug);
  if (metric == nullptr) return std::nullopt;
  const Table& table = catalog.table_of(*metric);
  const auto at = table.column(column.empty() ? first_value_column(table) : column);
  if (!at || *at >= metric->cells.size()) return std::nullopt;
  return Wanted{metric, &table, *at};
}

}  // namespace

std::vector<Finding> diagnose(const Catalog& catalog, const RuleBook& rules, const Environment& environment,
                              bool compat, const std::function<const Formula*(std::string_view)>& formula_of,
                              size_t most) {
  Program program(environment);
  using Key = std::pair<std::string, std::string>;
  std::map<Key, Program::Node> nodes;
  const auto want = [&](std::string_view slug, std::string_view column) {
    if (slug.empty()) return;
    const auto [place, added] = nodes.try_emplace(Key(slug, column), 0);
    if (!added) return;
    const auto found = find_column(catalog, slug, column);
    if (!found) return;
    const std::vector<Cell>& cells =
        compat && !found->metric->compat_cells.empty() ? found->metric->compat_cells : found->metric->cells;
    const Cell& cell = cells[found->column];
    const Formula* formula = cell.formula.empty() ? nullptr : formula_of(cell.formula);
    if (formula == nullptr) return;
    const auto [op, q] = reduction_op(cell.reduction);
    place->second = program.add(*formula, {found->metric->coll_level, -1}, op, q);
  };
  for (const Rule& rule : rules.rules)
    for_each_term(rule, [&](const RuleTerm& term) {
      want(term.slug, term.column);
      want(term.over_slug, term.over_column);
      const auto found = find_column(catalog, term.slug, term.column);
      if (found && found->table->column("peak")) want(term.slug, "peak");
    });
  program.run();
  const MetricLookup lookup = [&](std::string_view slug, std::string_view column) -> std::optional<double> {
    const auto found = nodes.find(Key(slug, column));
    if (found == nodes.end()) return std::nullopt;
    const Value value = program.value(found->second);
    if (value.kind != Value::Kind::kNumber || !std::isfinite(value.number)) return std::nullopt;
    return value.number;
  };

  std::vector<Finding> findings;
  for (const Rule& rule : rules.rules) {
    const std::optional<double> severity = rule_severity(rule, lookup);
    if (!severity || !(*severity > 0)) continue;
    Finding finding;
    finding.slug = rule.slug;
    finding.title = rule.title;
    finding.meaning = rule.meaning;
    finding.advice.assign(rule.advice.begin(), rule.advice.end());
    finding.severity = *severity;
    const auto add = [&](const RuleTerm& term, std::string_view comparison, double threshold) {
      const std::optional<double> value = term_value(term, lookup);
      if (!value) return;
      const std::string name = to_string(term);
      for (const Evidence& known : finding.evidence)
        if (known.term == name) return;
      Evidence evidence;
      evidence.term = name;
      evidence.value = *value;
      evidence.comparison = comparison;
      evidence.threshold = threshold;
      if (const auto found = find_column(catalog, term.slug, term.column)) {
        evidence.id = found->metric->slug;
        evidence.name = found->metric->name;
        if (term.over_slug.empty()) {
          const bool percent = found->table->columns[found->column].key == "pct";
          evidence.unit =
              percent ? "% of peak" : normalised_unit(found->metric->unit, environment.normalisation);
          if (!percent) evidence.peak = lookup(term.slug, "peak");
        } else if (const Metric* over = catalog.metric(term.over_slug)) {
          evidence.name = fmt::format("{} / {}", found->metric->name, over->name);
          evidence.id.clear();
        }
        const Column& column = found->table->columns[found->column];
        if (!term.column.empty() && column.title != "Avg" && column.key != "pct")
          evidence.name += fmt::format(" ({})", column.title);
      }
      finding.evidence.push_back(std::move(evidence));
    };
    for (const RuleCondition& condition : rule.when)
      add(condition.term, to_string(condition.relation), condition.threshold);
    for (const RuleCondition& condition : rule.any) {
      const std::optional<double> value = term_value(condition.term, lookup);
      if (value && holds(condition, *value))
        add(condition.term, to_string(condition.relation), condition.threshold);
    }
    for (const RuleTerm& term : rule.evidence) add(term, "", 0);
    if (finding.evidence.empty()) continue;
    findings.push_back(std::move(finding));
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  if (findings.size() > most) findings.resize(most);
  return findings;
}

}  // namespace tacho::metric
