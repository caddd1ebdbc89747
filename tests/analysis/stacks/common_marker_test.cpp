// Where two runs meet: the first marker that both have.
#include "analysis/stacks/common_marker.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/trace_maker.h"
#include "trace/rows.h"

namespace tacho::analysis {
namespace {

using trace::Folder;
using trace::must;

std::shared_ptr<const trace::Trace> marked(const Folder& folder, const std::string& name,
                                           const std::vector<std::pair<int64_t, std::string>>& markers,
                                           const std::string& mark = "") {
  test::TraceMaker made(folder / name);
  const int64_t track = made.thread_track(made.process(1), 1);
  for (const auto& [start, text] : markers) made.marker(track, start, text == mark ? 0 : 10, made.label(text));
  return made.open();
}

TEST(CommonMarker, IsTheFirstOfTheFirstTraceThatTheOtherHas) {
  const Folder folder;
  const auto a = marked(folder, "a", {{100, "load"}, {200, "warm up"}, {300, "run"}});
  const auto b = marked(folder, "b", {{1000, "run"}, {1500, "warm up"}});
  const auto common = must(first_common_marker(*a, *b));
  ASSERT_TRUE(common);
  EXPECT_EQ(common->at_a, 200);
  EXPECT_EQ(common->at_b, 1500);
  EXPECT_EQ(common->text_a, "warm up");
}

TEST(CommonMarker, StepsGoBeforeOthersAndTheirNumbersDoNotCount) {
  const Folder folder;
  const auto a = marked(folder, "a", {{100, "load"}, {400, "ProfilerStep#12"}, {500, "ProfilerStep#13"}});
  const auto b = marked(folder, "b", {{50, "load"}, {700, "ProfilerStep#3"}, {600, "ProfilerStep#2"}});
  const auto common = must(first_common_marker(*a, *b));
  ASSERT_TRUE(common);
  EXPECT_EQ(common->at_a, 400);
  EXPECT_EQ(common->text_a, "ProfilerStep#12");
  EXPECT_EQ(common->at_b, 600);
  EXPECT_EQ(common->text_b, "ProfilerStep#2");
}

TEST(CommonMarker, RangesGoBeforeMarks) {
  const Folder folder;
  const auto a = marked(folder, "a", {{100, "Iteration begins"}, {200, "load"}, {400, "step 1"}}, "Iteration begins");
  const auto b = marked(folder, "b", {{100, "Iteration begins"}, {200, "load"}, {600, "step 1"}}, "Iteration begins");
  const auto common = must(first_common_marker(*a, *b));
  ASSERT_TRUE(common);
  EXPECT_EQ(common->text_a, "step 1");
  EXPECT_EQ(common->at_b, 600);
}

TEST(CommonMarker, ThereMayBeNone) {
  const Folder folder;
  const auto a = marked(folder, "a", {{100, "this"}});
  const auto b = marked(folder, "b", {{100, "that"}});
  const auto none = marked(folder, "c", {});
  EXPECT_FALSE(must(first_common_marker(*a, *b)));
  EXPECT_FALSE(must(first_common_marker(*a, *none)));
}

}  // namespace
}  // namespace tacho::analysis
