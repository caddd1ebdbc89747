// Which dispatches a metric leaves out, and of which kernels.
#include "metric/analysis/left_out.h"

#include <gtest/gtest.h>

#include <cmath>

#include "../formula/runs.h"

namespace tacho::metric {
namespace {

const double kNone = std::nan("");

// Four dispatches of two kernels; B is missing in the second and the fourth, C in all, D nowhere.
workload::Workload with_gaps() {
  workload::Workload run = testing::make_run({{"A", {1, 2, 3, 4}},
                                              {"B", {1, kNone, 3, kNone}},
                                              {"C", {kNone, kNone, kNone, kNone}},
                                              {"D", {1, 1, 1, 1}},
                                              {"E[0]", {1, 2, kNone, 4}},
                                              {"E[1]", {kNone, 2, 3, 4}}},
                                             {{"total_l2_chan", "2"}});
  run.kernels = {"first", "second"};
  run.dispatches[1].kernel = run.dispatches[3].kernel = run.dispatches[2].kernel = 1;
  return run;
}

struct Looked {
  workload::Workload run = with_gaps();
  Program program;
  CounterGaps gaps;

  explicit Looked(std::optional<std::vector<uint32_t>> rows = {}) : program(environment(rows)), gaps(program) {}
  Environment environment(std::optional<std::vector<uint32_t>> rows) const {
    Environment made;
    made.workload = &run;
    made.rows = std::move(rows);
    return made;
  }
  CounterGaps::Found of(std::string_view formula, Context context = {}) {
    return gaps.of(program.inputs(*parse_formula(formula), context));
  }
};

using Rows = std::vector<uint32_t>;
using Names = std::vector<std::string>;

TEST(LeftOut, DispatchesThatLackOneInput) {
  Looked looked;
  EXPECT_EQ(looked.of("A / D").dispatches, Rows{});
  EXPECT_EQ(looked.of("A / B").dispatches, (Rows{1, 3}));
  EXPECT_EQ(looked.of("A / B").counters, Names{"B"});
  EXPECT_EQ(looked.of("A / B").empty, Names{});
  // Of each channel.
  EXPECT_EQ(looked.of("E[0]").dispatches, Rows{2});
  EXPECT_EQ(looked.of("E[*]").dispatches, (Rows{0, 2}));
  EXPECT_EQ(looked.of("E[*] + B").dispatches, (Rows{0, 1, 2, 3}));
  EXPECT_EQ(looked.of("E[*] + B").counters, (Names{"E", "B"}));
}

TEST(LeftOut, CountersThatNoDispatchHas) {
  Looked looked;
  EXPECT_EQ(looked.of("A / C").empty, Names{"C"});
  EXPECT_EQ(looked.of("A / NOPE").counters, Names{}) << "the run lacks it as a whole";
}

TEST(LeftOut, AnotherTakesThePlace) {
  Looked looked;
  EXPECT_EQ(looked.of("COALESCE(B, D)").dispatches, Rows{});
  EXPECT_EQ(looked.of("COALESCE(B / A, D) / E[0]").dispatches, Rows{2});
}

TEST(LeftOut, OfTheDispatchesThatAreLookedAt) {
  Looked looked(Rows{2, 3});
  EXPECT_EQ(looked.of("B").dispatches, Rows{3});
  EXPECT_EQ(looked.of("E[1]").dispatches, Rows{});
}

TEST(LeftOut, MetricsWithTheSameDispatchesAreOneGroup) {
  Looked looked;
  std::vector<LeftOut> groups;
  add_left_out(groups, "1.1.0", "one", looked.of("A / B"));
  add_left_out(groups, "1.1.1", "two", looked.of("B"));
  add_left_out(groups, "1.1.2", "three", looked.of("E[0]"));
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].ids, (Names{"1.1.0", "1.1.1"}));
  EXPECT_EQ(groups[0].counters, Names{"B"});
  const auto kernels = kernels_left_out(groups[0], looked.run, Rows{0, 1, 2, 3});
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].kernel, 1u);
  EXPECT_EQ(kernels[0].dispatches, 2u);
  EXPECT_EQ(kernels[0].of, 3u);
}

}  // namespace
}  // namespace tacho::metric
