// The diagnosis rules: when a finding is to be made, how severe it is, and what to say. Facts only, read from
// catalog/<vendor>/rules.yaml; who evaluates a run asks rule_severity() with the run's values.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "metric/catalog/catalog.h"

namespace tacho::metric {

/// A metric's value, or the quotient of two.
struct RuleTerm {
  std::string_view slug;
  std::string_view column;     ///< key of the column; "" = the metric's first number (avg, or value)
  std::string_view over_slug;  ///< "" or the metric it is divided by
  std::string_view over_column;

  bool operator==(const RuleTerm&) const = default;
};
/// "wave-cycles", "wave-cycles.max", "dependency-wait-cycles / wave-cycles".
std::string to_string(const RuleTerm& term);

enum class Relation : uint8_t { kAbove, kAtLeast, kBelow, kAtMost };
std::string_view to_string(Relation relation);  ///< ">", ">=", "<", "<="

struct RuleCondition {
  RuleTerm term;
  Relation relation = Relation::kAbove;
  double threshold = 0;
};

/// Severity rises linearly from 0 where the term is `from` to 1 where it is `to` (which may be the smaller
/// one).
struct RuleRamp {
  RuleTerm term;
  double from = 0;
  double to = 1;
};

struct Rule {
  std::string_view slug;    ///< "lds-bank-conflicts"
  std::string_view vendor;  ///< whose catalog it stands in: it holds on that vendor's devices only; "" = all
  std::string_view title;   ///< the finding in a few words
  std::vector<RuleCondition> when;       ///< all must hold
  std::vector<RuleCondition> any;        ///< and one of these, where there are any
  std::vector<RuleRamp> severity;        ///< the largest counts
  double weight = 1;                     ///< 0..1: what this finding can cost at most
  std::vector<RuleTerm> evidence;        ///< shown besides the terms of the conditions
  std::string_view meaning;              ///< one or two sentences
  std::vector<std::string_view> advice;  ///< what to try, best first
};

struct RuleBook {
  std::vector<Rule> rules;
  std::shared_ptr<StringStore> strings;
};

/// The rules of one YAML document; every metric and column in it must exist in `catalog`, where that is
/// given.
Result<RuleBook> parse_rules(std::string_view yaml, std::string_view file, const Catalog* catalog);

/// Adds rules to a book; one with a known slug replaces that. The book keeps the text of `more` alive.
Status add_rules(RuleBook& book, const RuleBook& more);

/// Whether all metrics that the rule needs (conditions and severity) exist on the catalog's architecture.
bool can_evaluate(const Rule& rule, const Catalog& catalog);

/// A run's value of a metric (column "" = its first number), or nothing where it is not computable (also
/// NaN).
using MetricLookup = std::function<std::optional<double>(std::string_view slug, std::string_view column)>;

/// The term's value; nothing when a part is not computable, not finite, or divided by zero.
std::optional<double> term_value(const RuleTerm& term, const MetricLookup& lookup);

bool holds(const RuleCondition& condition, double value);

/// Severity 0..1 when the rule's conditions all hold on computable values; nothing when it must not be
/// printed.
std::optional<double> rule_severity(const Rule& rule, const MetricLookup& lookup);

/// The column a term without one means: the first Value column of the metric's table.
std::string_view first_value_column(const Table& table);

}  // namespace tacho::metric
