// Formulas over metrics: names of quantities are replaced, values are single numbers.
#include "metric/catalog/rule_expression.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "metric/catalog/string_store.h"
#include "metric/expression/arithmetic.h"

namespace tacho::metric {
namespace {

using State = RuleValue::State;

// Of a quantity with all that it is made of: quantities of quantities could grow without bound.
constexpr size_t kMostSteps = 10000;

Result<RuleExpression> expression_of(const Formula& formula, std::string_view text, const RuleQuantities& quantities,
                                     StringStore& strings) {
  RuleExpression out;
  std::vector<uint32_t> place;  // of each of the formula's steps in out.steps
  for (FormulaStep step : formula.steps) {
    if (step.op == FormulaOp::kMetric && step.column.empty())
      if (const auto quantity = quantities.find(step.text); quantity != quantities.end()) {
        const auto begin = static_cast<uint32_t>(out.steps.size());
        if (begin + quantity->second.steps.size() > kMostSteps)
          return fail("with all the quantities that it names, it is longer than {} steps", kMostSteps);
        for (FormulaStep part : quantity->second.steps) {
          for (uint32_t i = 0; i < part.argument_count; ++i) part.arguments[i] += begin;
          out.steps.push_back(part);
        }
        place.push_back(static_cast<uint32_t>(out.steps.size() - 1));
        continue;
      }
    for (uint32_t i = 0; i < step.argument_count; ++i) step.arguments[i] = place[step.arguments[i]];
    if (!step.text.empty()) step.text = strings.intern(step.text);
    if (!step.column.empty()) step.column = strings.intern(step.column);
    if (out.steps.size() >= kMostSteps) return fail("it is longer than {} steps", kMostSteps);
    out.steps.push_back(step);
    place.push_back(static_cast<uint32_t>(out.steps.size() - 1));
  }
  out.text = strings.intern(text);
  if (const auto quantity = quantities.find(text); quantity != quantities.end()) {
    out.name = quantity->second.name;
    out.unit = quantity->second.unit;
  }
  return out;
}

RuleRelation relation_of(FormulaOp op) {
  return op == FormulaOp::kGreater        ? RuleRelation::kAbove
         : op == FormulaOp::kGreaterEqual ? RuleRelation::kAtLeast
         : op == FormulaOp::kLess         ? RuleRelation::kBelow
                                          : RuleRelation::kAtMost;
}

bool has_value(const RuleValue& value) {
  return value.known() && !std::isnan(value.number);
}

// Either would do: of two unknown ones the one that could be collected.
RuleValue coalesced(const RuleValue& a, const RuleValue& b) {
  if (has_value(a)) return a;
  if (has_value(b)) return b;
  for (const State state : {State::kMissing, State::kAbsent})
    if (a.state == state || b.state == state) return {state, 0};
  return a;
}

// The value of one step; NaN is undefined.
RuleValue value_of(const FormulaStep& step, const std::vector<RuleValue>& earlier, const RuleLookup& lookup) {
  const auto argument = [&](size_t i) { return earlier[step.arguments[i]]; };
  if (step.op == FormulaOp::kNumber) return {State::kNumber, step.number};
  if (step.op == FormulaOp::kMetric || step.op == FormulaOp::kValue) {
    const RuleValue leaf = lookup(step);
    const bool defined = leaf.known() && std::isfinite(leaf.number);
    return defined || leaf.state == State::kMissing || leaf.state == State::kAbsent
               ? leaf
               : RuleValue{State::kNumber, kNoNumber};
  }
  if (step.op == FormulaOp::kCoalesce) return coalesced(argument(0), argument(1));
  for (const State state : {State::kAbsent, State::kMissing})
    for (uint32_t i = 0; i < step.argument_count; ++i)
      if (argument(i).state == state) return {state, 0};
  const auto number = [&](size_t i) { return argument(i).number; };
  if (step.op == FormulaOp::kSelect) return {State::kNumber, number(2) != 0 ? number(0) : number(1)};
  if (step.op == FormulaOp::kNegate) return {State::kNumber, UnaryArithmetic<FormulaOp::kNegate>()(number(0))};
  if (step.op == FormulaOp::kNot) return {State::kNumber, UnaryArithmetic<FormulaOp::kNot>()(number(0))};
  if (step.op == FormulaOp::kToInt) return {State::kNumber, UnaryArithmetic<FormulaOp::kToInt>()(number(0))};
  const double result = step.argument_count == 2 ? binary(step.op, number(0), number(1)) : kNoNumber;
  return {State::kNumber, std::isfinite(result) ? result : kNoNumber};
}

// The leaves behind the last step, from left to right.
void collect_used(const std::vector<FormulaStep>& steps, const std::vector<RuleValue>& values,
                  std::vector<const FormulaStep*>& used) {
  std::vector<uint32_t> waiting{static_cast<uint32_t>(steps.size() - 1)};
  while (!waiting.empty()) {
    const uint32_t at = waiting.back();
    waiting.pop_back();
    const FormulaStep& step = steps[at];
    if (step.op == FormulaOp::kMetric || step.op == FormulaOp::kValue) {
      used.push_back(&step);
    } else if (step.op == FormulaOp::kCoalesce) {
      const bool second = !has_value(values[step.arguments[0]]) && has_value(values[step.arguments[1]]);
      waiting.push_back(step.arguments[second ? 1 : 0]);
    } else {
      for (uint32_t i = step.argument_count; i-- > 0;) waiting.push_back(step.arguments[i]);
    }
  }
}

}  // namespace

RuleValue evaluate(const RuleExpression& expression, const RuleLookup& lookup, std::vector<const FormulaStep*>* used) {
  std::vector<RuleValue> values;
  values.reserve(expression.steps.size());
  for (const FormulaStep& step : expression.steps) {
    for (uint32_t i = 0; i < step.argument_count; ++i)
      if (i >= std::size(step.arguments) || step.arguments[i] >= values.size()) return {};  // damaged
    values.push_back(value_of(step, values, lookup));
  }
  if (values.empty()) return {};
  if (used != nullptr) collect_used(expression.steps, values, *used);
  RuleValue out = values.back();
  if (out.known() && !std::isfinite(out.number)) out = {State::kUndefined, 0};
  return out;
}

Result<RuleExpression> parse_rule_expression(std::string_view text, const RuleQuantities& quantities,
                                             StringStore& strings) {
  TACHO_ASSIGN(const Formula formula, parse_formula(text, FormulaNames::kMetrics));
  return expression_of(formula, text, quantities, strings);
}

Result<RuleCondition> parse_rule_condition(std::string_view text, const RuleQuantities& quantities,
                                           StringStore& strings) {
  TACHO_ASSIGN(const FormulaCondition parsed, parse_condition(text, FormulaNames::kMetrics));
  RuleCondition out;
  TACHO_ASSIGN(out.quantity, expression_of(parsed.left, parsed.left_text, quantities, strings));
  out.relation = relation_of(parsed.relation);
  out.threshold = parsed.right;
  return out;
}

Result<std::pair<RuleExpression, RuleExpression>> parse_rule_range(std::string_view text,
                                                                   const RuleQuantities& quantities,
                                                                   StringStore& strings) {
  TACHO_ASSIGN(const FormulaRange parsed, parse_range(text, FormulaNames::kMetrics));
  std::pair<RuleExpression, RuleExpression> out;
  TACHO_ASSIGN(out.first, expression_of(parsed.low, parsed.low_text, quantities, strings));
  TACHO_ASSIGN(out.second, expression_of(parsed.high, parsed.high_text, quantities, strings));
  return out;
}

}  // namespace tacho::metric
