// Describes a plan in words (aggregate_plan.h).
#include "query/engine/aggregate_plan.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "base/text/how_many.h"

namespace tacho::query {

namespace {

std::string_view sign(Comparison comparison) {
  switch (comparison) {
    case Comparison::kEqual:
      return "=";
    case Comparison::kLess:
      return "<";
    case Comparison::kLessEqual:
      return "<=";
    case Comparison::kGreater:
      return ">";
    case Comparison::kGreaterEqual:
      return ">=";
    case Comparison::kLike:
      return "LIKE";
    case Comparison::kGlob:
      return "GLOB";
    case Comparison::kNotEqual:
      return "<>";
  }
  return "";
}

class Describer {
 public:
  explicit Describer(const AggregatePlan& plan) : plan_(plan) {}
  std::vector<std::string> lines() const;

 private:
  std::string name(const AggregatePlan::Source& source) const {
    return source.alias.empty() || source.alias == source.table ? source.table : source.table + " AS " + source.alias;
  }
  std::string column(int source, int which) const {
    const AggregatePlan::Source& from = plan_.sources[static_cast<size_t>(source)];
    const std::string& own = from.relation->columns[static_cast<size_t>(which)].name;
    return plan_.sources.size() == 1 ? own : (from.alias.empty() ? from.table : from.alias) + "." + own;
  }
  std::string expression(int number) const;
  std::string literal(const Constraint& value) const;
  std::string conditions(const AggregatePlan::Source& source, int number) const;

  const AggregatePlan& plan_;
};

std::string Describer::literal(const Constraint& value) const {
  switch (value.type) {
    case ValueType::kInteger:
      return std::to_string(value.integer);
    case ValueType::kReal:
      return fmt::format("{}", value.real);
    case ValueType::kText: {
      std::string text = "'";
      for (const char c : value.text) text += c == '\'' ? "''" : std::string(1, c);
      return text + "'";
    }
  }
  return {};
}

std::string Describer::expression(int number) const {
  static constexpr std::array<std::string_view, 7> kFunctions = {"count", "count", "sum", "total", "avg", "min", "max"};
  const Node& node = plan_.nodes[static_cast<size_t>(number)];
  const auto both = [&](const char* operation) {
    return fmt::format("({} {} {})", expression(node.left), operation, expression(node.right));
  };
  switch (node.op) {
    case Op::kColumn:
      return column(node.source, node.column);
    case Op::kInteger:
      return std::to_string(node.integer);
    case Op::kReal:
      return fmt::format("{}", node.real);
    case Op::kAdd:
      return both("+");
    case Op::kSubtract:
      return both("-");
    case Op::kMultiply:
      return both("*");
    case Op::kDivide:
      return both("/");
    case Op::kRemainder:
      return both("%");
    case Op::kNegate:
      return "-" + expression(node.left);
    case Op::kAggregate: {
      const AggregatePlan::Aggregate& sum = plan_.aggregates[static_cast<size_t>(node.right)];
      return fmt::format("{}({})", kFunctions[static_cast<size_t>(sum.function)],
                         sum.argument < 0 ? "*" : expression(sum.argument));
    }
    case Op::kTerm:
      return expression(plan_.terms[static_cast<size_t>(node.left)]);
  }
  return {};
}

std::string Describer::conditions(const AggregatePlan::Source& source, int number) const {
  std::string text;
  for (const Constraint& one : source.constraints)
    text += fmt::format("{} {} {} {}", text.empty() ? ", rows with" : " and", column(number, one.column),
                        sign(one.comparison), literal(one));
  return text;
}

std::vector<std::string> Describer::lines() const {
  const auto list = [&](const auto& all, auto&& text) {
    std::string joined;
    for (const auto& one : all) joined += (joined.empty() ? "" : ", ") + text(one);
    return joined;
  };
  std::vector<std::string> lines;
  for (size_t i = 0; i < plan_.sources.size(); ++i) {
    const AggregatePlan::Source& source = plan_.sources[i];
    const int number = static_cast<int>(i);
    if (i == 0) {
      lines.push_back(fmt::format("scan {} ({}){}", name(source),
                                  how_many(source.relation->rows(*source.store), "row", "rows"),
                                  conditions(source, number)));
    } else {
      const auto& columns = source.relation->columns;
      const auto id =
          std::find_if(columns.begin(), columns.end(), [](const ColumnInfo& one) { return one.id || one.key; });
      lines.push_back(fmt::format("find the row of {} whose {} is {}{}", name(source), id->name,
                                  column(source.from, source.from_column), conditions(source, number)));
    }
  }
  if (!plan_.terms.empty())
    lines.push_back("group by " + list(plan_.terms, [&](int term) { return expression(term); }));
  lines.push_back("give " + list(plan_.items, [&](const AggregatePlan::Item& item) { return expression(item.node); }));
  std::string kept;
  for (const AggregatePlan::Condition& one : plan_.having)
    kept += fmt::format("{}{} {} {}", kept.empty() ? "keep groups with " : " and ", expression(one.node),
                        sign(one.comparison), literal(one.value));
  if (!kept.empty()) lines.push_back(std::move(kept));
  if (!plan_.order.empty())
    lines.push_back("sort by " + list(plan_.order, [&](const AggregatePlan::Order& one) {
                      return expression(plan_.items[one.item].node) + (one.descending ? " descending" : "");
                    }));
  if (plan_.limit >= 0) lines.push_back("stop after " + how_many(plan_.limit, "row", "rows"));
  return lines;
}

}  // namespace

std::vector<std::string> describe(const AggregatePlan& plan) {
  return Describer(plan).lines();
}

}  // namespace tacho::query
