// Sampling a GPU's counters without a GPU: the times of samples, units, and what CUPTI says of metrics that are
// sampled. The way of a sample is tested with a stand-in (tests/e2e/attach_counters_test.py).
#include "counter/provider/nvidia/pm_sampler.h"

#include <gtest/gtest.h>

#include "counter/provider/nvidia/host.h"
#include "counter/provider/nvidia/pm_clock.h"

namespace tacho::counter::nvidia {
namespace {

constexpr uint64_t kThen = 1'795'000'000'000'000'000;
constexpr int64_t kSecond = 1'000'000'000;

// Where a moment of the vendor's clock lies, by a copy: asking changes what comes next.
int64_t end_of(ClockPairs clock, uint64_t end) {
  const auto span = clock.place(end - 1, end);
  return span ? span->end : -1;
}

TEST(SampleClock, LinesBetweenMoments) {
  ClockPairs clock;
  EXPECT_TRUE(clock.empty());
  EXPECT_FALSE(clock.place(kThen, kThen + 1));
  clock.add(kThen, 1000, 7);
  EXPECT_EQ(end_of(clock, kThen + 50), 1050);
  EXPECT_EQ(end_of(clock, kThen - 50), 950);
  clock.add(kThen + 1000, 3000, 9);  // the host's is twice as fast
  clock.add(kThen + 2000, 4000, 8);
  EXPECT_EQ(end_of(clock, kThen), 1000);
  EXPECT_EQ(end_of(clock, kThen + 500), 2000);
  EXPECT_EQ(end_of(clock, kThen + 1000), 3000);
  EXPECT_EQ(end_of(clock, kThen + 1500), 3500);
  EXPECT_EQ(end_of(clock, kThen + 2100), 4100);
  EXPECT_EQ(end_of(clock, kThen - 100), 900);
  EXPECT_EQ(clock.error(), 9);
  EXPECT_EQ(clock.jumps(), 0);
}

TEST(SampleClock, MomentsAtOnceAreLeftOut) {
  ClockPairs clock;
  clock.add(kThen, 1000, 1);
  clock.add(kThen + 10, 900, 1);
  clock.add(kThen + 500, 1000, 1);
  clock.add(kThen, 1100, 1);
  EXPECT_EQ(end_of(clock, kThen + 10), 1010);
  EXPECT_EQ(clock.jumps(), 0);
}

TEST(SampleClock, HoursOfMoments) {
  ClockPairs clock;
  // A clock that is 10 ppm slow, read ten times a second.
  for (int64_t i = 0; i < 36'000; ++i) clock.add(kThen + static_cast<uint64_t>(i) * 99'999'000, i * 100'000'000, 500);
  constexpr int64_t kLast = 35'999;
  EXPECT_NEAR(static_cast<double>(end_of(clock, kThen + kLast * 99'999'000 - 49'999'500)),
              static_cast<double>(kLast * 100'000'000 - 50'000'000), 1);
  EXPECT_EQ(clock.jumps(), 0);
}

TEST(SampleClock, JumpsOfTheClock) {
  for (const int64_t by : {-3600 * kSecond, -kSecond, kSecond, 3600 * kSecond}) {
    ClockPairs clock;
    const auto vendor = [&](int64_t host) {
      return kThen + static_cast<uint64_t>(host + (host < kSecond / 4 ? 0 : by));
    };
    clock.add(vendor(0), 0, 1);
    clock.add(vendor(kSecond / 2), kSecond / 2, 1);
    EXPECT_EQ(clock.jumps(), 1) << by;
    // Samples of a hundredth of a second: those before the jump keep the line from before, also the one that it is in.
    for (int64_t end = kSecond / 100; end < kSecond / 2; end += kSecond / 100) {
      const auto span = clock.place(vendor(end) - kSecond / 100, vendor(end));
      ASSERT_TRUE(span) << by << " " << end;
      EXPECT_EQ(span->end, end) << by;
    }
  }
}

TEST(SampleClock, TimesThatAreNone) {
  ClockPairs clock;
  clock.add(kThen, 0, 1);
  clock.add(kThen + kSecond, kSecond, 1);
  EXPECT_FALSE(clock.place(kThen + 10, kThen + 9)) << "ends before it begins";
  EXPECT_FALSE(clock.place(kThen, kThen + 2 * kSecond)) << "in the future";
  EXPECT_FALSE(clock.place(0, ~uint64_t{0}));
  EXPECT_TRUE(clock.place(kThen, kThen + 100));
  EXPECT_FALSE(clock.place(kThen - kSecond, kThen - kSecond / 2)) << "ends before the last one";
  EXPECT_TRUE(clock.place(kThen + 100, kThen + 200));
}

TEST(SampleClock, OneMomentThatHolds) {
  ClockPairs clock;
  clock.fix(kThen, 5, 3);
  clock.add(kThen, 900, 700);
  const auto span = clock.place(kThen + 3600 * kSecond, kThen + 3601 * kSecond);
  ASSERT_TRUE(span);
  EXPECT_EQ(span->begin, 5 + 3600 * kSecond);
  EXPECT_EQ(clock.error(), 3);
}

TEST(Units, OfDimensions) {
  EXPECT_EQ(unit_of("byte"), "B");
  EXPECT_EQ(unit_of("byte/second"), "B/s");
  EXPECT_EQ(unit_of("percent"), "%");
  EXPECT_EQ(unit_of("nanosecond"), "ns");
  EXPECT_EQ(unit_of("instruction"), "");
  EXPECT_EQ(unit_of("l2_sector/second"), "1/s");
  EXPECT_EQ(unit_of("instruction/gpc_cycle"), "instruction/gpc_cycle");
  EXPECT_EQ(unit_of(""), "");
}

TEST(SampledMetrics, OfChips) {
  if (Host::library().empty()) GTEST_SKIP() << "no CUPTI on this machine";
  for (const char* const chip : {"GA100", "GH100", "GB100"}) {
    const auto host = Host::open(chip, {}, Use::kSamples);
    ASSERT_TRUE(host) << host.error().message;
    EXPECT_TRUE((*host)->knows("dram__bytes_read.sum")) << chip;
    EXPECT_FALSE((*host)->knows("dram__bytes_read")) << "without a rollup";
    EXPECT_EQ(unit_of((*host)->about("dram__bytes_read.sum").dimension), "B");
    EXPECT_EQ(unit_of((*host)->about("dram__bytes_read.sum.per_second").dimension), "B/s");
    EXPECT_NE((*host)->about("dram__bytes_read.sum").description, "");
    EXPECT_EQ((*host)->about("dram__no_such_thing.sum").description, "");
    // Instructions are counted in kernels only, by patched code.
    const std::string patched = "sm__sass_thread_inst_executed_op_ffma_pred_on.sum";
    EXPECT_FALSE((*host)->knows(patched)) << chip;
    const auto kernels = Host::open(chip);
    ASSERT_TRUE(kernels);
    EXPECT_TRUE((*kernels)->knows(patched)) << chip;
    const std::vector<std::string> few = {"dram__bytes_read.sum", "sm__inst_executed.sum"};
    const auto config = (*host)->configure(few);
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->passes, 1u) << chip;
  }
}

}  // namespace
}  // namespace tacho::counter::nvidia
