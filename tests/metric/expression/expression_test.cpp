// Formulas over metrics, conditions and ranges; tests/metric/formula has formulas over counters and their values.
#include "metric/expression/expression.h"

#include <gtest/gtest.h>

namespace tacho::metric {
namespace {

std::string condition_error(std::string_view text) {
  const auto parsed = parse_condition(text, FormulaNames::kMetrics);
  return parsed ? "no error" : parsed.error().message;
}
std::string range_error(std::string_view text) {
  const auto parsed = parse_range(text, FormulaNames::kMetrics);
  return parsed ? "no error" : parsed.error().message;
}

TEST(FormulaOfMetrics, NamesHaveHyphensAndColumns) {
  const auto formula = parse_formula("l2-hit-rate.peak - b-1 -c", FormulaNames::kMetrics);
  ASSERT_TRUE(formula.has_value()) << formula.error().message;
  ASSERT_EQ(formula->steps.size(), 5U);
  EXPECT_EQ(formula->steps[0].op, FormulaOp::kMetric);
  EXPECT_EQ(formula->steps[0].text, "l2-hit-rate");
  EXPECT_EQ(formula->steps[0].column, "peak");
  EXPECT_EQ(formula->steps[1].text, "b-1");
  EXPECT_EQ(formula->steps[3].text, "c");
  EXPECT_EQ(formula->steps[4].op, FormulaOp::kSubtract);
}

TEST(FormulaOfMetrics, OfCountersTheMinusAlwaysSubtracts) {
  const auto formula = parse_formula("SQ_A-SQ_B");
  ASSERT_TRUE(formula.has_value());
  ASSERT_EQ(formula->steps.size(), 3U);
  EXPECT_EQ(formula->steps[2].op, FormulaOp::kSubtract);
}

TEST(FormulaOfMetrics, ValuesHaveNoHyphens) {
  const auto formula = parse_formula("$cu_per_gpu-1", FormulaNames::kMetrics);
  ASSERT_TRUE(formula.has_value());
  EXPECT_EQ(formula->steps[0].text, "cu_per_gpu");
  EXPECT_EQ(formula->steps.size(), 3U);
}

TEST(Condition, HasAFormulaARelationAndANumber) {
  const auto condition = parse_condition(" (a > b) * 2 + c  >=  -1.5e3 ", FormulaNames::kMetrics);
  ASSERT_TRUE(condition.has_value()) << condition.error().message;
  EXPECT_EQ(condition->left_text, "(a > b) * 2 + c");
  EXPECT_EQ(condition->left.steps.size(), 7U);
  EXPECT_EQ(condition->left.steps.back().op, FormulaOp::kAdd);
  EXPECT_EQ(condition->relation, FormulaOp::kGreaterEqual);
  EXPECT_EQ(condition->right, -1500);
}

TEST(Condition, ErrorsNameTheColumn) {
  EXPECT_EQ(condition_error("a < 5"), "no error");
  EXPECT_EQ(condition_error(""), "column 1: expected a metric, a number or '(', but the formula ends");
  EXPECT_EQ(condition_error("a"), "column 2: expected '<', '<=', '>' or '>=' and a number, but the formula ends");
  EXPECT_EQ(condition_error("a == 5"), "column 3: expected '<', '<=', '>' or '>=' and a number, found '='");
  EXPECT_EQ(condition_error("a > b"), "column 5: expected a number, found 'b'");
  EXPECT_EQ(condition_error("a >"), "column 4: expected a number, but the formula ends");
  EXPECT_EQ(condition_error("a > 5 + 1"), "column 7: expected the end of the condition behind its number, found '+'");
  EXPECT_EQ(condition_error("a > 1e999"), "column 5: expected a number, found '1'");
  EXPECT_EQ(condition_error("1 < a < 3"), "column 5: expected a number, found 'a'");
}

TEST(Range, HasTwoFormulas) {
  const auto range = parse_range("0.5 .. a-b * 2", FormulaNames::kMetrics);
  ASSERT_TRUE(range.has_value()) << range.error().message;
  EXPECT_EQ(range->low_text, "0.5");
  EXPECT_EQ(range->high_text, "a-b * 2");
  EXPECT_EQ(range->high.steps.size(), 3U);
}

TEST(Range, ErrorsNameTheColumn) {
  EXPECT_EQ(range_error("1 .. 2"), "no error");
  EXPECT_EQ(range_error("1"), "column 2: expected '..' between the low and the high end, but the formula ends");
  EXPECT_EQ(range_error("1 .."), "column 5: expected a metric, a number or '(', but the formula ends");
  EXPECT_EQ(range_error("1 .. 2 .. 3"), "column 8: expected an operator or the end of the formula, found '.'");
}

}  // namespace
}  // namespace tacho::metric
