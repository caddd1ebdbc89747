// Periods of simulated hours, days and years: each launch is in one of them, and there are never too many.
#include "watch/sums/periods.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace tacho::watch {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kBegan = 1'000 * kSecond + 17;
constexpr int64_t kOffset = 1'700'000'000 * kSecond;  // 22:13:20 UTC

// A program that launches kernels, of which 1 of 128 is timed.
struct Simulated {
  WatchSnapshot snapshot;

  explicit Simulated(size_t kernels) {
    for (size_t i = 0; i < kernels; ++i) {
      RowSums row;
      row.kind = event::WatchKind::kKernel;
      row.name = fmt::format("kernel{}", i);
      row.grid[0] = row.group[0] = 64;
      snapshot.rows.push_back(row);
    }
  }
  void launch(size_t kernel, uint64_t count, uint64_t timed, uint64_t ns) {
    RowSums& row = snapshot.rows[kernel];
    row.count += count;
    LevelSums& level = row.levels[7];
    level.count += count;
    level.timed += timed;
    level.time += timed * ns;
    level.squares += static_cast<double>(timed * ns) * static_cast<double>(ns);
  }
};

struct Sums {
  uint64_t count = 0, timed = 0, untold = 0;
  double time_ns = 0;
};
Sums all_of(const SumPeriods& periods) {
  Sums sums;
  for (const SumPeriod* period : periods.periods())
    for (const PeriodSum& sum : period->sums) {
      sums.count += sum.count;
      sums.timed += sum.timed;
      sums.untold += sum.untold;
      sums.time_ns += sum.time_ns;
    }
  return sums;
}

void expect_no_gap(const SumPeriods& periods, int64_t now) {
  int64_t at = kBegan;
  for (const SumPeriod* period : periods.periods()) {
    ASSERT_EQ(period->begin, at);
    ASSERT_GT(period->end, at);
    at = period->end;
  }
  EXPECT_EQ(at, now);
}

TEST(SumPeriods, SecondsMinutesHours) {
  Simulated program(5);
  SumPeriods periods(kBegan, kOffset);
  int64_t now = kBegan;
  uint64_t launched = 0;
  for (int64_t second = 0; second < 27 * 3600; ++second) {
    now += kSecond;
    for (size_t i = 0; i < 5; ++i) {
      program.launch(i, 100 + i, 1, 1000 * (i + 1));
      launched += 100 + i;
    }
    periods.add(now, program.snapshot, {});
    if (second % 10'000 == 0) expect_no_gap(periods, now);
  }
  expect_no_gap(periods, now);
  EXPECT_EQ(all_of(periods).count, launched);
  size_t seconds = 0, minutes = 0, hours = 0;
  for (const SumPeriod* period : periods.periods()) {
    const int64_t length = period->length() / kSecond;
    (length < 2 ? seconds : length < 61 ? minutes : hours) += 1;
    // They begin and end with those of clocks.
    if (length >= 60) {
      EXPECT_LT((period->end + kOffset) % (60 * kSecond), kSecond);
    }
  }
  EXPECT_GE(seconds, 3600u);
  EXPECT_LT(seconds, 3600u + 60);
  EXPECT_GE(minutes, 23u * 60 - 60);
  EXPECT_LT(minutes, 24u * 60 + 60);
  EXPECT_GE(hours, 2u);
  // Each kernel's time is in its sums: 1 of 100 to 104 launches was timed, all alike.
  EXPECT_NEAR(all_of(periods).time_ns, 27 * 3600 * (100 * 1e3 + 101 * 2e3 + 102 * 3e3 + 103 * 4e3 + 104 * 5e3), 1e3);
}

TEST(SumPeriods, KernelsThatAreFewShareARow) {
  Simulated program(500);
  SumPeriods periods(kBegan, kOffset, {.second_rows = 10});
  for (size_t i = 0; i < 500; ++i) program.launch(i, 3, 3, 1000 + i);
  periods.add(kBegan + kSecond, program.snapshot, {});
  const auto all = periods.periods();
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0]->sums.size(), 11u);
  EXPECT_EQ(all_of(periods).count, 1500u);
  const PeriodSum& other = all[0]->sums.back();
  EXPECT_EQ(periods.series()[other.series].name, kOtherKernels);
  EXPECT_EQ(other.count, 490u * 3);
  EXPECT_EQ(periods.series()[all[0]->sums[0].series].name, "kernel499 64/64");
}

