// The formula language: grammar, errors, and values over dispatches as rocprof-compute's pandas gives them.
#include "metric/expression/expression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "runs.h"

namespace tacho::metric {
namespace {

using testing::evaluate;
using testing::make_run;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

workload::Workload sample() {
  return make_run(
      {{"A", {1, 2, 4}},
       {"B", {2, 0, 8}},
       {"Z", {0, 0, 0}},
       {"GAPS", {10, kNaN, 30}},
       {"GRBM_GUI_ACTIVE", {100, 200, 400}},
       {"SQ_WAVES", {1, 2, 5}},
       {"Start_Timestamp", {0, 1000, 5000}},
       {"End_Timestamp", {500, 3000, 9000}},
       {"TCC_HIT[0]", {1, 2, 3}},
       {"TCC_HIT[1]", {10, 20, 30}},
       {"TCC_HIT[2]", {100, 200, 300}}},
      {{"num_xcd", "2"}, {"max_sclk", "1700"}, {"total_l2_chan", "3"}, {"cu_per_gpu", "104"}, {"cur_sclk", "0"}},
      {{"SQ_LEVEL_WAVES",
        {{"A", {7, 7, 7}},
         {"SQ_ACCUM_PREV_HIRES", {3, 6, 9}},
         {"GRBM_GUI_ACTIVE", {1, 1, 1}},
         {"Start_Timestamp", {0, 0, 0}},
         {"End_Timestamp", {1, 1, 1}}}}});
}

double number(std::string_view text, const Environment& environment = {}, Context context = {}) {
  const workload::Workload run = sample();
  const Value value = evaluate(run, text, environment, context);
  EXPECT_EQ(value.kind, Value::Kind::kNumber) << text << " " << value.text;
  return value.kind == Value::Kind::kNumber ? value.number : kNaN;
}

bool computable(std::string_view text, const Environment& environment = {}, Context context = {}) {
  const workload::Workload run = sample();
  return evaluate(run, text, environment, context).kind != Value::Kind::kNotComputable;
}

TEST(Formula, ArithmeticAndPrecedence) {
  EXPECT_EQ(number("1 + 2 * 3"), 7);
  EXPECT_EQ(number("(1 + 2) * 3"), 9);
  EXPECT_EQ(number("2 - 3 - 4"), -5);
  EXPECT_EQ(number("12 / 4 / 3"), 1);
  EXPECT_EQ(number("-2 ** 2"), -4);
  EXPECT_EQ(number("2 ** 3 ** 2"), 512);
  EXPECT_EQ(number("7 % 4"), 3);
  EXPECT_EQ(number("-7 % 4"), 1);
  EXPECT_EQ(number("MOD(-7, 4)"), 1);
  EXPECT_EQ(number("-7 // 2"), -4);
  EXPECT_EQ(number("1e3 + .5"), 1000.5);
  EXPECT_EQ(number("1 if 2 > 1 and not 0 else 3"), 1);
  EXPECT_EQ(number("1 if 2 < 1 or 0 else 3"), 3);
}

TEST(Formula, ReductionsOverDispatches) {
  EXPECT_DOUBLE_EQ(number("AVG(A)"), 7.0 / 3);
  EXPECT_EQ(number("SUM(A)"), 7);
  EXPECT_EQ(number("MIN(A)"), 1);
  EXPECT_EQ(number("MAX(A)"), 4);
  EXPECT_EQ(number("MEDIAN(A)"), 2);
  EXPECT_NEAR(number("STD(A)"), 1.527525231651947, 1e-15);
  EXPECT_EQ(number("QUANTILE(A, 0.25)"), 1.5);
  EXPECT_EQ(number("QUANTILE(A, 0.75)"), 3);
  EXPECT_EQ(number("QUANTILE(A, 1)"), 4);
  EXPECT_EQ(number("AVG(5)"), 5);
  EXPECT_EQ(number("AVG(A * 2 + 1)"), 17.0 / 3);
  EXPECT_EQ(number("MAX(MAX(A, 3))"), 4);
  EXPECT_EQ(number("MIN(MAX(A, 3))"), 3);
  EXPECT_EQ(number("MIN(3, 1, 2)"), 1);
}

TEST(Formula, MissingValuesAreSkipped) {
  EXPECT_EQ(number("AVG(GAPS)"), 20);
  EXPECT_EQ(number("SUM(GAPS)"), 40);
  EXPECT_EQ(number("MEDIAN(GAPS)"), 20);
  EXPECT_NEAR(number("STD(GAPS)"), 14.142135623730951, 1e-13);
  EXPECT_EQ(number("AVG(A if B != 0 else None)"), 2.5);
  EXPECT_EQ(number("AVG(A if B != 0 else 0)"), 5.0 / 3);
}

TEST(Formula, DivisionByZero) {
  EXPECT_EQ(number("AVG(A / B)"), kInf) << "x / 0 stays infinite";
  EXPECT_EQ(number("MAX(0 - A / B)"), -0.5);
  EXPECT_EQ(number("MIN(0 - A / B)"), -kInf);
  EXPECT_EQ(number("AVG(A / B if B != 0 else None)"), 0.5);
  EXPECT_FALSE(computable("AVG(Z / Z)")) << "0 / 0 is no value";
  EXPECT_FALSE(computable("0 / 0"));
  EXPECT_FALSE(computable("STD(A if A == 1 else None)")) << "the spread of one value";
  EXPECT_FALSE(computable("AVG(A if A > 100 else None)")) << "nothing left";
}

TEST(Formula, MissingCountersMakeTheWholeFormulaNotComputable) {
  for (const char* text :
       {"AVG(NOPE)", "AVG(A + NOPE)", "MAX(NOPE, 1)", "AVG(A if NOPE != 0 else None)", "$nope", "AVG(A) + $cu_per_cake",
        "AVG(TCC_MISS[*])", "AVG(TCC_HIT[7])", "QUANTILE(NOPE, 0.5)", "CONCAT(NOPE, 1)"})
    EXPECT_FALSE(computable(text)) << text;
  const workload::Workload run = sample();
  Environment environment;
  environment.workload = &run;
  const Program program(environment);
  const Formula formula = *parse_formula("AVG(A / (NOPE * $GRBM_GUI_ACTIVE_PER_XCD)) + $max_mclk");
  std::vector<std::string> missing;
  for (const FormulaInput& input : program.inputs(formula, {}))
    if (!input.available) missing.push_back(input.name);
  EXPECT_EQ(missing, (std::vector<std::string>{"NOPE", "$max_mclk"}));
}

TEST(Formula, Functions) {
  EXPECT_EQ(number("ROUND(2.5, 0)"), 2) << "half to even";
  EXPECT_EQ(number("ROUND(3.5, 0)"), 4);
  EXPECT_EQ(number("ROUND(2.675, 2)"), 2.68) << "scaled, rounded, scaled back, as numpy does it";
  EXPECT_EQ(number("TO_INT(2.9)"), 2);
  EXPECT_EQ(number("TO_INT(-2.9)"), -2);
  const workload::Workload run = sample();
  EXPECT_EQ(evaluate(run, "CONCAT(TO_INT(AVG(A)), CONCAT(7, 1.5))").text, "271.5");
}

TEST(Formula, InstancesOfACounter) {
  EXPECT_EQ(number("AVG(TCC_HIT[1])"), 20);
  EXPECT_EQ(number("SUM(TCC_HIT[*])"), 666);
  EXPECT_EQ(number("SUM(TCC_HIT[0..1])"), 66);
  EXPECT_EQ(number("AVG(TCC_HIT[$channel])", {}, {{}, 2}), 200);
  EXPECT_FALSE(computable("AVG(TCC_HIT[$channel])")) << "no row is meant";
}

TEST(Formula, BuiltInsAndSpecifications) {
  EXPECT_EQ(number("$cu_per_gpu"), 104);
  EXPECT_EQ(number("SUM($GRBM_GUI_ACTIVE_PER_XCD)"), 350);
  EXPECT_EQ(number("$kernelBusyCycles"), std::nearbyint((0.5 + 2 + 4) / 3 * 1700));
  Environment wave, cycle, second;
  wave.normalisation = "per_wave";
  wave.denominator = "SQ_WAVES";
  cycle.normalisation = "per_cycle";
  cycle.denominator = "$GRBM_GUI_ACTIVE_PER_XCD";
  second.normalisation = "per_second";
  EXPECT_DOUBLE_EQ(number("AVG(A / $denom)"), 7.0 / 3);
  EXPECT_DOUBLE_EQ(number("AVG(A / $denom)", wave), (1 + 1 + 0.8) / 3);
  EXPECT_DOUBLE_EQ(number("AVG(A / $denom)", cycle), 0.02);
  EXPECT_DOUBLE_EQ(number("AVG(A / $denom)", second), (1 / 500e-9 + 2 / 2000e-9 + 4 / 4000e-9) / 3);
}

TEST(Formula, AClockOfZeroIsUnknownUnlessUpstreamsValueIsWanted) {
  EXPECT_FALSE(computable("$cur_sclk"));
  Environment compat;
  compat.compat = true;
  EXPECT_EQ(number("100 / $cur_sclk", compat), kInf);
}

TEST(Formula, LevelPassesHaveTheirOwnCountersButSharedCycles) {
  const Context level{"SQ_LEVEL_WAVES", -1};
  EXPECT_EQ(number("AVG(A)", {}, level), 7);
  EXPECT_EQ(number("AVG(SQ_ACCUM_PREV_HIRES)", {}, level), 6);
  EXPECT_EQ(number("SUM($GRBM_GUI_ACTIVE_PER_XCD)", {}, level), 350) << "built-ins are those of pmc_perf";
  EXPECT_EQ(number("SUM(GRBM_GUI_ACTIVE)", {}, level), 3);
  EXPECT_FALSE(computable("AVG(B)", {}, level));
  EXPECT_FALSE(computable("AVG(A)", {}, {"SQ_INST_LEVEL_LDS", -1})) << "the pass was not recorded";

  workload::Workload run = make_run({{"SQ_LEVEL_WAVES_ACCUM", {5, 7}}, {"A", {1, 1}}});
  run.long_form = true;
  EXPECT_EQ(evaluate(run, "AVG(SQ_ACCUM_PREV_HIRES / A)", {}, level).number, 6)
      << "rocpd keeps the accumulator by name";
}

TEST(Formula, ChosenDispatches) {
  Environment environment;
  environment.rows = std::vector<uint32_t>{0, 2};
  EXPECT_EQ(number("AVG(A)", environment), 2.5);
  EXPECT_EQ(number("MAX(TCC_HIT[2])", environment), 300);
}

TEST(Formula, RatioOfTotals) {
  Environment sum;
  sum.sum_ratios = true;
  EXPECT_DOUBLE_EQ(number("AVG(100 * A / B)", sum), 70);
  EXPECT_DOUBLE_EQ(number("AVG(A / (B * 2) / 5)", sum), 7.0 / 100);
  EXPECT_DOUBLE_EQ(number("AVG(1 - A / B)", sum), 0.3);
  EXPECT_DOUBLE_EQ(number("AVG(A / B if B != 0 else None)", sum), 0.5) << "5 / 10";
  EXPECT_DOUBLE_EQ(number("AVG(A)", sum), 7.0 / 3) << "not a ratio: the mean stays";
  EXPECT_DOUBLE_EQ(number("AVG(A / 2)", sum), 7.0 / 6);
  EXPECT_DOUBLE_EQ(number("AVG(A * GAPS / B)", sum), (10 + 120) / 10.0)
      << "a dispatch without a value is in neither total";
  EXPECT_EQ(number("MAX(A / B)", sum), kInf) << "only means change";
}

TEST(Formula, CoalesceTakesTheFirstThatHasAValue) {
  EXPECT_EQ(number("SUM(COALESCE(GAPS, A))"), 10 + 2 + 30) << "dispatch by dispatch";
  EXPECT_EQ(number("SUM(COALESCE(NOPE, A))"), 7) << "a counter that the run lacks";
  EXPECT_EQ(number("SUM(COALESCE(A, NOPE))"), 7);
  EXPECT_EQ(number("SUM(COALESCE(NOPE, None, GAPS, 5))"), 10 + 5 + 30);
  EXPECT_EQ(number("MAX(COALESCE(A / Z, 1))"), kInf) << "x / 0 is a value";
  EXPECT_EQ(evaluate(sample(), "SUM(COALESCE(NOPE, NOR))").kind, Value::Kind::kNotComputable);
}

TEST(Formula, ErrorsNameTheColumn) {
  const auto error = [](std::string_view text) {
    const auto formula = parse_formula(text);
    return formula ? std::string("no error") : formula.error().message;
  };
  EXPECT_EQ(error("AVG(A"), "column 6: expected ')' or ',', but the formula ends");
  EXPECT_EQ(error("A +"), "column 4: expected a counter, a number or '(', but the formula ends");
  EXPECT_EQ(error("A B"), "column 3: expected an operator or the end of the formula, found 'B'");
  EXPECT_NE(error("MEAN(A)").find("expected a function (AVG, "), std::string::npos);
  EXPECT_NE(error("AVG(A, B)").find("AVG takes 1 argument"), std::string::npos);
  EXPECT_NE(error("QUANTILE(A)").find("QUANTILE takes 2 arguments"), std::string::npos);
  EXPECT_NE(error("COALESCE(A)").find("COALESCE takes 2 arguments or more"), std::string::npos);
  EXPECT_NE(error("A if B").find("'else'"), std::string::npos);
  EXPECT_NE(error("TCC_HIT[x]").find("instance number"), std::string::npos);
  EXPECT_NE(error("3x").find("operator after the number"), std::string::npos);
  EXPECT_NE(error("$").find("after '$'"), std::string::npos);
  EXPECT_NE(error("A = B").find("found '='"), std::string::npos);
  EXPECT_NE(error("A \x01").find("found '?'"), std::string::npos);
  EXPECT_FALSE(parse_formula("").has_value());
  EXPECT_NE(error(std::string(500, '(')).find("nested more than"), std::string::npos);
  EXPECT_NE(error(std::string(500, '(') + "1" + std::string(500, ')')).find("nested"), std::string::npos);
}

TEST(Formula, LongSumsNeedNoDepth) {
  std::string text = "A";
  for (int i = 0; i < 20000; ++i) text += " + A";
  EXPECT_EQ(number("SUM(" + text + ")"), 7 * 20001);
}

// Every function against a straightforward computation on random columns with gaps.
TEST(Formula, AgreesWithDirectComputation) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 50; ++round) {
    const size_t n = 1 + random() % 700;
    std::vector<double> x(n), y(n);
    for (size_t i = 0; i < n; ++i) {
      x[i] = random() % 9 == 0 ? kNaN : static_cast<double>(random() % 1000000);
      y[i] = static_cast<double>(random() % 50);
    }
    const workload::Workload run = make_run({{"X", x}, {"Y", y}});
    std::vector<double> ratio;
    double sum = 0;
    for (size_t i = 0; i < n; ++i)
      if (y[i] != 0 && !std::isnan(x[i])) {
        ratio.push_back(x[i] / y[i]);
        sum += ratio.back();
      }
    if (ratio.size() < 2) continue;
    std::sort(ratio.begin(), ratio.end());
    const std::string column = "(X / Y if Y != 0 else None)";
    const double mean = sum / static_cast<double>(ratio.size());
    double squares = 0;
    for (const double value : ratio) squares += (value - mean) * (value - mean);
    const auto quantile = [&](double q) {
      const double at = q * static_cast<double>(ratio.size() - 1);
      const auto low = static_cast<size_t>(at);
      return ratio[low] +
             (low + 1 < ratio.size() ? (ratio[low + 1] - ratio[low]) * (at - static_cast<double>(low)) : 0);
    };
    const auto expect = [&](const std::string& text, double expected) {
      EXPECT_NEAR(evaluate(run, text).number, expected, 1e-12 * std::fabs(expected)) << text << " n=" << n;
    };
    expect("AVG" + column, mean);
    expect("SUM" + column, sum);
    expect("MIN" + column, ratio.front());
    expect("MAX" + column, ratio.back());
    expect("STD" + column, std::sqrt(squares / static_cast<double>(ratio.size() - 1)));
    for (const double q : {0.0, 0.25, 0.5, 0.75, 0.9, 1.0})
      expect(fmt::format("QUANTILE({}, {})", column, q), quantile(q));
    expect("MEDIAN" + column, quantile(0.5));
  }
}

