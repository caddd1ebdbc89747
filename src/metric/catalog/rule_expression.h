// Quantities in rules: formulas over metrics, values of the machine and measured roofs, as rules.yaml writes them:
// "100 * l2-bandwidth / COALESCE($roof_l2, sol-l2-bandwidth.peak)". The language is that of the metrics' own formulas
// (metric/expression/expression.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "metric/expression/expression.h"

namespace tacho::metric {

class StringStore;

struct RuleExpression {
  std::string_view text;  ///< as written, on one line
  /// The name and unit of a named quantity; "" = the name and unit of the metric, or the text.
  std::string_view name, unit;
  /// Of a formula over metrics (FormulaNames::kMetrics), with quantities replaced by their own steps. A kMetric without
  /// a column means the metric's first number; a kValue is of the machine ("max_sclk") or a measured roof ("roof_hbm").
  std::vector<FormulaStep> steps;

  /// The only metric of an expression that is nothing else, nullptr for any other.
  const FormulaStep* metric() const {
    return steps.size() == 1 && steps[0].op == FormulaOp::kMetric ? steps.data() : nullptr;
  }
  bool operator==(const RuleExpression&) const = default;
};

enum class RuleRelation : uint8_t { kAbove, kAtLeast, kBelow, kAtMost };
std::string_view to_string(RuleRelation relation);  ///< ">", ">=", "<", "<="

struct RuleCondition {
  RuleExpression quantity;
  RuleRelation relation = RuleRelation::kAbove;
  double threshold = 0;
};

/// The value of a step's metric, or of an expression.
struct RuleValue {
  enum class State : uint8_t {
    kNumber,
    kUndefined,  ///< there was nothing to divide: no access of that kind, for instance
    kMissing,    ///< the run lacks an input
    kAbsent,     ///< the GPU cannot count it
  };
  State state = State::kAbsent;
  double number = 0;

  bool known() const { return state == State::kNumber; }
};

using RuleLookup = std::function<RuleValue(const FormulaStep& leaf)>;

/// Evaluates. Where the run lacks an input, so does the result, except behind a COALESCE() with another one that it
/// has; of a missing and an absent input the result is absent. Unlike in metrics, where x / 0 is infinite, no value is
/// infinite (no finding may rest on one): a quotient by 0 is undefined, and so is what is computed from it. `used` gets
/// the metrics and values behind the result, of a COALESCE() only those of the side taken.
RuleValue evaluate(const RuleExpression& expression, const RuleLookup& lookup,
                   std::vector<const FormulaStep*>* used = nullptr);

/// The quantities that a file of rules names.
using RuleQuantities = std::map<std::string, RuleExpression, std::less<>>;

/// Parses; names in `quantities` are replaced by their expressions. The views live in `strings`. The error has no file
/// or line.
Result<RuleExpression> parse_rule_expression(std::string_view text, const RuleQuantities& quantities,
                                             StringStore& strings);
/// The same of "quantity > number".
Result<RuleCondition> parse_rule_condition(std::string_view text, const RuleQuantities& quantities,
                                           StringStore& strings);
/// The same of "low .. high".
Result<std::pair<RuleExpression, RuleExpression>> parse_rule_range(std::string_view text,
                                                                   const RuleQuantities& quantities,
                                                                   StringStore& strings);

}  // namespace tacho::metric