TEST(SumPeriods, LaunchesWithoutATimeAreCounted) {
  Simulated program(1);
  SumPeriods periods(kBegan, kOffset);
  program.launch(0, 50, 0, 0);
  periods.add(kBegan + kSecond, program.snapshot, {});
  program.launch(0, 50, 5, 700);
  periods.add(kBegan + 2 * kSecond, program.snapshot, {});
  const Sums sums = all_of(periods);
  EXPECT_EQ(sums.count, 100u);
  EXPECT_EQ(sums.untold, 50u);
  EXPECT_EQ(sums.timed, 5u);
  EXPECT_DOUBLE_EQ(sums.time_ns, 50 * 700);
}

TEST(SumPeriods, OneTimeHasAnErrorAsLargeAsItself) {
  Simulated program(1);
  SumPeriods periods(kBegan, kOffset);
  program.launch(0, 50, 1, 700);
  periods.add(kBegan + kSecond, program.snapshot, {});
  EXPECT_DOUBLE_EQ(periods.periods()[0]->sums[0].error_ns, 50 * 700);
}

TEST(SumPeriods, YearsStayBounded) {
  Simulated program(30);
  SumPeriods periods(kBegan, kOffset, {.hour_sums = 5000});
  int64_t now = kBegan;
  uint64_t launched = 0;
  size_t most = 0;
  for (int64_t hour = 0; hour < 3 * 365 * 24; ++hour) {
    now += 3600 * kSecond;
    for (size_t i = 0; i < 30; ++i) program.launch(i, 1000, 10, 500);
    launched += 30 * 1000;
    periods.add(now, program.snapshot, {});
    most = std::max(most, periods.sums());
  }
  expect_no_gap(periods, now);
  EXPECT_EQ(all_of(periods).count, launched);
  EXPECT_LT(most, 5000u + 30 * (3600 + 26 + 26));
  // What is old gets coarse: days, 24 days, 576 days.
  constexpr int64_t kDay = 24 * 3600 * kSecond;
  for (const SumPeriod* period : periods.periods()) {
    EXPECT_LE(period->length(), 576 * kDay);
    if (period->begin > now - 24 * kDay) {
      EXPECT_LE(period->length(), kDay);
    }
  }
}

TEST(SumPeriods, TelemetryIsAMean) {
  SumPeriods periods(kBegan, kOffset);
  vendor::GpuReading clock;
  clock.name = "GPU Core Clock [0]";
  clock.unit = "MHz";
  for (int i = 0; i < 4000; ++i) {
    clock.value = i % 2 == 0 ? 1000 : 2000;
    periods.add(kBegan + (i + 1) * kSecond, {}, {clock});
  }
  for (const SumPeriod* period : periods.periods()) {
    ASSERT_EQ(period->gauges.size(), 1u);
    if (period->length() > 59 * kSecond) {
      EXPECT_NEAR(period->gauges[0].second, 1500, 20);
    }
  }
}

TEST(SumPeriods, AClockThatDoesNotAdvanceAddsNothing) {
  Simulated program(1);
  SumPeriods periods(kBegan, kOffset);
  program.launch(0, 5, 5, 100);
  periods.add(kBegan, program.snapshot, {});
  EXPECT_TRUE(periods.periods().empty());
  periods.add(kBegan + kSecond, program.snapshot, {});
  EXPECT_EQ(all_of(periods).count, 5u);
}

}  // namespace
}  // namespace tacho::watch
