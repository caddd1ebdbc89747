// Sums go into a .tacho and come out of it: exact counts, times with their error, a file that stays small.
#include "watch/sums/file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cmath>

#include "analysis/sums/sums.h"
#include "base/format.h"

namespace tacho::watch {
namespace {

constexpr int64_t kOneSecond = 1'000'000'000;
constexpr int64_t kBeginOfFile = 5'000 * kOneSecond;
constexpr int64_t kMidnight = 1'764'201'600 * kOneSecond;  // 2025-11-27 00:00 UTC

constexpr std::array<std::string_view, 2> kWork = {"kernel", "graph"};

class SumFile : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    tzset();
    char folder[] = "/tmp/tacho-sums-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    path_ = fmt::format("{}/w.tacho", folder);
  }
  void TearDown() override {
    unlink(path_.c_str());
    rmdir(path_.substr(0, path_.rfind('/')).c_str());
  }
  std::shared_ptr<const trace::Trace> write(const SumPeriods& periods, int64_t unix_at_begin) {
    SumFacts facts;
    facts.command = "./app --fast";
    ClockTuple clock;
    clock.raw = clock.monotonic = clock.boottime = kBeginOfFile;
    clock.realtime = unix_at_begin;
    facts.clocks.push_back(clock);
    const Status written = write_sums(path_, periods, facts, false);
    EXPECT_TRUE(written) << written.error().message;
    auto trace = trace::Trace::open(path_);
    EXPECT_TRUE(trace);
    return *trace;
  }
  static void launch(WatchSnapshot& program, size_t row, uint64_t count, uint64_t timed, double ns,
                     double deviation = 0) {
    LevelSums& level = program.rows[row].levels[7];
    program.rows[row].count += count;
    level.count += count;
    level.timed += timed;
    level.time += static_cast<uint64_t>(std::llround(static_cast<double>(timed) * ns));
    level.squares += static_cast<double>(timed) * (ns * ns + deviation * deviation);
  }
  static WatchSnapshot kernels(size_t number) {
    WatchSnapshot program;
    for (size_t i = 0; i < number; ++i) {
      RowSums row;
      row.kind = event::WatchKind::kKernel;
      row.name = fmt::format("void gemm_{}<float, 128>(float const*, float*)", i);
      row.grid[0] = 65536;
      row.group[0] = 256;
      program.rows.push_back(row);
    }
    return program;
  }
  std::string path_;
};

