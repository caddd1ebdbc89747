// Records of groups (group_values.h).
#include "query/engine/group_values.h"

#include <algorithm>
#include <bit>

namespace tacho::query {

using event::kUnknown;

int compare_cells(const report::Cell& a, const report::Cell& b) {
  const auto rank = [](const report::Cell& cell) { return cell.index() == 0 ? 0 : cell.index() == 3 ? 2 : 1; };
  if (rank(a) != rank(b)) return rank(a) < rank(b) ? -1 : 1;
  if (a.index() == 0) return 0;
  if (a.index() == 3) {
    const int order = std::get<std::string>(a).compare(std::get<std::string>(b));
    return order < 0 ? -1 : order > 0;
  }
  if (a.index() == 1 && b.index() == 1)
    return std::get<int64_t>(a) < std::get<int64_t>(b) ? -1 : std::get<int64_t>(a) > std::get<int64_t>(b);
  const auto real = [](const report::Cell& cell) {
    return cell.index() == 2 ? static_cast<long double>(std::get<double>(cell))
                             : static_cast<long double>(std::get<int64_t>(cell));
  };
  return real(a) < real(b) ? -1 : real(a) > real(b);
}

GroupValues::GroupValues(const AggregatePlan& plan) : plan_(plan), terms_(plan.terms.size()), fresh_(terms_, 0) {
  for (const AggregatePlan::Aggregate& sum : plan.aggregates) {
    cells_.push_back(fresh_.size());
    fresh_.push_back(0);
    if (has_value(sum.function))
      fresh_.push_back(sum.function == SumFunction::kMin   ? INT64_MAX
                       : sum.function == SumFunction::kMax ? INT64_MIN
                                                           : 0);
  }
}

bool GroupValues::merge(int64_t* into, const int64_t* other) const {
  bool over = false;
  for (size_t i = 0; i < plan_.aggregates.size(); ++i) {
    int64_t* const a = into + cells_[i];
    const int64_t* const b = other + cells_[i];
    a[0] += b[0];
    switch (plan_.aggregates[i].function) {
      case SumFunction::kCountRows:
      case SumFunction::kCount:
        break;
      case SumFunction::kMin:
        a[1] = std::min(a[1], b[1]);
        break;
      case SumFunction::kMax:
        a[1] = std::max(a[1], b[1]);
        break;
      default:
        over |= __builtin_add_overflow(a[1], b[1], &a[1]);
    }
  }
  return !over;
}

int GroupValues::compare_terms(const int64_t* a, const int64_t* b) const {
  for (size_t i = 0; i < terms_; ++i) {
    const int64_t x = a[i], y = b[i];
    if (x == y) continue;
    const Node& node = plan_.nodes[static_cast<size_t>(plan_.terms[i])];
    int order;
    if (x == kUnknown || y == kUnknown) {
      order = x == kUnknown ? -1 : 1;
    } else if (node.op == Op::kColumn && plan_.column(node).type == ValueType::kText) {
      const ColumnInfo& column = plan_.column(node);
      order = column.text(x, left_).compare(column.text(y, right_));
    } else if (node.op == Op::kColumn && plan_.column(node).type == ValueType::kReal) {
      const double p = std::bit_cast<double>(x), q = std::bit_cast<double>(y);
      order = p < q ? -1 : p > q;
    } else {
      order = x < y ? -1 : 1;
    }
    if (order == 0) continue;
    return descending(i) ? -order : order;
  }
  return 0;
}

report::Cell GroupValues::finish(const int64_t* group, int number) const {
  const Node& node = plan_.nodes[static_cast<size_t>(number)];
  switch (node.op) {
    case Op::kInteger:
      return node.integer;
    case Op::kReal:
      return node.real;
    case Op::kTerm: {
      const int64_t code = group[node.left];
      if (code == kUnknown) return {};
      const Node& term = plan_.nodes[static_cast<size_t>(plan_.terms[static_cast<size_t>(node.left)])];
      if (term.op == Op::kColumn && plan_.column(term).type == ValueType::kText)
        return std::string(plan_.column(term).text(code, left_));
      if (term.op == Op::kColumn && plan_.column(term).type == ValueType::kReal) return std::bit_cast<double>(code);
      return code;
    }
    case Op::kAggregate: {
      const auto which = static_cast<size_t>(node.right);
      const int64_t* const state = group + cells_[which];
      const SumFunction function = plan_.aggregates[which].function;
      if (!has_value(function)) return state[0];
      if (function == SumFunction::kTotal) return static_cast<double>(state[1]);
      if (state[0] == 0) return {};
      if (function == SumFunction::kAverage) return static_cast<double>(state[1]) / static_cast<double>(state[0]);
      return state[1];
    }
    default:
      break;
  }
  const report::Cell left = finish(group, node.left);
  if (std::holds_alternative<std::monostate>(left)) return {};
  const auto real = [](const report::Cell& cell) {
    return std::holds_alternative<double>(cell) ? std::get<double>(cell) : static_cast<double>(std::get<int64_t>(cell));
  };
  if (node.op == Op::kNegate) {
    // Like SQLite: a literal takes the sign; anything else is subtracted from 0, so the result is never -0.0.
    if (plan_.nodes[static_cast<size_t>(node.left)].op == Op::kReal) return -std::get<double>(left);
    if (const auto* const value = std::get_if<double>(&left)) return 0.0 - *value;
    const int64_t value = std::get<int64_t>(left);
    return value == INT64_MIN ? report::Cell(0.0 - static_cast<double>(value)) : report::Cell(-value);
  }
  const report::Cell right = finish(group, node.right);
  if (std::holds_alternative<std::monostate>(right)) return {};
  if (std::holds_alternative<int64_t>(left) && std::holds_alternative<int64_t>(right)) {
    const int64_t a = std::get<int64_t>(left), b = std::get<int64_t>(right);
    int64_t value = 0;
    bool over = false;
    switch (node.op) {
      case Op::kAdd:
        over = __builtin_add_overflow(a, b, &value);
        break;
      case Op::kSubtract:
        over = __builtin_sub_overflow(a, b, &value);
        break;
      case Op::kMultiply:
        over = __builtin_mul_overflow(a, b, &value);
        break;
      default:
        if (b == 0) return {};
        over = a == INT64_MIN && b == -1;
        if (!over) value = a / b;
    }
    if (!over) return value;
  }
  const double a = real(left), b = real(right);
  switch (node.op) {
    case Op::kAdd:
      return report::number_cell(a + b);
    case Op::kSubtract:
      return report::number_cell(a - b);
    case Op::kMultiply:
      return report::number_cell(a * b);
    default:
      return b == 0 ? report::Cell() : report::number_cell(a / b);
  }
}

bool GroupValues::passes(const int64_t* group) const {
  for (const AggregatePlan::Condition& condition : plan_.having) {
    const report::Cell cell = finish(group, condition.node);
    const long double limit = condition.value.type == ValueType::kReal
                                  ? static_cast<long double>(condition.value.real)
                                  : static_cast<long double>(condition.value.integer);
    const auto* const whole = std::get_if<int64_t>(&cell);
    const auto* const real = std::get_if<double>(&cell);
    if (whole == nullptr && real == nullptr) return false;
    const long double value = whole != nullptr ? static_cast<long double>(*whole) : static_cast<long double>(*real);
    const int order = value < limit ? -1 : value > limit;
    bool holds = false;
    switch (condition.comparison) {
      case Comparison::kEqual:
        holds = order == 0;
        break;
      case Comparison::kNotEqual:
        holds = order != 0;
        break;
      case Comparison::kLess:
        holds = order < 0;
        break;
      case Comparison::kLessEqual:
        holds = order <= 0;
        break;
      case Comparison::kGreater:
        holds = order > 0;
        break;
      default:
        holds = order >= 0;
    }
    if (!holds) return false;
  }
  return true;
}

bool GroupValues::is_text(int number) const {
  const Node& node = plan_.nodes[static_cast<size_t>(number)];
  if (node.op != Op::kTerm) return false;
  const Node& term = plan_.nodes[static_cast<size_t>(plan_.terms[static_cast<size_t>(node.left)])];
  return term.op == Op::kColumn && plan_.column(term).type == ValueType::kText;
}

bool GroupValues::is_real(int number) const {
  if (number < 0) return false;
  const Node& node = plan_.nodes[static_cast<size_t>(number)];
  switch (node.op) {
    case Op::kReal:
      return true;
    case Op::kInteger:
      return false;
    case Op::kTerm: {
      const Node& term = plan_.nodes[static_cast<size_t>(plan_.terms[static_cast<size_t>(node.left)])];
      return term.op == Op::kColumn && plan_.column(term).type == ValueType::kReal;
    }
    case Op::kAggregate: {
      const SumFunction function = plan_.aggregates[static_cast<size_t>(node.right)].function;
      return function == SumFunction::kTotal || function == SumFunction::kAverage;
    }
    default:
      return is_real(node.left) || is_real(node.right);
  }
}

int64_t GroupValues::order_key(const int64_t* group) const {
  const auto& first = plan_.order[0];
  const int node = plan_.items[first.item].node;
  const report::Cell cell = finish(group, node);
  int64_t key = INT64_MIN;
  if (std::holds_alternative<std::string>(cell)) {
    key = 0;
  } else if (is_real(node)) {
    if (!std::holds_alternative<std::monostate>(cell)) {
      const double value =
          std::holds_alternative<double>(cell) ? std::get<double>(cell) : static_cast<double>(std::get<int64_t>(cell));
      const auto bits = std::bit_cast<int64_t>(value + 0.0);
      key = bits < 0 ? bits ^ INT64_MAX : bits;
    }
  } else if (const auto* whole = std::get_if<int64_t>(&cell)) {
    key = *whole;
  } else if (const auto* over = std::get_if<double>(&cell)) {  // outside the range of whole numbers
    key = *over < 0 ? INT64_MIN : INT64_MAX;
  }
  return first.descending ? ~key : key;
}

}  // namespace tacho::query
