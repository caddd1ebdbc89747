// Device work before its launch is counted and told, in whatever order the rows come.
#include "trace/write/launch_order.h"

#include <gtest/gtest.h>

#include "decode/memory_writer.h"

namespace tacho::trace {
namespace {

TEST(LaunchOrder, SaysNothingOfWorkAfterItsLaunch) {
  decode::MemoryWriter writer;
  LaunchOrder order;
  for (int64_t i = 1; i < 1000; ++i) {
    order.call(0, i, i * 1'000'000);
    order.work(0, i, i * 1'000'000 + 5000);
    order.work(0, i, i * 1'000'000 - 10'000);  // within what two clocks can differ by
  }
  order.work(0, 0, -1'000'000'000);     // caused by nobody
  order.work(0, 5000, -1'000'000'000);  // by a call that was not recorded
  order.finish(writer, 3);
  EXPECT_TRUE(writer.notes.empty());
  EXPECT_TRUE(writer.losses.empty());
}

TEST(LaunchOrder, CountsWorkBeforeItsLaunch) {
  decode::MemoryWriter writer;
  LaunchOrder order;
  order.call(0, 1, 1'000'000);
  order.work(0, 1, 1'001'000);
  order.work(0, 2, 900'000);  // before its call is seen
  order.call(0, 2, 1'000'000);
  order.call(0, 3, 5'003'000);  // the driver's call in the runtime's
  order.call(0, 3, 5'000'000);
  order.work(0, 3, 4'700'000);
  order.work(1, 2, 10'000'000);  // another process's
  order.call(1, 2, 10'500'000);
  order.finish(writer, 0);
  ASSERT_EQ(writer.notes.size(), 1u);
  EXPECT_NE(writer.notes[0].find(
                "3 of 4 kernels, copies and fills begin before the call that launched them began, by 300.0 us "
                "in the middle and 500.0 us at most"),
            std::string::npos)
      << writer.notes[0];
  EXPECT_EQ(writer.losses[event::LossReason::kClockOrder], 3);
}

TEST(LaunchOrder, ForgetsInsteadOfGrowing) {
  decode::MemoryWriter writer;
  LaunchOrder order(16);
  for (int64_t i = 1; i < 100'000; ++i) order.call(0, i, i * 1'000'000);
  for (int64_t i = 1; i < 99'000; ++i) order.work(0, i, 0);
  order.finish(writer, 0);
  EXPECT_TRUE(writer.notes.empty());
}

}  // namespace
}  // namespace tacho::trace