TEST_F(SumFile, CountsAreExact) {
  WatchSnapshot program = kernels(3);
  SumPeriods periods(kBeginOfFile, kMidnight - kBeginOfFile);
  for (int i = 1; i <= 4000; ++i) {
    launch(program, 0, 12'345'677, 1000, 1500);
    launch(program, 1, 7, 0, 0);
    if (i % 2 == 0) launch(program, 2, 1, 1, 80'000);
    periods.add(kBeginOfFile + i * kOneSecond, program, {});
  }
  const auto trace = write(periods, kMidnight);
  ASSERT_TRUE(analysis::holds_sums(*trace));
  const auto span = analysis::span_of_sums(*trace);
  ASSERT_TRUE(span);
  EXPECT_EQ(span->from, kBeginOfFile);
  EXPECT_NEAR(static_cast<double>(span->to - kBeginOfFile), 4000e9, 1e3);
  const auto sums = analysis::sum_up(*trace, std::span(&*span, 1));
  ASSERT_TRUE(sums);
  ASSERT_EQ(sums->front().rows.size(), 3u);
  for (const analysis::SumRow& row : sums->front().rows) {
    EXPECT_EQ(row.kind, "kernel");
    if (row.name.starts_with("void gemm_0")) {
      EXPECT_EQ(row.count, 4000ull * 12'345'677);
      EXPECT_EQ(row.timed, 4'000'000u);
      EXPECT_NEAR(*row.average_ns(), 1500, 1e-6);
    } else if (row.name.starts_with("void gemm_1")) {
      EXPECT_EQ(row.count, 28'000u);
      EXPECT_EQ(row.untold, 28'000u);
      EXPECT_FALSE(row.total_ns());
    } else {
      EXPECT_EQ(row.count, 2000u);
      EXPECT_NEAR(*row.total_ns(), 2000 * 80'000.0, 1);
    }
  }
}

TEST_F(SumFile, WhatChanged) {
  WatchSnapshot program = kernels(2);
  SumPeriods periods(kBeginOfFile, kMidnight + 14 * 3600 * kOneSecond - kBeginOfFile);
  vendor::GpuReading clock;
  clock.name = "GPU Core Clock [0]";
  clock.unit = "MHz";
  for (int i = 1; i <= 1200; ++i) {
    const bool late = i > 600;
    launch(program, 0, 10'000, 80, late ? 108'000 : 100'000, 2000);
    launch(program, 1, 10'000, 80, 5000, 100);
    clock.value = late ? 1755 : 1980;
    periods.add(kBeginOfFile + i * kOneSecond, program, {clock});
  }
  const auto trace = write(periods, kMidnight + 14 * 3600 * kOneSecond);
  const auto span = analysis::span_of_sums(*trace);
  ASSERT_TRUE(span);
  const auto before = analysis::parse_time_range(*trace, "14:00-14:10", *span, "--before"),
             after = analysis::parse_time_range(*trace, "14:10-14:20", *span, "--after");
  ASSERT_TRUE(before && after);
  const auto sums = analysis::sum_up(*trace, std::array{*before, *after});
  ASSERT_TRUE(sums);
  EXPECT_EQ((*sums)[0].periods, 600u);
  EXPECT_EQ((*sums)[1].periods, 600u);
  const auto sentences = analysis::change_sentences((*sums)[0], (*sums)[1], kWork, "since 14:10:00");
  ASSERT_EQ(sentences.size(), 2u);
  EXPECT_TRUE(
      sentences[0].starts_with("Since 14:10:00 void gemm_0<float, 128>(float const*, float*) 65536/256 takes 8.0 % "
                               "longer (± 0.0 %, 95 %): 108.00 us on average instead of 100.00 us."))
      << sentences[0];
  EXPECT_EQ(sentences[1], "GPU 0: core clock 1755 MHz instead of 1980 (-11.4 %).");
  // Halves of the same time: nothing to say.
  const auto first = analysis::parse_time_range(*trace, "0s-5min", *span, ""),
             second = analysis::parse_time_range(*trace, "5min-10min", *span, "");
  const auto same = analysis::sum_up(*trace, std::array{*first, *second});
  EXPECT_EQ(analysis::change_sentences((*same)[0], (*same)[1], kWork, "since 14:05:00")[0],
            "No average differs by more than chance and 0.1 %.");
}

TEST_F(SumFile, TheErrorOfAnAverageIsThatOfItsTimes) {
  WatchSnapshot program = kernels(1);
  SumPeriods periods(kBeginOfFile, kMidnight - kBeginOfFile);
  for (int i = 1; i <= 100; ++i) {
    launch(program, 0, 10'000, 50, 1000, 300);
    periods.add(kBeginOfFile + i * kOneSecond, program, {});
  }
  const auto trace = write(periods, kMidnight);
  const auto span = analysis::span_of_sums(*trace);
  const auto sums = analysis::sum_up(*trace, std::span(&*span, 1));
  const analysis::SumRow& row = sums->front().rows[0];
  // 5000 times with a deviation of 300: the mean is known to 300 / sqrt(5000), as in one sample of 5000.
  EXPECT_NEAR(*row.chance_ns() / 1e6, 1.96 * 300 / std::sqrt(5000), 0.2);
}

TEST_F(SumFile, Times) {
  WatchSnapshot program = kernels(1);
  SumPeriods periods(kBeginOfFile, kMidnight + 23 * 3600 * kOneSecond - kBeginOfFile);
  for (int i = 1; i <= 7200; i += 60) {  // 23:00 to 01:00
    launch(program, 0, 1, 1, 1000);
    periods.add(kBeginOfFile + i * kOneSecond, program, {});
  }
  const auto trace = write(periods, kMidnight + 23 * 3600 * kOneSecond);
  const auto span = analysis::span_of_sums(*trace);
  const auto range = [&](std::string_view text) {
    const auto found = analysis::parse_time_range(*trace, text, *span, "--before");
    return found ? fmt::format("{} {}", (found->from - kBeginOfFile) / kOneSecond,
                               (found->to - kBeginOfFile) / kOneSecond)
                 : found.error().message;
  };
  EXPECT_EQ(range("23:10-23:20"), "600 1200");
  EXPECT_EQ(range("23:50-00:10"), "3000 4200");
  EXPECT_EQ(range("00:10-00:20:30"), "4200 4830");
  EXPECT_EQ(range("2025-11-28T00:10-00:20"), "4200 4800");
  EXPECT_EQ(range("2025-11-27T23:10-2025-11-28T00:20"), "600 4800");
  EXPECT_EQ(range("00:30-"), "5400 7141");
  EXPECT_EQ(range("-23:30"), "0 1800");
  EXPECT_EQ(range("90s-1.5h"), "90 5400");
  for (const char* const wrong :
       {"", "-", "14:00", "25:00-26:00", "23:10-23:70", "x-y", "2025-13-01T00:00-01:00", "1d-2d"})
    EXPECT_NE(range(wrong).find("give a range"), std::string::npos) << wrong << ": " << range(wrong);
  EXPECT_NE(range("14:00-14:10").find("goes from 2025-11-27 23:00:00 to 2025-11-28 00:59:01"), std::string::npos)
      << range("14:00-14:10");
}

// Thirty days with 400 kernels, of which the last day and the last hour are seen in full: 1e9 launches and more.
TEST_F(SumFile, AMonthIsSmall) {
  WatchSnapshot program = kernels(400);
  SumPeriods periods(kBeginOfFile, kMidnight - kBeginOfFile);
  int64_t now = kBeginOfFile;
  uint64_t launched = 0;
  uint64_t random = 1;
  const auto run = [&](int64_t step, int64_t until) {
    for (; now < kBeginOfFile + until; now += step) {
      for (size_t i = 0; i < 400; ++i) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint64_t count = 50 + (random >> 59) + 1000 / (i + 1);
        launch(program, i, count, 1 + count / 100, 1000 + static_cast<double>(random >> 52), 30);
        launched += count;
      }
      periods.add(now + step, program, {});
    }
  };
  constexpr int64_t kDay = 86400 * kOneSecond;
  run(3600 * kOneSecond, 29 * kDay);
  run(60 * kOneSecond, 30 * kDay - 3600 * kOneSecond);
  run(kOneSecond, 30 * kDay);
  const auto trace = write(periods, kMidnight);
  EXPECT_GT(launched, 100'000'000u);
  struct stat about {};
  ASSERT_EQ(stat(path_.c_str(), &about), 0);
  RecordProperty("bytes", static_cast<int>(about.st_size));
  printf("%zu sums, %ld bytes\n", periods.sums(), static_cast<long>(about.st_size));
  EXPECT_LT(about.st_size, 64 << 20);
  const auto span = analysis::span_of_sums(*trace);
  const auto sums = analysis::sum_up(*trace, std::span(&*span, 1));
  uint64_t count = 0;
  for (const analysis::SumRow& row : sums->front().rows) count += row.count;
  EXPECT_EQ(count, launched);
}

TEST_F(SumFile, ATraceWithoutSums) {
  SumPeriods periods(kBeginOfFile, kMidnight - kBeginOfFile);
  const auto trace = write(periods, kMidnight);
  EXPECT_FALSE(analysis::span_of_sums(*trace));
}

}  // namespace
}  // namespace tacho::watch
