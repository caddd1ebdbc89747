// Parser (recursive descent into postfix) and evaluation of the rules' quantities.
#include "metric/catalog/rule_expression.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/format.h"
#include "metric/catalog/string_store.h"

namespace tacho::metric {
namespace {

using StepKind = RuleStep::Kind;
using State = RuleValue::State;

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

class Parser {
 public:
  Parser(std::string_view text, const std::map<std::string, RuleExpression, std::less<>>& quantities,
         StringStore& strings)
      : rest_(text), quantities_(quantities), strings_(strings) {}

  Result<RuleExpression> parse(std::string_view text) {
    RuleExpression out;
    TACHO_TRY(sum(out.steps, 0));
    skip();
    if (!rest_.empty()) return fail("\"{}\" is not expected here", rest_);
    out.text = strings_.intern(text);
    if (const auto quantity = quantities_.find(text); quantity != quantities_.end()) {
      out.name = quantity->second.name;
      out.unit = quantity->second.unit;
    }
    return out;
  }

 private:
  static constexpr int kDeepest = 40;  // of brackets: bad input must not end in a deep stack

  void skip() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  bool take(char c) {
    skip();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // A minus of a subtraction has a blank behind it; that in a name or before a number has none.
  bool take_minus() {
    skip();
    if (!rest_.starts_with("- ")) return false;
    rest_.remove_prefix(2);
    return true;
  }

  Status sum(std::vector<RuleStep>& out, int depth) {
    TACHO_TRY(product(out, depth));
    while (true) {
      StepKind kind = StepKind::kAdd;
      if (take_minus())
        kind = StepKind::kSubtract;
      else if (!take('+'))
        return {};
      TACHO_TRY(product(out, depth));
      out.push_back({kind, 0, {}, {}});
    }
  }
  Status product(std::vector<RuleStep>& out, int depth) {
    TACHO_TRY(factor(out, depth));
    while (true) {
      StepKind kind = StepKind::kMultiply;
      if (take('/'))
        kind = StepKind::kDivide;
      else if (!take('*'))
        return {};
      TACHO_TRY(factor(out, depth));
      out.push_back({kind, 0, {}, {}});
    }
  }
  Status factor(std::vector<RuleStep>& out, int depth) {
    if (depth > kDeepest) return fail("brackets are nested too deeply");
    skip();
    if (rest_.empty()) return fail("a metric or a number is missing at the end");
    if (take('(')) {
      TACHO_TRY(sum(out, depth + 1));
      return take(')') ? Status() : fail("a bracket is not closed");
    }
    const bool negative = rest_.size() > 1 && rest_[0] == '-' && rest_[1] >= '0' && rest_[1] <= '9';
    if (negative || (rest_.front() >= '0' && rest_.front() <= '9')) {
      RuleStep step;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), step.number);
      if (error != std::errc() || !std::isfinite(step.number)) return fail("\"{}\" is not a number", rest_);
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      if (!rest_.empty() && is_word_char(rest_.front()))
        return fail("a blank or an operator is missing before \"{}\"", rest_);
      out.push_back(step);
      return {};
    }
    if (take('$')) {
      const std::string_view name = word();
      if (name.empty()) return fail("a name is missing behind the $");
      out.push_back({StepKind::kValue, 0, strings_.intern(name), {}});
      return {};
    }
    const std::string_view name = word();
    if (name.empty()) return fail("\"{}\" is neither a metric nor a number", rest_.substr(0, 1));
    for (const auto& [function, kind] :
         {std::pair{"min", StepKind::kMin}, {"max", StepKind::kMax}, {"or", StepKind::kOr}})
      if (name == function && take('(')) {
        TACHO_TRY(sum(out, depth + 1));
        bool several = false;
        while (take(',')) {
          several = true;
          TACHO_TRY(sum(out, depth + 1));
          out.push_back({kind, 0, {}, {}});
        }
        if (!several) return fail("{}() takes two values or more", function);
        return take(')') ? Status() : fail("a bracket is not closed");
      }
    if (const auto quantity = quantities_.find(name); quantity != quantities_.end()) {
      out.insert(out.end(), quantity->second.steps.begin(), quantity->second.steps.end());
      return {};
    }
    const size_t dot = name.find('.');
    const auto legal = [](std::string_view part) {
      return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
      });
    };
    if (!legal(name.substr(0, dot)) || (dot != std::string_view::npos && !legal(name.substr(dot + 1))))
      return fail("\"{}\" is not a metric's slug", name);
    out.push_back({StepKind::kMetric, 0, strings_.intern(name.substr(0, dot)),
                   dot == std::string_view::npos ? std::string_view() : strings_.intern(name.substr(dot + 1))});
    return {};
  }
  std::string_view word() {
    size_t length = 0;
    while (length < rest_.size() && is_word_char(rest_[length])) ++length;
    const std::string_view found = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return found;
  }

  std::string_view rest_;
  const std::map<std::string, RuleExpression, std::less<>>& quantities_;
  StringStore& strings_;
};

