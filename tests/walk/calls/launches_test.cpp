// The call of each launch (walk/calls/launches.h) and the index behind it.
#include "walk/calls/launches.h"

#include <gtest/gtest.h>

#include "support/trace_maker.h"

namespace tacho::walk {
namespace {

using event::kUnknown;
namespace row = event::row;

// A trace of two processes with a thread each.
class LaunchTest : public testing::Test {
 protected:
  LaunchTest() {
    for (int64_t pid : {100, 200}) tracks_.push_back(made_.thread_track(made_.process(pid), pid));
    launch_ = function("cudaLaunchKernel", event::Domain::kCudaRuntime);
  }
  int64_t function(std::string_view name, event::Domain domain) { return made_.function(name, domain); }
  void call(int64_t track, int64_t start, int64_t duration, int64_t correlation, int64_t dim = 0) {
    made_.call(track, start, duration, dim != 0 ? dim : launch_, correlation);
  }
  int64_t range(int64_t track, int64_t start, int64_t duration, std::string_view name,
                event::MarkerKind kind = event::MarkerKind::kPushPop) {
    const int64_t label = made_.label(name, kind);
    made_.marker(track, start, duration, label);
    return label;
  }
  const trace::Trace& trace() {
    if (!trace_) trace_ = made_.open();
    return *trace_;
  }

  test::TraceMaker made_;
  std::shared_ptr<const trace::Trace> trace_;
  std::vector<int64_t> tracks_;
  int64_t launch_ = 0;
};

TEST_F(LaunchTest, IsTheCallOfTheSameProcessWithTheSameCorrelation) {
  call(tracks_[0], 10, 5, 7);
  call(tracks_[1], 20, 6, 7);
  Launches launches(trace(), Launches::Around::kNothing);
  const Launch* launch = launches.find(1, 7, 100);
  ASSERT_NE(launch, nullptr);
  EXPECT_EQ(launch->track, tracks_[0]);
  EXPECT_EQ(launch->start, 10);
  EXPECT_EQ(launch->duration, 5);
  EXPECT_EQ(launch->function, launch_);
  launch = launches.find(2, 7, 100);
  ASSERT_NE(launch, nullptr);
  EXPECT_EQ(launch->start, 20);
  EXPECT_EQ(launches.find(1, 8, 100), nullptr);
  EXPECT_EQ(launches.find(1, 0, 100), nullptr);
  EXPECT_TRUE(launches.status());
}

TEST_F(LaunchTest, MayBeginAfterItsWorkAsFarAsClocksDisagree) {
  call(tracks_[0], 1'000 + kClockSlack, 5, 1);
  call(tracks_[0], 1'001 + kClockSlack, 5, 2);
  Launches launches(trace(), Launches::Around::kNothing);
  EXPECT_NE(launches.find(1, 1, 1'000), nullptr);
  EXPECT_EQ(launches.find(1, 2, 1'000), nullptr);
  EXPECT_NE(launches.find(1, 2, 1'001), nullptr);
}

TEST_F(LaunchTest, IsTheOutermostOfCallsWithOneCorrelation) {
  const int64_t driver = function("cuLaunchKernel", event::Domain::kCudaDriver);
  call(tracks_[0], 10, 50, 7);
  call(tracks_[0], 20, 10, 7, driver);
  Launches launches(trace(), Launches::Around::kNothing);
  EXPECT_EQ(launches.find(1, 7, 100)->function, launch_);
}

TEST_F(LaunchTest, IsNoOperatorAndNoPythonFunction) {
  const int64_t op = function("aten::mm", event::Domain::kOperator);
  const int64_t python = function("train.py(7): step", event::Domain::kPython);
  call(tracks_[0], 5, 100, 7, python);
  call(tracks_[0], 10, 50, 7, op);
  call(tracks_[0], 20, 10, 7);
  Launches launches(trace(), Launches::Around::kRanges);
  const Launch* const launch = launches.find(1, 7, 100);
  ASSERT_NE(launch, nullptr);
  EXPECT_EQ(launch->start, 20);
  EXPECT_EQ(launch->operator_around, op);
  EXPECT_EQ(launch->python, python);
  EXPECT_EQ(launch->label, 0);
}

TEST_F(LaunchTest, HasTheInnermostRangeThatIsOpenOnItsThread) {
  range(tracks_[0], 0, 1'000, "outer");
  const int64_t inner = range(tracks_[0], 10, 100, "inner");
  range(tracks_[0], 20, 10, "ended");
  range(tracks_[0], 25, kUnknown, "mark", event::MarkerKind::kMark);
  range(tracks_[1], 20, 100, "of another thread");
  call(tracks_[0], 30, 5, 1);
  call(tracks_[0], 110, 5, 2);
  Launches launches(trace(), Launches::Around::kRanges);
  EXPECT_EQ(launches.find(1, 1, 40)->label, inner);
  const Launch* const later = launches.find(1, 2, 200);
  EXPECT_EQ(trace().text(event::Table::kLabel, later->label, event::column::Label::name), "outer");
}

TEST_F(LaunchTest, HasTheShorterOfRangesThatBeginTogether) {
  const int64_t inner = range(tracks_[0], 10, 100, "inner");
  range(tracks_[0], 10, 200, "outer");
  call(tracks_[0], 30, 5, 1);
  Launches launches(trace(), Launches::Around::kRanges);
  EXPECT_EQ(launches.find(1, 1, 40)->label, inner);
}

TEST(CallIndex, ForgetsTheOldestAndCountsWhatItCannotFind) {
  CallIndex<int64_t> index(0);
  const int64_t room = 64 * 4;
  for (int64_t correlation = 1; correlation <= 2 * room; ++correlation) index.add(1, correlation, correlation);
  EXPECT_EQ(*index.find(1, 2 * room), 2 * room);
  EXPECT_EQ(*index.find(1, room + 1), room + 1);
  EXPECT_EQ(index.forgotten(), 0);
  EXPECT_EQ(index.find(1, 1), nullptr);
  EXPECT_EQ(index.forgotten(), 1);
  EXPECT_EQ(index.find(1, 10 * room), nullptr) << "never added, so not forgotten";
  EXPECT_EQ(index.find(2, 1), nullptr);
  EXPECT_EQ(index.forgotten(), 1);
}

TEST(CallIndex, KeepsTheFirstOfSeveralCalls) {
  CallIndex<int64_t> index(10);
  EXPECT_NE(index.add(1, 5, 100), nullptr);
  EXPECT_EQ(index.add(1, 5, 200), nullptr);
  EXPECT_EQ(index.add(1, 0, 300), nullptr);
  EXPECT_EQ(*index.find(1, 5), 100);
}

}  // namespace
}  // namespace tacho::walk
