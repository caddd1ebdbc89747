// What the digits of a number that a spreadsheet saved still say.
#include "base/text/last_digit.h"

#include <gtest/gtest.h>

namespace tacho {
namespace {

TEST(LastDigit, OfNumbersWithExponents) {
  EXPECT_EQ(last_digit("1.76E+18"), 1e16);
  EXPECT_EQ(last_digit("1e9"), 1e9);
  EXPECT_DOUBLE_EQ(last_digit("1.000001e9"), 1e3);
  EXPECT_LT(last_digit("1.7600000001234568e+18"), 1e3);
  for (const char* text : {"", "1760000000000000000", "1.5", "0x1e9", "k", "1.5e", "e"}) EXPECT_EQ(last_digit(text), 0);
  EXPECT_GT(last_digit("1e99999999"), 1e18) << "no number, and no overflow";
}

TEST(LastDigit, TimesWithoutADuration) {
  EXPECT_TRUE(rounded_away("1.76E+18", "1.76E+18"));
  EXPECT_FALSE(rounded_away("1.76E+18", "1.77E+18"));
  EXPECT_FALSE(rounded_away("1000", "1000"));
  EXPECT_FALSE(rounded_away("", ""));
  EXPECT_FALSE(rounded_away("1.000001e9", "1.000001e9"));
}

}  // namespace
}  // namespace tacho
