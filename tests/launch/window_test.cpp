// When recording was on, as tacho learns it later (window.h).
#include "launch/run/window.h"

#include <gtest/gtest.h>

#include <memory>

namespace tacho::launch {
namespace {

using tape::gate::kProgram;
using tape::gate::kTime;
using State = Window::State;

constexpr uint64_t kSample = tape::source_bit::kSample;

std::unique_ptr<tape::PoolHeader> header_with(uint32_t closed) {
  auto header = std::make_unique<tape::PoolHeader>();
  header->sources = kSample;
  header->closed = closed;
  header->enabled = tape::open_sources(closed, kSample);
  return header;
}

// The time of the newest change.
int64_t last_change(const tape::PoolHeader& header) {
  return static_cast<int64_t>(header.changes[(header.changed - 1) % tape::kGateChanges].ticks.load());
}

TEST(Window, TellsWhatWasOnAtATime) {
  const auto header = header_with(kProgram);
  Window window(*header);
  tape::set_gate(*header, kProgram, true);
  const int64_t opened = last_change(*header);
  while (raw_now() <= opened) continue;
  tape::set_gate(*header, kTime, false);
  const int64_t closed = last_change(*header);
  window.follow({});
  EXPECT_EQ(window.at(opened - 1, kSample), State::kClosed);
  EXPECT_EQ(window.at(opened, kSample), State::kOpen);
  EXPECT_EQ(window.at(closed - 1, kSample), State::kOpen);
  EXPECT_EQ(window.at(closed, kSample), State::kClosed);
  window.forget(closed);
  EXPECT_EQ(window.at(closed, kSample), State::kClosed);
}

// Of more changes than the pool keeps, those that are gone leave a time of which nobody knows, and it is said.
TEST(Window, KnowsNothingOfChangesThatAreGone) {
  const auto header = header_with(0);
  Window window(*header);
  for (uint64_t i = 0; i < 2 * tape::kGateChanges; ++i) tape::set_gate(*header, kProgram, i % 2 != 0);
  const int64_t first_kept = static_cast<int64_t>(header->changes[0].ticks.load());
  window.follow({});
  EXPECT_EQ(window.at(first_kept - 1, kSample), State::kUnknown);
  EXPECT_NE(window.at(first_kept, kSample), State::kUnknown);
  EXPECT_EQ(window.at(raw_now(), kSample), State::kOpen);
}

// A process may be stopped while it writes a change, or killed.
TEST(Window, WaitsOnceForAChangeThatIsBeingWritten) {
  const auto header = header_with(0);
  Window window(*header);
  tape::set_gate(*header, kProgram, false);
  header->changes[0].number = 0;
  window.follow({});
  EXPECT_EQ(window.at(INT64_MAX, kSample), State::kOpen);  // as before, until it is known
  header->changes[0].number = 1;
  window.follow({});
  EXPECT_EQ(window.at(INT64_MAX, kSample), State::kClosed);

  tape::set_gate(*header, kProgram, true);
  header->changes[1].number = 0;
  window.follow({});
  const int64_t before = raw_now();
  window.follow({});
  EXPECT_EQ(window.at(before - 1, kSample), State::kUnknown);
  EXPECT_EQ(window.at(INT64_MAX, kSample), State::kOpen);  // the gates themselves tell
}

// Two threads that change gates at once may leave their changes in the other order.
TEST(Window, TheGatesHaveTheLastWord) {
  const auto header = header_with(0);
  Window window(*header);
  tape::set_gate(*header, kProgram, false);
  header->closed = 0;
  window.follow({});
  EXPECT_EQ(window.at(INT64_MAX, kSample), State::kOpen);
}

}  // namespace
}  // namespace tacho::launch
