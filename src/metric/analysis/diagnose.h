// Diagnosis: the catalog's rules applied to the metrics of one kernel.
#pragma once

#include <functional>
#include <vector>

#include "metric/analysis/analysis.h"
#include "metric/catalog/rules.h"

namespace tacho::metric {

/// At most `most` findings about the dispatches of `environment`, most severe first. A finding is made only
/// when all terms of its rule are computable; its evidence holds only what is. `formula_of` gives the parsed
/// formula of a catalog text. Evidence::id holds the slug; the caller knows how ids are printed.
std::vector<Finding> diagnose(const Catalog& catalog, const RuleBook& rules, const Environment& environment,
                              bool compat, const std::function<const Formula*(std::string_view)>& formula_of,
                              size_t most = 5);

/// Calls f(const RuleTerm&) for every term of the rule: conditions, severity and evidence.
template <typename F>
void for_each_term(const Rule& rule, F&& f) {
  for (const RuleCondition& condition : rule.when) f(condition.term);
  for (const RuleCondition& condition : rule.any) f(condition.term);
  for (const RuleRamp& ramp : rule.severity) f(ramp.term);
  for (const RuleTerm& term : rule.evidence) f(term);
}

}  // namespace tacho::metric
