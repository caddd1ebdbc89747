// Which names two expressions choose.
#include "base/text/name_filter.h"

#include <gtest/gtest.h>

#include <string>

namespace tacho {
namespace {

using Side = NameFilter::Side;

TEST(NameFilter, AllWithoutExpressions) {
  const OwnNameFilter filter;
  EXPECT_FALSE(filter.given());
  EXPECT_TRUE(filter.wants("any"));
}

TEST(NameFilter, IncludeAndExclude) {
  OwnNameFilter filter;
  ASSERT_TRUE(filter.set(Side::kInclude, "^vec|gemm"));
  ASSERT_TRUE(filter.set(Side::kExclude, "Copy$"));
  EXPECT_TRUE(filter.wants("vecAdd"));
  EXPECT_TRUE(filter.wants("sgemm"));
  EXPECT_FALSE(filter.wants("vecCopy"));
  EXPECT_FALSE(filter.wants("my_vec"));
}

TEST(NameFilter, EitherFormOfAName) {
  OwnNameFilter filter;
  ASSERT_TRUE(filter.set(Side::kInclude, "add\\(float"));
  EXPECT_TRUE(filter.wants("_Z3addPf", "add(float*)"));
  EXPECT_FALSE(filter.wants("_Z3addPf"));
  ASSERT_TRUE(filter.set(Side::kInclude, ""));
  ASSERT_TRUE(filter.set(Side::kExclude, "_Z3add"));
  EXPECT_FALSE(filter.includes());
  EXPECT_FALSE(filter.wants("_Z3addPf", "add(float*)"));
}

TEST(NameFilter, WhatIsNoExpression) {
  OwnNameFilter filter;
  char why[128] = "";
  EXPECT_FALSE(filter.set(Side::kInclude, "a(b", why, sizeof why));
  EXPECT_NE(std::string(why), "");
  EXPECT_FALSE(filter.given());
  EXPECT_TRUE(filter.wants("any"));
}

}  // namespace
}  // namespace tacho
