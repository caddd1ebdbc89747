// The calls behind device work in any order of asking (walk/calls/causes.h, walk/calls/call_rows.h).
#include "walk/calls/causes.h"

#include <gtest/gtest.h>

#include "support/trace_maker.h"
#include "walk/calls/call_rows.h"

namespace tacho::walk {
namespace {

namespace row = event::row;

// Two processes with a thread each. Of process 1: correlation 7 twice, 1 << 40, and an operator's range with 8.
std::shared_ptr<const trace::Trace> two_processes() {
  test::TraceMaker made;
  const int64_t launch = made.function("cudaLaunchKernel", event::Domain::kCudaRuntime),
                range = made.function("aten::mm", event::Domain::kOperator);
  int64_t track[2];
  for (int64_t i = 0; i < 2; ++i) track[i] = made.thread_track(made.process(100 + i), 100 + i);
  made.call(track[0], 10, 5, launch, 7);
  made.call(track[0], 11, 2, launch, 7);
  made.call(track[1], 20, 6, launch, 7);
  made.call(track[0], 30, event::kUnknown, launch, int64_t{1} << 40);
  made.call(track[0], 40, 9, range, 8);
  made.call(track[0], 50, 9, launch, 0);
  return made.open();
}

TEST(Causes, AreTheFirstCallsOfTheSameProcess) {
  const auto trace = two_processes();
  auto calls = runtime_calls(*trace, 0);
  ASSERT_TRUE(calls);
  const auto when = [&](int64_t process, int64_t correlation) {
    const Span* const found = calls->find(process, correlation);
    return found != nullptr ? std::pair(found->first, found->last) : std::pair<int64_t, int64_t>(-1, -1);
  };
  EXPECT_EQ(when(1, 7), std::pair(int64_t{10}, int64_t{15}));
  EXPECT_EQ(when(2, 7), std::pair(int64_t{20}, int64_t{26}));
  EXPECT_EQ(when(1, int64_t{1} << 40), std::pair(int64_t{30}, int64_t{30})) << "it had not returned";
  for (const int64_t correlation : {0, 8, 9}) EXPECT_EQ(when(1, correlation).first, -1) << correlation;
  auto second = runtime_calls(*trace, 2);
  ASSERT_TRUE(second);
  EXPECT_NE(second->find(2, 7), nullptr);
  EXPECT_EQ(second->find(1, 7), nullptr);
}

TEST(CallRows, AreTheFirstCallsOfTheSameProcess) {
  const auto trace = two_processes();
  CallRows calls(*trace);
  const auto duration = [&](int64_t process, int64_t correlation) {
    return calls.duration(calls.find(process, correlation));
  };
  EXPECT_EQ(duration(1, 7), 5);
  EXPECT_EQ(duration(2, 7), 6);
  EXPECT_EQ(calls.track(calls.find(2, 7)), 2);
  EXPECT_GE(calls.find(1, int64_t{1} << 40), 0) << "far from the others";
  EXPECT_EQ(duration(1, int64_t{1} << 40), event::kUnknown) << "it had not returned";
  EXPECT_EQ(duration(1, 8), 9);
  for (const int64_t correlation : {0, 9}) EXPECT_EQ(calls.find(1, correlation), -1) << correlation;
  EXPECT_TRUE(calls.status());
}

}  // namespace
}  // namespace tacho::walk
