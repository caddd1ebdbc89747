// Quantities in rules: arithmetic over metrics, values of the machine and measured roofs, as rules.yaml writes it: "100
// * (sol-fabric-read-bandwidth + sol-fabric-write-bandwidth) / or($roof_hbm, sol-fabric-read-bandwidth.peak)".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacho::metric {

class StringStore;

/// One step of an expression in postfix order.
struct RuleStep {
  enum class Kind : uint8_t {
    kNumber,
    kMetric,  ///< name = slug, column = key of the column ("" = the metric's first number)
    kValue,   ///< name without its "$": of the machine ("max_sclk"), or a measured roof ("roof_hbm")
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kMin,
    kMax,
    kOr,  ///< the first of two that the run has
  };
  Kind kind = Kind::kNumber;
  double number = 0;
  std::string_view name, column;

  bool operator==(const RuleStep&) const = default;
};

struct RuleExpression {
  std::string_view text;  ///< as written, on one line
  /// The name and unit of a named quantity; "" = the name and unit of the metric, or the text.
  std::string_view name, unit;
  std::vector<RuleStep> steps;

  /// The only metric of an expression that is nothing else, nullptr for any other.
  const RuleStep* metric() const {
    return steps.size() == 1 && steps[0].kind == RuleStep::Kind::kMetric ? steps.data() : nullptr;
  }
  bool operator==(const RuleExpression&) const = default;
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

using RuleLookup = std::function<RuleValue(const RuleStep& leaf)>;

/// Evaluates. An expression that cannot be computed has the state of its worst part: absent before missing before
/// undefined; a quotient by 0 is undefined. `used` gets the metrics and values behind the result, of an or() only those
/// of the side taken.
RuleValue evaluate(const RuleExpression& expression, const RuleLookup& lookup,
                   std::vector<const RuleStep*>* used = nullptr);

/// Parses; names in `quantities` are replaced by their expressions. The views live in `strings`. The error has no file
/// or line.
Result<RuleExpression> parse_rule_expression(std::string_view text,
                                             const std::map<std::string, RuleExpression, std::less<>>& quantities,
                                             StringStore& strings);

}  // namespace tacho::metric
