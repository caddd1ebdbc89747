// Result: the error sentence travels through TACHO_TRY and TACHO_ASSIGN unchanged.
#include "base/result.h"

#include <gtest/gtest.h>

namespace tacho {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return fail("{} is odd", value);
  return value / 2;
}

Result<int> quarter(int value) {
  TACHO_ASSIGN(const int once, half(value));
  TACHO_TRY(half(once));
  return once / 2;
}

TEST(Result, PassesValuesAndErrorsOn) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().message, "3 is odd");
  EXPECT_EQ(quarter(7).error().message, "7 is odd");
}

}  // namespace
}  // namespace tacho