// Results do not depend on how many columns may be held: with hardly any, shared ones are dropped and computed again.
TEST(Program, DroppedColumnsAreComputedAgain) {
  std::mt19937_64 random(5);
  testing::Columns columns;
  for (int c = 0; c < 30; ++c)
    for (int r = 0; r < 50; ++r) columns[fmt::format("C[{}]", c)].push_back(static_cast<double>(random() % 1000));
  workload::Workload run = make_run(columns, {{"total_l2_chan", "30"}});
  // Each of 30 shared sums is used by three formulas that come far apart.
  std::vector<std::string> texts;
  for (const char* shape : {"AVG({0} / {1})", "MAX(({0}) * 2 - {1})", "QUANTILE({0} if ({0}) != ({1}) else None, 0.25)",
                            "SUM(C[*] / (1 + {0}))"})
    for (int c = 0; c < 30; ++c)
      texts.push_back(fmt::format(fmt::runtime(shape), fmt::format("(C[{}] + C[{}])", c, (c + 7) % 30),
                                  fmt::format("(1 + C[{}] * C[{}])", c, (c + 1) % 30)));
  for (const bool chosen : {false, true}) {
    std::vector<double> results[2];
    for (int budget = 0; budget < 2; ++budget) {
      Environment environment;
      environment.workload = &run;
      environment.column_budget = budget == 0 ? 0 : size_t{1} << 30;
      if (chosen) environment.rows = std::vector<uint32_t>{0, 3, 4, 20, 49};
      Program program(environment);
      std::vector<Program::Node> nodes;
      for (int half = 0; half < 2; ++half) {
        for (size_t i = half == 0 ? 0 : texts.size() / 2; i < (half == 0 ? texts.size() / 2 : texts.size()); ++i)
          nodes.push_back(program.add(*parse_formula(texts[i]), {}));
        program.run();  // in two parts, as the second may need what the first has freed
      }
      for (const Program::Node node : nodes) results[budget].push_back(program.value(node).number);
    }
    ASSERT_EQ(results[0].size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(results[0][i], results[1][i]) << texts[i];
  }
}

}  // namespace
}  // namespace tacho::metric
