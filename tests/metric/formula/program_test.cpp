// The column program: the nodes that it shares, reads and keeps, and the graph that it gives to others.
#include "metric/formula/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runs.h"

namespace tacho::metric {
namespace {

using testing::make_run;

workload::Workload four_dispatches() {
  return make_run({{"A", {1, 2, 4, 5}},
                   {"B", {2, 4, 8, 10}},
                   {"SQ_WAVES", {1, 2, 5, 8}},
                   {"Start_Timestamp", {0, 1000, 5000, 9000}},
                   {"End_Timestamp", {500, 3000, 9000, 9500}}},
                  {{"cu_per_gpu", "104"}}, {{"LEVEL", {{"A", {70, 70, 70, 70}}, {"DEEP", {7, 8, 9, 9}}}}});
}

Formula formula_of(std::string_view text) {
  auto result = parse_formula(text);
  EXPECT_TRUE(result) << text;
  return std::move(*result);
}

Environment environment_of(const workload::Workload& run) {
  Environment environment;
  environment.workload = &run;
  return environment;
}

size_t operation_count(const Program& program, std::vector<Program::Node> nodes) {
  return program.graph(nodes).operations.size();
}

TEST(Program, EqualSubExpressionsAreOneNode) {
  const workload::Workload run = four_dispatches();
  Program program(environment_of(run));
  const Program::Node first = program.compile(formula_of("A / (A + B)"), {});
  const Program::Node again = program.compile(formula_of("A / (A + B)"), {});
  const Program::Node other = program.compile(formula_of("B / (A + B)"), {});
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
  // "missing", the columns A and B, one sum, and a division for each of the two formulas.
  EXPECT_EQ(operation_count(program, {first, other}), 6u);
  EXPECT_EQ(program.graph(std::vector{first, other}).inputs.size(), 2u);
}

TEST(Program, ReadsOnlyTheColumnsOfWhatIsAskedFor) {
  const workload::Workload run = four_dispatches();
  Program program(environment_of(run));
  program.compile(formula_of("SUM(B)"), {});
  const Program::Node wanted = program.compile(formula_of("SUM(A)"), {});
  const Program::Graph graph = program.graph(std::vector{wanted});
  ASSERT_EQ(graph.inputs.size(), 1u);
  EXPECT_EQ(std::vector<double>(graph.inputs[0].begin(), graph.inputs[0].end()), (std::vector<double>{1, 2, 4, 5}));
}

TEST(Program, AColumnHasNoValueAndAValueNoColumn) {
  const workload::Workload run = four_dispatches();
  Program program(environment_of(run));
  const Program::Node column = program.keep(program.compile(formula_of("B / A"), {}));
  const Program::Node mean = program.keep(program.compile(formula_of("B / A"), {}), FormulaOp::kAvg);
  program.run();
  EXPECT_TRUE(program.is_column(column));
  EXPECT_EQ(program.value(column).kind, Value::Kind::kNotComputable);
  const auto cells = program.column(column);
  EXPECT_EQ(std::vector<double>(cells.begin(), cells.end()), (std::vector<double>{2, 2, 2, 2}));
  EXPECT_FALSE(program.is_column(mean));
  EXPECT_EQ(program.value(mean).number, 2);
  EXPECT_TRUE(program.column(mean).empty());
}

TEST(Program, RunComputesWhatCameSinceTheLastTime) {
  const workload::Workload run = four_dispatches();
  Program program(environment_of(run));
  const Program::Node sum = program.add(formula_of("SUM(A)"), {});
  program.run();
  const Program::Node more = program.add(formula_of("SUM(A) + MAX(B)"), {});
  program.run();
  EXPECT_EQ(program.value(sum).number, 12);
  EXPECT_EQ(program.value(more).number, 22);
}

TEST(Program, NamesItsInputsInTheOrderOfTheFormulaAndSaysWhichAreMissing) {
  const workload::Workload run = four_dispatches();
  const Program program(environment_of(run));
  EXPECT_EQ(
      program.inputs(formula_of("AVG(B / ABSENT + B) * $cu_per_gpu"), {}),
      (std::vector<FormulaInput>{{"B", "pmc_perf", true}, {"ABSENT", "pmc_perf", false}, {"$cu_per_gpu", "", true}}));
}

TEST(Program, ALevelReadsItsOwnPass) {
  const workload::Workload run = four_dispatches();
  Program program(environment_of(run));
  const Program::Node here = program.add(formula_of("SUM(A)"), {});
  const Program::Node there = program.add(formula_of("SUM(A)"), {"LEVEL", -1});
  EXPECT_NE(here, there);
  program.run();
  EXPECT_EQ(program.value(here).number, 12);
  EXPECT_EQ(program.value(there).number, 280);
  EXPECT_EQ(program.inputs(formula_of("DEEP"), {"LEVEL", -1}), (std::vector<FormulaInput>{{"DEEP", "LEVEL", true}}));
}

TEST(Program, StepsEndWithTheFormula) {
  const workload::Workload run = four_dispatches();
  Program program(environment_of(run));
  const std::vector<Program::Node> steps = program.add_steps(formula_of("SUM(A) / SUM(B)"), {});
  program.run();
  ASSERT_FALSE(steps.empty());
  std::vector<double> numbers;
  for (const Program::Node step : steps)
    if (!program.is_column(step)) numbers.push_back(program.value(step).number);
  for (const double expected : {12.0, 24.0, 0.5})
    EXPECT_NE(std::find(numbers.begin(), numbers.end(), expected), numbers.end()) << expected;
  EXPECT_EQ(numbers.back(), 0.5) << "the whole comes last";
}

TEST(Program, NormalisationsShareWhatDoesNotDependOnThem) {
  const workload::Workload run = four_dispatches();
  Program program(environment_of(run));
  const Program::Node per_kernel = program.add(formula_of("AVG(A / $denom)"), {});
  program.set_normalisation("per_wave", "SQ_WAVES");
  const Program::Node per_wave = program.add(formula_of("AVG(A / $denom)"), {});
  const Program::Node same = program.add(formula_of("SUM(A)"), {});
  program.run();
  EXPECT_EQ(program.value(per_kernel).number, 3);
  EXPECT_DOUBLE_EQ(program.value(per_wave).number, (1.0 / 1 + 2.0 / 2 + 4.0 / 5 + 5.0 / 8) / 4);
  EXPECT_EQ(program.value(same).number, 12);
}

TEST(Program, TheErrorOfAMeanComesFromRepeatsOfTheSameLaunch) {
  const workload::Workload run = four_dispatches();
  const std::vector<uint32_t> repeats = {0, 0, 1, 1};
  Environment environment = environment_of(run);
  environment.repeats = repeats;
  Program program(environment);
  const Program::Node column = program.compile(formula_of("A"), {});
  const Program::Node error = program.keep_error(column);
  const Program::Node scalar = program.keep_error(program.compile(formula_of("SUM(A)"), {}));
  program.run();
  // Two launches with two values each, 1 and 2, 4 and 5: variance 0.5 within each, pooled over 2 degrees of freedom,
  // for which Student's t is 4.303.
  EXPECT_NEAR(program.value(error).number, 4.303 * std::sqrt(0.5 / 4), 0.002);
  EXPECT_EQ(program.value(scalar).kind, Value::Kind::kNotComputable) << "a value is no column";

  environment.sum_ratios = true;
  Program totals(environment);
  const Program::Node same = totals.keep_error(totals.compile(formula_of("A"), {}));
  totals.run();
  EXPECT_EQ(totals.value(same).number, program.value(error).number) << "what is no ratio keeps its mean";
}

TEST(Program, TheErrorOfARatioOfTotalsComesFromRepeatsToo) {
  const workload::Workload run = make_run({{"A", {10, 12, 400, 440, 7}}, {"B", {5, 6, 100, 100, kNaN}}});
  const std::vector<uint32_t> repeats = {0, 0, 1, 1, 2};
  Environment environment;
  environment.workload = &run;
  environment.repeats = repeats;
  environment.sum_ratios = true;
  Program program(environment);
  const Program::Node column = program.compile(formula_of("100 * A / B"), {});
  const Program::Node ratio = program.keep(column, FormulaOp::kAvg);
  const Program::Node error = program.keep_error(column);
  const auto totals = program.keep_totals(column);
  const Program::Node one = program.keep_error(program.compile(formula_of("A / (B * 0 + 1)"), {}));
  program.run();
  // By hand: the fifth dispatch has no B and is in neither sum. R = 86200 / 211; the differences a - R b are
  // -1042.65, -1251.18 and -852.61, 3147.39 (rounded); variances 21743.7 and 8000000, two launches of two repeats.
  const double r = 86200.0 / 211;
  EXPECT_DOUBLE_EQ(program.value(ratio).number, r);
  const auto variance = [&](double a1, double b1, double a2, double b2) {
    const double off = (100 * a1 - r * b1) - (100 * a2 - r * b2);
    return off * off / 2;
  };
  const double sum = 2 * variance(10, 5, 12, 6) + 2 * variance(400, 100, 440, 100);
  EXPECT_NEAR(program.value(error).number, 4.303 * std::sqrt(sum) / 211, 1e-9);
  ASSERT_TRUE(totals);
  EXPECT_EQ(program.value(totals->above).number, 86200);
  EXPECT_EQ(program.value(totals->below).number, 211);
  EXPECT_EQ(totals->above_text, "(100 * A)");
  EXPECT_EQ(totals->below_text, "B");
  EXPECT_TRUE(std::isnan(program.column(totals->column)[4]));
  // A denominator of 1 each: the error of a mean, over the dispatches that have it.
  Environment means = environment;
  means.sum_ratios = false;
  Program plain(means);
  const Program::Node mean = plain.keep_error(plain.compile(formula_of("A / (B * 0 + 1)"), {}));
  plain.run();
  EXPECT_NEAR(program.value(one).number, plain.value(mean).number, 1e-9);
  EXPECT_FALSE(plain.keep_totals(plain.compile(formula_of("A / B"), {})));
}

// A guard that states 0 means it: of a run without requests the mean is 0 in all modes, and unknown only where the
// counters are.
TEST(Program, AGuardStatesWhatARunWithoutTheDivisorHas) {
  const workload::Workload run = make_run(
      {{"A", {10, 0, 30, 0}}, {"B", {5, 0, 5, 0}}, {"NONE", {0, 0, 0, 0}}, {"LOST", {kNaN, kNaN, kNaN, kNaN}}});
  const auto value = [&](std::string_view text, bool sums, bool compat) {
    Environment environment = environment_of(run);
    environment.sum_ratios = sums;
    environment.compat = compat;
    const Value result = evaluate(run, text, environment);
    return result.kind == Value::Kind::kNumber ? result.number : kNaN;
  };
  for (const auto& [sums, compat] : {std::pair{true, false}, {false, false}, {false, true}}) {
    SCOPED_TRACE(fmt::format("sums {}, compat {}", sums, compat));
    EXPECT_EQ(value("AVG(A / NONE if NONE != 0 else 0)", sums, compat), 0);
    EXPECT_EQ(value("AVG(100 * (A / NONE if NONE != 0 else 0))", sums, compat), 0);
    EXPECT_EQ(value("AVG(1 - (A / NONE if NONE != 0 else 0))", sums, compat), 1);
    EXPECT_TRUE(std::isnan(value("AVG(A / NONE if NONE != 0 else None)", sums, compat)));
    EXPECT_TRUE(std::isnan(value("AVG(A / LOST if LOST != 0 else 0)", sums, compat)));
    EXPECT_EQ(value("AVG(A / B if B != 0 else 0)", sums, compat), sums ? 4 : 2);
    EXPECT_EQ(value("AVG(A / B if B != 0 else None)", sums, compat), 4);
  }
}

TEST(Program, GroupsOfRowsHaveTheirOwnTotals) {
  const workload::Workload run =
      make_run({{"A", {1, 2, 3, 4, 5, 60}}, {"B", {1, 1, 2, 2, kNaN, 10}}, {"C", {5, 1, 4, 2, 3, 9}}});
  for (const char* const text : {"AVG(A / B)", "AVG(A)", "SUM(A) / MAX(C)", "MIN(C) + 1", "STD(A)",
                                 "MEDIAN(C) if MAX(C) > 3 else None", "QUANTILE(A, 0.25)", "MAX(A) - MIN(A)"}) {
    SCOPED_TRACE(text);
    Environment environment;
    environment.workload = &run;
    environment.sum_ratios = true;
    environment.groups = 3;
    Program program(environment);
    const Program::Node node = program.add(formula_of(text), {});
    program.run();
    const auto values = program.group_values(node);
    ASSERT_EQ(values.size(), 6u);
    const auto over = [&](std::vector<uint32_t> rows) {
      Environment some = environment;
      some.groups = 0;
      some.rows = std::move(rows);
      return evaluate(run, text, some);
    };
    const auto same = [](double x, const Value& expected) {
      if (expected.kind == Value::Kind::kNumber)
        EXPECT_NEAR(x, expected.number, 1e-12 * std::fabs(expected.number));
      else
        EXPECT_TRUE(std::isnan(x)) << x;
    };
    same(values[0], over({0, 3}));
    same(values[1], over({1, 4}));
    same(values[2], over({2, 5}));
    same(values[3], over({1, 2, 4, 5}));
    same(values[4], over({0, 2, 3, 5}));
    same(values[5], over({0, 1, 3, 4}));
    EXPECT_EQ(program.value(node).number, evaluate(run, text,
                                                   [&] {
                                                     Environment all = environment;
                                                     all.groups = 0;
                                                     return all;
                                                   }())
                                              .number);
  }
}

TEST(Program, AGraphNamesOnlyEarlierOperations) {
  const workload::Workload run = four_dispatches();
  Program program(environment_of(run));
  std::vector<Program::Node> nodes;
  for (const char* const text : {"AVG(A / B)", "SUM(A) if MAX(B) > 3 else None", "QUANTILE(A + B, 0.25)", "ABSENT + 1"})
    nodes.push_back(program.compile(formula_of(text), {}));
  const Program::Graph graph = program.graph(nodes);
  const auto names = Program::operation_names();
  ASSERT_EQ(graph.wanted.size(), nodes.size());
  EXPECT_EQ(graph.wanted.back(), 0u) << "a counter that is not there makes the formula not computable";
  ASSERT_FALSE(graph.operations.empty());
  EXPECT_EQ(names[graph.operations[0].op], "missing");
  for (size_t i = 0; i < graph.operations.size(); ++i) {
    const Program::Graph::Operation& operation = graph.operations[i];
    ASSERT_LT(operation.op, names.size());
    const std::string_view name = names[operation.op];
    const size_t limit = name == "constant" ? graph.constants.size() : name == "column" ? graph.inputs.size() : i;
    if (i > 0 && name != "sum_list") {
      EXPECT_LT(operation.a, limit) << name;
    }
  }
}

TEST(Program, ASpecificationThatIsNotThereIsNoNumber) {
  const workload::Workload run = four_dispatches();
  const Program program(environment_of(run));
  EXPECT_EQ(program.specification("cu_per_gpu"), 104);
  EXPECT_TRUE(std::isnan(program.specification("num_xcd")));
  EXPECT_EQ(program.rows(), 4u);
}

}  // namespace
}  // namespace tacho::metric
