// Estimates from samples: against populations that are known.
#include "watch/estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tacho::watch {
namespace {

LevelSums sums_of(const std::vector<uint64_t>& times, uint64_t count) {
  LevelSums sums;
  sums.count = count;
  for (const uint64_t time : times) {
    ++sums.timed;
    sums.time += time;
    sums.squares += static_cast<double>(time) * static_cast<double>(time);
  }
  return sums;
}

TEST(WatchBuckets, EachDurationIsBelowTheEndOfItsBucketAndNotBelowThatOfTheOneBefore) {
  for (const uint64_t ns :
       {uint64_t{0}, uint64_t{1}, uint64_t{63}, uint64_t{64}, uint64_t{79}, uint64_t{80}, uint64_t{1000},
        uint64_t{123456789}, (uint64_t{1} << 38) - 1, uint64_t{1} << 38, UINT64_MAX - 1}) {
    const uint32_t bucket = event::watch_bucket(ns);
    ASSERT_LT(bucket, event::kWatchBuckets);
    EXPECT_LT(ns, event::watch_bucket_end(bucket)) << ns;
    if (bucket > 0) {
      EXPECT_GE(ns, event::watch_bucket_end(bucket - 1)) << ns;
    }
  }
}

TEST(WatchEstimate, NothingTimedIsUnknown) {
  AllLevels levels = {};
  EXPECT_FALSE(estimate_time(levels));
  levels[0].count = 5;
  EXPECT_FALSE(estimate_time(levels));
}

TEST(WatchEstimate, AllTimedIsExact) {
  AllLevels levels = {};
  levels[0] = sums_of({100, 300, 200}, 3);
  const auto estimate = estimate_time(levels);
  ASSERT_TRUE(estimate);
  EXPECT_DOUBLE_EQ(estimate->total_ns, 600);
  EXPECT_EQ(estimate->error_ns, 0.0);
  EXPECT_EQ(estimate->interval_ns, 0.0);
}

TEST(WatchEstimate, OneOfSeveralHasNoError) {
  AllLevels levels = {};
  levels[0] = sums_of({100}, 4);
  const auto estimate = estimate_time(levels);
  ASSERT_TRUE(estimate);
  EXPECT_DOUBLE_EQ(estimate->total_ns, 400);
  EXPECT_FALSE(estimate->error_ns);
}

TEST(WatchEstimate, StrataStayApart) {
  // The first two were long, and all were timed; of the later ones, short, one of ten.
  AllLevels levels = {};
  levels[0] = sums_of({1000, 1000}, 2);
  levels[3] = sums_of({10, 12}, 20);
  const auto estimate = estimate_time(levels);
  ASSERT_TRUE(estimate);
  EXPECT_DOUBLE_EQ(estimate->total_ns, 2000 + 220);
  // s² = 2, 20² · 2 / 2 · (1 - 2 / 20)
  EXPECT_NEAR(*estimate->error_ns, std::sqrt(400.0 * 0.9), 1e-9);
}

TEST(WatchEstimate, AStratumWithoutTimesTakesTheMeanOfTheOthers) {
  AllLevels levels = {};
  levels[0] = sums_of({100, 200}, 2);
  levels[1].count = 10;
  const auto estimate = estimate_time(levels);
  ASSERT_TRUE(estimate);
  EXPECT_DOUBLE_EQ(estimate->total_ns, 300 + 1500);
  // s² = 5000 of the two: 10 · 5000 + 100 · 5000 / 2
  EXPECT_NEAR(*estimate->error_ns, std::sqrt(50000.0 + 250000.0), 1e-9);
}

TEST(WatchEstimate, WhatEachTimeMayBeOffIsInTheError) {
  AllLevels levels = {};
  levels[0] = sums_of({1000, 1000}, 2);
  const auto estimate = estimate_time(levels, 50);
  EXPECT_DOUBLE_EQ(*estimate->error_ns, 100);
  EXPECT_DOUBLE_EQ(*estimate->interval_ns, 200);
}

TEST(WatchEstimate, BoundsStandInOnlyWhereNothingWasTimed) {
  AllLevels levels = {};
  EXPECT_FALSE(estimate_bound(levels));
  levels[0].count = 10;
  levels[0].bounded = 2;
  levels[0].bound_time = 100;
  levels[1].count = 4;
  ASSERT_TRUE(estimate_bound(levels));
  EXPECT_DOUBLE_EQ(*estimate_bound(levels), 10 * 50 + 4 * 50);
  EXPECT_FALSE(estimate_time(levels));
  levels[1] = sums_of({30}, 4);
  EXPECT_FALSE(estimate_bound(levels));
  EXPECT_DOUBLE_EQ(estimate_time(levels)->total_ns, 14 * 30);
}

TEST(WatchEstimate, TheIntervalHoldsTheTruthInNineteenOfTwenty) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> duration(9, 0.4);
  int inside = 0;
  constexpr int kRuns = 1000;
  for (int run = 0; run < kRuns; ++run) {
    AllLevels levels = {};
    double truth = 0;
    for (uint32_t level : {0u, 3u, 6u}) {
      const uint64_t count = level == 0 ? 64 : 4000;
      std::vector<uint64_t> timed;
      for (uint64_t i = 0, next = 0; i < count; ++i) {
        const auto time = static_cast<uint64_t>(duration(random));
        truth += static_cast<double>(time);
        if (i != next) continue;
        timed.push_back(time);
        next += 1 + random() % ((uint64_t{2} << level) - 1);
      }
      levels[level] = sums_of(timed, count);
    }
    const auto estimate = estimate_time(levels);
    inside += std::abs(estimate->total_ns - truth) <= *estimate->interval_ns ? 1 : 0;
  }
  EXPECT_GE(inside, kRuns * 93 / 100);
  EXPECT_LE(inside, kRuns * 97 / 100);
}

TEST(WatchEstimate, Quantiles) {
  AllBuckets buckets = {};
  EXPECT_FALSE(estimate_quantile(buckets, 0.5));
  buckets[event::watch_bucket(1000)] = 98;
  buckets[event::watch_bucket(50000)] = 2;
  EXPECT_NEAR(*estimate_quantile(buckets, 0.5), 1000, 125);
  EXPECT_NEAR(*estimate_quantile(buckets, 0.99), 50000, 6250);
}

TEST(WatchEstimate, Student) {
  EXPECT_NEAR(student_95(1), 12.706, 0.001);
  EXPECT_NEAR(student_95(11), 2.201, 0.003);
  EXPECT_NEAR(student_95(30), 2.042, 0.001);
  EXPECT_NEAR(student_95(1000), 1.962, 0.001);
}

}  // namespace
}  // namespace tacho::watch
