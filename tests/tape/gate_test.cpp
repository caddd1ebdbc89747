// What opens and closes recording (gate.h).
#include "tape/gate.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace tacho::tape {
namespace {

constexpr uint64_t kSources = source_bit::kApi | source_bit::kDispatch | source_bit::kSample;

std::unique_ptr<PoolHeader> header_with(uint32_t closed) {
  auto header = std::make_unique<PoolHeader>();
  header->sources = kSources;
  header->closed = closed;
  header->enabled = open_sources(closed, kSources);
  return header;
}

// Whatever comes first: nothing opens what another has closed.
TEST(Gate, RecordingIsOnWhileNothingKeepsItClosed) {
  for (uint32_t closed = 0; closed < 16; ++closed) {
    for (uint32_t bit = 1; bit < 16; bit *= 2) {
      const auto header = header_with(closed);
      for (const bool open : {true, false}) {
        const bool was_on = header->enabled != 0;
        const uint32_t wanted = open ? header->closed & ~bit : header->closed | bit;
        EXPECT_EQ(set_gate(*header, bit, open), was_on != (open_sources(wanted, kSources) != 0));
        EXPECT_EQ(header->closed, wanted);
        const bool on = (wanted & (gate::kTime | gate::kTrigger | gate::kProgram)) == 0;
        EXPECT_EQ((header->enabled & source_bit::kDispatch) != 0, on);
        EXPECT_EQ((header->enabled & source_bit::kSample) != 0, on && (wanted & gate::kSampleTime) == 0);
      }
    }
  }
}

TEST(Gate, RunsThatIgnoreTheProgramStayOn) {
  const auto header = header_with(0);
  header->ignores_program = 1;
  EXPECT_FALSE(set_gate(*header, gate::kProgram, false));
  EXPECT_NE(header->enabled, 0U);
  EXPECT_TRUE(set_gate(*header, gate::kTrigger, false));
  EXPECT_EQ(header->enabled, 0U);
}

TEST(Gate, ChangesAreKeptForThoseWhoComeLater) {
  const auto header = header_with(gate::kProgram);
  EXPECT_EQ(header->ever_open, 0U);
  set_gate(*header, gate::kProgram, true);
  set_gate(*header, gate::kProgram, true);  // changes nothing
  set_gate(*header, gate::kTime, false);
  EXPECT_EQ(header->ever_open, 1U);
  ASSERT_EQ(header->changed, 2U);
  EXPECT_EQ(header->changes[0].sources, kSources | source_bit::kRecording);
  EXPECT_EQ(header->changes[1].sources, 0U);
  EXPECT_LE(header->changes[0].ticks, header->changes[1].ticks);
}

// Threads that open and close different gates leave `enabled` as the gates are in the end.
TEST(Gate, FollowsTheGatesUnderContention) {
  const auto header = header_with(0);
  std::vector<std::thread> threads;
  for (const uint32_t bit : {gate::kTime, gate::kTrigger, gate::kProgram, gate::kSampleTime})
    threads.emplace_back([&, bit] {
      for (int i = 0; i < 20'000; ++i) set_gate(*header, bit, i % 2 == 0);
      set_gate(*header, bit, bit != gate::kTrigger);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(header->closed, gate::kTrigger);
  EXPECT_EQ(header->enabled, 0U);
  set_gate(*header, gate::kTrigger, true);
  EXPECT_EQ(header->enabled, kSources | source_bit::kRecording);
}

TEST(Gate, LaunchesFireTriggersOnce) {
  const auto header = header_with(gate::kTrigger);
  header->start_launch = 2;
  header->stop_launch = 4;
  std::string fired;
  for (int i = 1; i <= 5; ++i) {
    const LaunchTriggers triggers = count_run_launch(*header, 0);
    fired += triggers.starts ? "+" : triggers.stops ? "-" : ".";
  }
  EXPECT_EQ(fired, ".+.-.");
  EXPECT_EQ(header->trigger_start, 1U);
  EXPECT_EQ(header->trigger_stop, 1U);
  EXPECT_EQ(header->launches, 5U);
}

}  // namespace
}  // namespace tacho::tape