struct Operand {
  RuleValue value;
  std::vector<const RuleStep*> used;
};

// Of two states, an absent metric outranks a missing one. A missing one outranks an undefined one, because the user can
// collect it.
State worse(State a, State b) {
  for (const State state : {State::kAbsent, State::kMissing, State::kUndefined})
    if (a == state || b == state) return state;
  return State::kNumber;
}

}  // namespace

RuleValue evaluate(const RuleExpression& expression, const RuleLookup& lookup, std::vector<const RuleStep*>* used) {
  std::vector<Operand> stack;
  for (const RuleStep& step : expression.steps) {
    if (step.kind == StepKind::kNumber) {
      stack.push_back({{State::kNumber, step.number}, {}});
      continue;
    }
    if (step.kind == StepKind::kMetric || step.kind == StepKind::kValue) {
      RuleValue value = lookup(step);
      if (value.known() && !std::isfinite(value.number)) value.state = State::kUndefined;
      stack.push_back({value, {&step}});
      continue;
    }
    if (stack.size() < 2) return {};
    Operand right = std::move(stack.back());
    stack.pop_back();
    Operand& left = stack.back();
    if (step.kind == StepKind::kOr) {
      if (left.value.known()) continue;
      const State both = worse(left.value.state, right.value.state);
      if (right.value.known())
        left = std::move(right);
      else  // either would do: the one that could be collected
        left.value.state =
            both == State::kAbsent && (left.value.state == State::kMissing || right.value.state == State::kMissing)
                ? State::kMissing
                : both;
      continue;
    }
    left.used.insert(left.used.end(), right.used.begin(), right.used.end());
    left.value.state = worse(left.value.state, right.value.state);
    if (!left.value.known()) continue;
    const double a = left.value.number, b = right.value.number;
    switch (step.kind) {
      case StepKind::kAdd:
        left.value.number = a + b;
        break;
      case StepKind::kSubtract:
        left.value.number = a - b;
        break;
      case StepKind::kMultiply:
        left.value.number = a * b;
        break;
      case StepKind::kDivide:
        left.value.number = a / b;
        break;
      case StepKind::kMin:
        left.value.number = std::min(a, b);
        break;
      default:
        left.value.number = std::max(a, b);
    }
    if (!std::isfinite(left.value.number)) left.value = {State::kUndefined, 0};
  }
  if (stack.size() != 1) return {};
  if (used != nullptr) used->insert(used->end(), stack[0].used.begin(), stack[0].used.end());
  return stack[0].value;
}

Result<RuleExpression> parse_rule_expression(std::string_view text,
                                             const std::map<std::string, RuleExpression, std::less<>>& quantities,
                                             StringStore& strings) {
  return Parser(text, quantities, strings).parse(text);
}

}  // namespace tacho::metric
