// A device's clock is compared with the host's: its times are moved, or counted and told, whatever order rows come in.
#include "trace/write/work_times.h"

#include <gtest/gtest.h>

#include <functional>

#include "decode/memory_writer.h"

namespace tacho::trace {
namespace {

namespace row = event::row;
using decode::MemoryWriter;
using event::Table;

void call(WorkTimes& times, int64_t process, int64_t correlation, int64_t start) {
  times.call({.process = process, .correlation = correlation, .start = start, .end = start + 1000});
}
void work(WorkTimes& times, int64_t process, int64_t correlation, int64_t start) {
  times.dispatch({.process = process, .device = 1},
                 {.track = 1, .start = start, .duration = 500, .correlation = correlation});
}

int64_t start_of(const MemoryWriter& writer, size_t at) {
  return writer.facts.at(Table::kDispatch)[at][event::column::Dispatch::start];
}

bool notes_have(const MemoryWriter& writer, const std::string& text) {
  for (const std::string& note : writer.notes)
    if (note.find(text) != std::string::npos) return true;
  return false;
}

TEST(WorkTimes, SaysNothingOfWorkAfterItsLaunch) {
  MemoryWriter writer;
  WorkTimes times(writer);
  for (int64_t i = 1; i < 5000; ++i) {
    call(times, 0, i, i * 1'000'000);
    work(times, 0, i, i * 1'000'000 + 5000);
    work(times, 0, i, i * 1'000'000 - 10'000);  // within what two clocks can differ by
  }
  work(times, 0, 0, -1'000'000'000);     // caused by nobody
  work(times, 0, 9000, -1'000'000'000);  // by a call that was not recorded
  times.finish(3);
  EXPECT_TRUE(writer.notes.empty());
  EXPECT_TRUE(writer.losses.empty());
  EXPECT_EQ(writer.facts[Table::kDispatch].size(), 2u * 4999 + 2);
}

TEST(WorkTimes, CountsWorkBeforeItsLaunch) {
  MemoryWriter writer;
  WorkTimes times(writer);
  call(times, 0, 1, 1'000'000);
  work(times, 0, 1, 1'001'000);
  work(times, 0, 2, 900'000);  // before its call is seen
  call(times, 0, 2, 1'000'000);
  call(times, 0, 3, 5'003'000);  // the driver's call in the runtime's
  call(times, 0, 3, 5'000'000);
  work(times, 0, 3, 4'700'000);
  work(times, 1, 2, 10'000'000);  // another process's
  call(times, 1, 2, 10'500'000);
  times.finish(0);
  ASSERT_EQ(writer.notes.size(), 1u);
  EXPECT_NE(writer.notes[0].find(
                "3 of 4 kernels, copies and fills begin before the call that launched them began, by 300.0 us "
                "in the middle and 500.0 us at most"),
            std::string::npos)
      << writer.notes[0];
  EXPECT_EQ(writer.losses[event::LossReason::kClockOrder], 3);
}

TEST(WorkTimes, ForgetsInsteadOfGrowing) {
  MemoryWriter writer;
  WorkTimes times(writer, 16);
  for (int64_t i = 1; i < 100'000; ++i) call(times, 0, i, i * 1'000'000);
  for (int64_t i = 1; i < 99'000; ++i) work(times, 0, i, 0);
  times.finish(0);
  EXPECT_TRUE(writer.notes.empty());
  EXPECT_EQ(writer.facts[Table::kDispatch].size(), 98'999u);
}

TEST(WorkTimes, WritesRowsAtTheSecondSettling) {
  MemoryWriter writer;
  WorkTimes times(writer);
  call(times, 0, 1, 1'000'000);
  work(times, 0, 1, 1'005'000);
  times.settle();
  EXPECT_EQ(writer.facts[Table::kDispatch].size(), 0u);
  times.settle();
  EXPECT_EQ(writer.facts[Table::kDispatch].size(), 1u);
  call(times, 0, 2, 2'000'000);
  work(times, 0, 2, 2'005'000);  // the clock has been compared
  EXPECT_EQ(writer.facts[Table::kDispatch].size(), 2u);
}

// A recording that has its kernels before its calls, and the values of counters behind all: each finds its own.
TEST(WorkTimes, FindsCallsThatLieApart) {
  constexpr int64_t kApart = -2'000'000'000, kKernels = 20'000;
  MemoryWriter writer;
  WorkTimes times(writer, WorkTimes::Calls::kApart);
  const WorkTimes::Origin origin{.process = 4, .device = 7};
  for (int64_t i = 1; i <= kKernels; ++i)
    times.dispatch(origin, {.track = 1, .start = i * 1'000'000 + 8'000 + kApart, .duration = 40'000, .correlation = i});
  for (int64_t i = 1; i <= kKernels; ++i)
    times.counter_value(origin, {.track = 1, .start = i * 1'000'000 + 8'000 + kApart, .ordinal = i});
  for (int64_t i = 1; i <= kKernels; ++i) {
    times.call({.process = 4, .correlation = i, .start = i * 1'000'000, .end = i * 1'000'000 + 5'000});
    times.call({.process = 4,
                .start = i * 1'000'000 + 6'000,
                .end = i * 1'000'000 + 50'000,
                .role = event::CallRole::kWaitsForDevice});
    times.call({.process = 5, .correlation = i, .start = 0, .end = 1});  // another process's
  }
  ASSERT_TRUE(times.work_ends());
  times.finish(0);
  const auto& kernels = writer.facts[Table::kDispatch];
  const auto& values = writer.facts[Table::kCounterValue];
  ASSERT_EQ(kernels.size(), static_cast<size_t>(kKernels));
  ASSERT_EQ(values.size(), kernels.size());
  for (size_t i = 0; i < kernels.size(); ++i) {
    const int64_t start = kernels[i][event::column::Dispatch::start];
    EXPECT_LE(std::abs(start - (static_cast<int64_t>(i) + 1) * 1'000'000 - 8'000), 10'000);
    EXPECT_EQ(values[i][event::column::CounterValue::start], start);
  }
  EXPECT_TRUE(notes_have(writer, "2.000 s behind the host's")) << writer.notes.at(0);
  EXPECT_TRUE(writer.losses.empty());
}

TEST(WorkTimes, WritesAtOnceWhereNoCallsAre) {
  MemoryWriter writer;
  WorkTimes times(writer, WorkTimes::Calls::kApart);
  ASSERT_TRUE(times.calls_end(true));
  times.dispatch({.process = 4, .device = 7}, {.track = 1, .start = 1, .duration = 1, .correlation = 1});
  EXPECT_EQ(writer.facts[Table::kDispatch].size(), 1u);
}

// A program that launches, and waits for its queue after every fourth kernel; the device shows `clock(time)`.
struct Program {
  MemoryWriter writer;
  WorkTimes times{writer};
  std::vector<int64_t> true_starts;
  enum class Waits { kQueue, kUnnamed, kCopies, kNone };

  void run(int64_t from, int64_t to, const std::function<int64_t(int64_t)>& clock, Waits waits, int64_t tracks = 1) {
    for (int64_t i = from; i < to; ++i) {
      const int64_t at = i * 1'000'000, begin = at + 8'000, end = begin + 40'000, track = 1 + i % tracks;
      const bool last = i % 4 == 3;
      const bool copy = waits == Waits::kCopies && last;
      times.call({.correlation = i, .start = at, .end = copy ? end + 6'000 : at + 5'000});
      const int64_t start = clock(begin), duration = clock(end) - start;
      if (copy) {
        times.copy({.device = 7, .to_host = true, .blocking = true},
                   {.track = track, .start = start, .duration = duration, .correlation = i});
      } else {
        times.dispatch({.device = 7}, {.track = track, .start = start, .duration = duration, .correlation = i});
        true_starts.push_back(begin);
      }
      if (!last) continue;
      if (waits == Waits::kQueue) times.queue_wait(0, track, at + 6'000, end + 6'000);
      if (waits == Waits::kUnnamed)
        times.call({.start = at + 6'000, .end = end + 6'000, .role = event::CallRole::kWaitsForQueue});
    }
  }
  // The largest distance of a kernel from where it ran.
  int64_t error() const {
    int64_t worst = 0;
    for (size_t i = 0; i < true_starts.size(); ++i)
      worst = std::max(worst, std::abs(start_of(writer, i) - true_starts[i]));
    return worst;
  }
};

TEST(WorkTimes, MovesAClockThatIsApart) {
  for (const int64_t apart : {-3'000'000'000LL, -200'000LL, 200'000LL, 7'000'000'000LL})
    for (const Program::Waits waits : {Program::Waits::kQueue, Program::Waits::kCopies}) {
      Program program;
      program.run(
          1, 4000, [&](int64_t time) { return time + apart; }, waits);
      program.times.finish(0);
      EXPECT_LE(program.error(), 10'000) << apart;
      ASSERT_EQ(program.writer.notes.size(), 1u);
      EXPECT_NE(program.writer.notes[0].find(apart < 0 ? "behind the host's" : "ahead of the host's"),
                std::string::npos)
          << program.writer.notes[0];
      EXPECT_TRUE(program.writer.losses.empty());
    }
}

TEST(WorkTimes, BelievesUnnamedQueuesOnlyWhereThereIsOne) {
  Program one;
  one.run(
      1, 400, [](int64_t time) { return time + 5'000'000'000; }, Program::Waits::kUnnamed);
  one.times.finish(0);
  EXPECT_LE(one.error(), 10'000);
  EXPECT_TRUE(notes_have(one.writer, "5.000 s ahead of the host's"));

  Program several;
  several.run(
      1, 400, [](int64_t time) { return time - 5'000'000'000; }, Program::Waits::kUnnamed, 3);
  several.times.finish(0);
  EXPECT_TRUE(notes_have(several.writer, "begin before the call that launched them began"));
  EXPECT_EQ(start_of(several.writer, 0), several.true_starts[0] - 5'000'000'000);
}

TEST(WorkTimes, FollowsAClockThatDrifts) {
  Program program;  // 500 ppm slow
  program.run(
      1, 4000, [](int64_t time) { return time - time / 2000; }, Program::Waits::kQueue);
  program.times.finish(0);
  EXPECT_LE(program.error(), 80'000);  // as long as it is near the host's
  const auto last = static_cast<int64_t>(program.true_starts.size()) - 1;
  EXPECT_LE(std::abs(start_of(program.writer, static_cast<size_t>(last)) - program.true_starts.back()), 30'000);
  EXPECT_TRUE(notes_have(program.writer, "and drifted"));
}

TEST(WorkTimes, LeavesTimesWithoutTwoBounds) {
  Program program;
  program.run(
      1, 400, [](int64_t time) { return time - 60'000; }, Program::Waits::kNone);
  program.times.finish(0);
  EXPECT_EQ(program.error(), 60'000);
  EXPECT_EQ(program.writer.losses[event::LossReason::kClockOrder], 399);
}

TEST(WorkTimes, NoticesAClockThatJumpsLater) {
  Program program;
  program.run(
      1, 3000, [](int64_t time) { return time; }, Program::Waits::kQueue);
  program.times.settle();
  program.times.settle();
  program.run(
      3000, 9000, [](int64_t time) { return time - 1'000'000'000; }, Program::Waits::kQueue);
  program.times.finish(0);
  EXPECT_TRUE(notes_have(program.writer, "999.999 ms behind the host's")) << program.writer.notes.at(0);
  EXPECT_EQ(program.writer.losses[event::LossReason::kClockOrder], 1);  // the one that told
  EXPECT_LE(std::abs(start_of(program.writer, program.true_starts.size() - 1) - program.true_starts.back()), 10'000);
}

}  // namespace
}  // namespace tacho::trace
