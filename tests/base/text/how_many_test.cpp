// Numbers in sentences.
#include "base/text/how_many.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace tacho {
namespace {

TEST(HowMany, OneAndOthers) {
  EXPECT_EQ(how_many(size_t{1}, "match", "matches"), "1 match");
  EXPECT_EQ(how_many(0, "match", "matches"), "0 matches");
  EXPECT_EQ(how_many(UINT64_MAX, "row has", "rows have"), "18446744073709551615 rows have");
  EXPECT_EQ(how_many(int64_t{-1}, "row", "rows"), "-1 rows");
}

TEST(HowMany, TheFirstNumberRulesTheVerb) {
  EXPECT_EQ(how_many_of(1, "40 dispatches", "has", "have"), "1 of 40 dispatches has");
  EXPECT_EQ(how_many_of(3, how_many(40, "dispatch", "dispatches"), "has", "have"), "3 of 40 dispatches have");
}

}  // namespace
}  // namespace tacho
