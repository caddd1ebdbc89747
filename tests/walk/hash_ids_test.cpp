// Numbers of texts and rows that writers remember (hash_ids.h).
#include "walk/hash_ids.h"

#include <gtest/gtest.h>

#include <string>

namespace tacho::walk {
namespace {

TEST(HashIds, EveryTextKeepsItsNumberWhileTheTableGrows) {
  constexpr int64_t kTexts = 400'000;  // more than is kept in memory
  HashIds ids;
  for (int64_t i = 1; i <= kTexts; ++i) {
    int64_t& id = ids.of("text " + std::to_string(i));
    ASSERT_EQ(id, 0) << i;
    id = i;
  }
  for (int64_t i = kTexts; i > 0; --i) ASSERT_EQ(ids.of("text " + std::to_string(i)), i);
  EXPECT_EQ(ids.of(""), 0);
}

TEST(RowNumbers, RowsThatDoNotExistAreRowZero) {
  RowNumbers numbers(3);
  numbers.of(2) = 7;
  numbers.of(99) = 5;
  numbers.of(-1) += 1;
  EXPECT_EQ(numbers.of(0), 6);
  EXPECT_EQ(numbers.of(2), 7);
  RowNumbers many(3'000'000);
  many.of(2'999'999) = 1;
  EXPECT_EQ(many.of(2'999'999), 1);
  EXPECT_EQ(many.of(5), 0);
}

}  // namespace
}  // namespace tacho::walk
