// What processes use, and names of readings.
#include "watch/metrics/telemetry.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace tacho::watch {
namespace {

TEST(WatchTelemetry, ThisProcess) {
  volatile uint64_t work = 0;
  for (uint64_t i = 0; i < 50'000'000; ++i) work = work + i;
  const auto use = process_use(static_cast<uint32_t>(getpid()));
  ASSERT_TRUE(use);
  EXPECT_GT(use->user_s + use->system_s, 0);
  EXPECT_LT(use->user_s + use->system_s, 1000);
  EXPECT_GT(use->resident_bytes, 1u << 20);
  EXPECT_GE(use->threads, 1u);
  EXPECT_FALSE(process_use(0x7fffffff));
}

TEST(WatchTelemetry, Quantities) {
  vendor::GpuReading reading;
  reading.name = "GPU Core Clock [12]";
  EXPECT_EQ(quantity_of(reading), "Core Clock");
  reading.name = "odd";
  EXPECT_EQ(quantity_of(reading), "odd");
}

}  // namespace
}  // namespace tacho::watch
