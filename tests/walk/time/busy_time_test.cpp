// Span, busy and idle (walk/time/busy_time.h).
#include "walk/time/busy_time.h"

#include <gtest/gtest.h>

namespace tacho::walk {
namespace {

TEST(BusyTime, CountsTimeOnceHoweverManyRan) {
  BusyTime time;
  EXPECT_FALSE(time.any());
  EXPECT_EQ(time.busy(), 0);
  EXPECT_EQ(time.idle(), 0);
  time.add(100, 200);
  time.add(150, 170);
  time.add(150, 250);
  time.add(300, 310);
  EXPECT_TRUE(time.any());
  EXPECT_EQ(time.span().first, 100);
  EXPECT_EQ(time.span().last, 310);
  EXPECT_EQ(time.busy(), 160);
  EXPECT_EQ(time.idle(), 50);
  EXPECT_EQ(time.busy_before(305), 155);
  EXPECT_EQ(time.busy_before(400), 160);
}

TEST(BusyTime, TakesAnEndBeforeTheStartForNoTime) {
  BusyTime time;
  time.add(100, 90);
  time.add(120, 130);
  EXPECT_EQ(time.span().length(), 30);
  EXPECT_EQ(time.busy(), 10);
}

TEST(BusyTime, KnowsTimesBeforeZero) {
  BusyTime time;
  time.add(-50, -20);
  time.add(-10, 10);
  EXPECT_EQ(time.span().first, -50);
  EXPECT_EQ(time.busy(), 50);
  EXPECT_EQ(time.idle(), 10);
}

}  // namespace
}  // namespace tacho::walk
