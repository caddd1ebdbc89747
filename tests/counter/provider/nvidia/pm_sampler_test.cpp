// Sampling a GPU's counters without a GPU: the times of its timer, units, and what CUPTI says of metrics that are
// sampled. The way of a sample is tested with a stand-in (tests/e2e/attach_counters_test.py).
#include "counter/provider/nvidia/pm_sampler.h"

#include <gtest/gtest.h>

#include "counter/provider/nvidia/host.h"
#include "counter/provider/nvidia/pm_clock.h"

namespace tacho::counter::nvidia {
namespace {

constexpr uint64_t kGpu = 1'795'000'000'000'000'000;

TEST(GpuClock, LinesBetweenMoments) {
  ClockPairs clock;
  EXPECT_TRUE(clock.empty());
  clock.add(kGpu, 1000, 7);
  EXPECT_EQ(clock.host_time(kGpu + 50), 1050);
  EXPECT_EQ(clock.host_time(kGpu - 50), 950);
  clock.add(kGpu + 1000, 3000, 9);  // the host's is twice as fast
  clock.add(kGpu + 2000, 4000, 8);
  EXPECT_EQ(clock.host_time(kGpu), 1000);
  EXPECT_EQ(clock.host_time(kGpu + 500), 2000);
  EXPECT_EQ(clock.host_time(kGpu + 1000), 3000);
  EXPECT_EQ(clock.host_time(kGpu + 1500), 3500);
  EXPECT_EQ(clock.host_time(kGpu + 2100), 4100);
  EXPECT_EQ(clock.host_time(kGpu - 100), 900);
  EXPECT_EQ(clock.error(), 9);
}

TEST(GpuClock, MomentsThatGoBackAreLeftOut) {
  ClockPairs clock;
  clock.add(kGpu, 1000, 1);
  clock.add(kGpu - 10, 2000, 1);
  clock.add(kGpu + 10, 900, 1);
  clock.add(kGpu, 1000, 1);
  EXPECT_EQ(clock.host_time(kGpu + 10), 1010);
}

TEST(GpuClock, HoursOfMoments) {
  ClockPairs clock;
  // A GPU's timer that is 10 ppm slow, read ten times a second.
  for (int64_t i = 0; i < 36'000; ++i) clock.add(kGpu + static_cast<uint64_t>(i) * 99'999'000, i * 100'000'000, 500);
  constexpr int64_t kLast = 35'999;
  EXPECT_NEAR(static_cast<double>(clock.host_time(kGpu + kLast * 99'999'000 - 49'999'500)),
              static_cast<double>(kLast * 100'000'000 - 50'000'000), 1);
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
