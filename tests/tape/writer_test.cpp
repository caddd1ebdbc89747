// The writing side of the pool under everything that a program may do: a test each of forks, clones, threads, signals,
// limits and kills. tape_target is the program, libtacho.so is preloaded, this process drains.
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <set>

#include "tape/pool_run.h"

namespace tacho::test {
namespace {

using event::RecordKind;

// Tests that ThreadSanitizer cannot run: it turns vfork into fork, and needs terabytes of addresses and files of its
// own.
#ifdef __SANITIZE_THREAD__
#define SKIP_UNDER_TSAN() GTEST_SKIP() << "not under ThreadSanitizer"
#else
#define SKIP_UNDER_TSAN() static_cast<void>(0)
#endif

std::string target() {
  return build_folder() + "/tests/tape_target";
}

// Of every (process, thread): pushes and pops in order, never more pops than pushes, equal at the end; times ascend.
void expect_balanced(const Rows& rows) {
  std::map<std::pair<uint32_t, uint32_t>, long> depth;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> last;
  for (const Row& row : rows.rows) {
    if (row.kind != RecordKind::kPush && row.kind != RecordKind::kPop) continue;
    const std::pair key(row.slot, row.thread);
    depth[key] += row.kind == RecordKind::kPush ? 1 : -1;
    ASSERT_GE(depth[key], 0);
    ASSERT_GE(row.time, last[key]) << "slot " << row.slot << " thread " << row.thread;
    last[key] = row.time;
  }
  for (const auto& [key, value] : depth) EXPECT_EQ(value, 0) << "slot " << key.first << " thread " << key.second;
}

TEST(Writer, RecordsPairs) {
  PoolRun run;
  EXPECT_EQ(run.run({target(), "pairs", "100000"}), 0);
  EXPECT_EQ(run.rows().count(RecordKind::kPush), 100000u);
  EXPECT_EQ(run.rows().count(RecordKind::kPop), 100000u);
  EXPECT_EQ(run.dropped(), 0u);
  expect_balanced(run.rows());
  ASSERT_EQ(run.rows().processes.size(), 1u);
  const event::ProcessRecord& process = run.rows().processes.begin()->second;
  EXPECT_EQ(run.rows().string(0, process.name), "tape_target");
  EXPECT_EQ(run.rows().string(0, process.command), target() + " pairs 100000");
  EXPECT_GT(process.hook_picoseconds, 1000u);
  EXPECT_LT(process.hook_picoseconds, 10'000'000u);
  EXPECT_GT(process.ns_per_tick, 0.05);
}

TEST(Writer, AProgramWithoutMarkersLeavesNothing) {
  PoolRun run;
  EXPECT_EQ(run.run({target(), "none"}), 0);
  EXPECT_EQ(run.rows().rows.size(), 0u);
}

TEST(Writer, WithoutAPoolNothingHappens) {
  PoolRun run;
  EXPECT_EQ(run.run({target(), "pairs", "1000"}, {"TACHO_POOL=/nonexistent"}), 0);
  EXPECT_EQ(run.rows().rows.size(), 0u);
}

TEST(Writer, FoundThroughTheEnvironmentWithoutPreloading) {
  PoolRun run;
  EXPECT_EQ(run.run({target(), "pairs", "10"}, {}, false), 0);
  EXPECT_EQ(run.rows().count(RecordKind::kPush), 10u);
}

TEST(Writer, ForkWithoutExec) {
  PoolRun run;
  EXPECT_EQ(run.run({target(), "fork"}), 0);
  EXPECT_EQ(run.rows().count(RecordKind::kPush, "child"), 20u);
  EXPECT_EQ(run.rows().count(RecordKind::kPush, "parent"), 20u);
  EXPECT_EQ(run.rows().count(RecordKind::kPop), 41u);
  ASSERT_EQ(run.rows().processes.size(), 2u);
  std::set<uint32_t> pids;
  for (const auto& [slot, process] : run.rows().processes) pids.insert(process.pid);
  EXPECT_EQ(pids.size(), 2u);
  EXPECT_EQ(run.rows().processes[1].parent_slot, 0u);
  for (const Row& row : run.rows().rows)
    if (row.kind == RecordKind::kPush) {
      EXPECT_EQ(row.pid, run.rows().processes[row.slot].pid);
    }
  expect_balanced(run.rows());
}

TEST(Writer, ForkWhileOtherThreadsWrite) {
  PoolRun run({.initial_bytes = 128 << 20, .max_bytes = 256 << 20});  // a busy machine drains late
  EXPECT_EQ(run.run({target(), "fork_storm", "150"}), 0);
  EXPECT_EQ(run.rows().count(RecordKind::kMark, "in child"), 150u);
  EXPECT_EQ(run.rows().count(RecordKind::kMark, "in parent"), 150u);
  std::set<std::string> domains;
  for (const Row* row : run.rows().of(RecordKind::kMark)) domains.insert(row->domain);
  EXPECT_EQ(domains.size(), 300u);
  EXPECT_EQ(run.rows().processes.size(), 151u);
  EXPECT_EQ(run.dropped(), 0u);
  expect_balanced(run.rows());
}

TEST(Writer, RawClone) {
  PoolRun run;
  EXPECT_EQ(run.run({target(), "raw_clone"}), 0);
  EXPECT_EQ(run.rows().count(RecordKind::kPush, "child"), 6u);
  EXPECT_EQ(run.rows().count(RecordKind::kPush, "parent"), 10u);
  EXPECT_EQ(run.rows().processes.size(), 2u);
  expect_balanced(run.rows());
}

TEST(Writer, VforkAndExec) {
  SKIP_UNDER_TSAN();
  PoolRun run;
  EXPECT_EQ(run.run({target(), "vfork"}), 0);
  EXPECT_EQ(run.rows().count(RecordKind::kMark, "in vfork"), 1u);
  EXPECT_EQ(run.rows().count(RecordKind::kPush, "pair"), 7u);
  EXPECT_EQ(run.rows().count(RecordKind::kPush, "parent"), 5005u);
  EXPECT_EQ(run.rows().processes.size(), 2u);
  expect_balanced(run.rows());
}

TEST(Writer, SixtyFourThreads) {
  PoolRun run({.initial_bytes = 16 << 20});
  EXPECT_EQ(run.run({target(), "threads", "64", "2000"}), 0);
  EXPECT_EQ(run.rows().count(RecordKind::kPush) + run.rows().count(RecordKind::kPop) + run.dropped(), 64 * 4000u);
  EXPECT_EQ(run.dropped(), 0u);
  std::set<uint32_t> threads;
  for (const Row* row : run.rows().of(RecordKind::kPush)) threads.insert(row->thread);
  EXPECT_EQ(threads.size(), 64u);
  expect_balanced(run.rows());
}

TEST(Writer, TenThousandThreadsOneAfterAnother) {
  SKIP_UNDER_TSAN();                                                // where the ends of threads are not noticed at once
  PoolRun run({.initial_bytes = 32 << 20, .max_bytes = 32 << 20});  // far less than a block per thread
  EXPECT_EQ(run.run({target(), "churn", "10000"}), 0);
  EXPECT_EQ(run.rows().count(RecordKind::kPush) + run.rows().count(RecordKind::kPop) + run.dropped(), 40000u);
  EXPECT_EQ(run.dropped(), 0u);
  expect_balanced(run.rows());
}

TEST(Writer, ThreadsEndByExitAndCancellation) {
  PoolRun run;
  EXPECT_EQ(run.run({target(), "thread_ends"}), 0);
  EXPECT_EQ(run.rows().count(RecordKind::kMark, "exits"), 1u);
  EXPECT_EQ(run.rows().count(RecordKind::kMark, "cancelled"), 1u);
}

TEST(Writer, SignalHandlerInTheMiddleOfARecord) {
  PoolRun run;
  int out[2];
  ASSERT_EQ(pipe(out), 0);
  static int write_end;
  write_end = out[1];
  const int status = run.run({target(), "signals"}, {}, true, [] { dup2(write_end, STDOUT_FILENO); });
  close(out[1]);
  char text[100] = {};
  ASSERT_GT(read(out[0], text, sizeof text - 1), 0);
  close(out[0]);
  long outer = 0, handled = 0;
  ASSERT_EQ(sscanf(text, "%ld %ld", &outer, &handled), 2);
  EXPECT_EQ(status, 0);
  EXPECT_GT(handled, 100);
  // Everything that was written has arrived or was counted; nothing overlaps (Rows checks every record).
  const auto marks = static_cast<long>(run.rows().count(RecordKind::kMark, "in handler"));
  const auto pushes = static_cast<long>(run.rows().count(RecordKind::kPush, "outer"));
  const auto nested = static_cast<long>(run.rows().count(RecordKind::kPush, "nested"));
  const auto pops = static_cast<long>(run.rows().count(RecordKind::kPop));
  EXPECT_GT(outer, 5000);
  const auto dropped = static_cast<long>(run.dropped());  // a dropped push takes its pop with it
  EXPECT_GT(marks, handled / 2);                          // only in a few instructions has a handler no room
  EXPECT_LE(handled - marks + outer - pushes + handled - nested, dropped);
  EXPECT_GE(pops + 2 * dropped, outer + handled);
  EXPECT_LE(pops, pushes + nested);
}

TEST(Writer, AFullPoolCountsExactly) {
  PoolRun run({.initial_bytes = 1 << 20, .max_bytes = 1 << 20});
  const pid_t child = run.spawn({target(), "threads", "4", "100000"});
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);  // nobody drains
  EXPECT_EQ(status, 0);
  run.drain(true);
  const uint64_t pushes = run.rows().count(RecordKind::kPush), pops = run.rows().count(RecordKind::kPop);
  EXPECT_GT(pushes, 1000u);
  // A pop whose push was dropped is not even written.
  EXPECT_EQ(pushes + run.pool().header().dropped[static_cast<size_t>(event::Table::kMarker)].load(),
            400000u + (pushes - pops));
  EXPECT_EQ(run.dropped(), run.pool().header().dropped[static_cast<size_t>(event::Table::kMarker)].load());
}

TEST(Writer, AllDescriptorsClosedAndReopened) {
  PoolRun run;
  EXPECT_EQ(run.run({target(), "descriptors"}), 0);
  EXPECT_EQ(run.rows().count(RecordKind::kPush), 20000u);
}

TEST(Writer, HoldsNoDescriptor) {
  PoolRun run;
  EXPECT_EQ(run.run({target(), "open_descriptors"}, {}, true,
                    [] {
                      for (int i = 3; i < 1024; ++i) close(i);
                    }),
            0);
  EXPECT_EQ(run.rows().count(RecordKind::kMark), 1u);
}

TEST(Writer, LimitedAddressSpace) {
  SKIP_UNDER_TSAN();
  PoolRun run({.initial_bytes = 4 << 20, .max_bytes = 1ull << 30});
  EXPECT_EQ(run.run({target(), "pairs", "1000"}, {}, true,
                    [] {
                      const rlimit limit{200 << 20, 200 << 20};  // less than the pool may grow to
                      setrlimit(RLIMIT_AS, &limit);
                    }),
            0);
  EXPECT_EQ(run.rows().count(RecordKind::kPush), 1000u);
}

TEST(Writer, FileSizeLimitDoesNotMatter) {
  SKIP_UNDER_TSAN();
  PoolRun run;
  EXPECT_EQ(run.run({target(), "pairs", "1000"}, {}, true,
                    [] {
                      const rlimit limit{0, 0};
                      setrlimit(RLIMIT_FSIZE, &limit);
                    }),
            0);
  EXPECT_EQ(run.rows().count(RecordKind::kPush), 1000u);
}

TEST(Writer, AnotherRootRunsUntraced) {
  if (geteuid() != 0) GTEST_SKIP() << "chroot needs privileges";
  PoolRun run;
  // The program was loaded before its root changed: only the pool cannot be found any more.
  EXPECT_EQ(run.run({target(), "pairs", "10"}, {"TACHO_POOL=/not/in/this/root"}), 0);
  EXPECT_EQ(run.rows().rows.size(), 0u);
}

TEST(Writer, KilledAtARandomMoment) {
  for (int round = 0; round < 5; ++round) {
    // A small pool, and a moment by the clock: on a machine that is busy otherwise each pass finds a full pool and
    // takes seconds.
    PoolRun run({.initial_bytes = 4 << 20, .max_bytes = 4 << 20});
    const auto moment = std::chrono::steady_clock::now() + std::chrono::milliseconds(10 * (round + 1));
    const pid_t child = run.spawn({target(), "storm"});
    bool marked = false;  // the main thread has begun
    while (!marked || std::chrono::steady_clock::now() < moment) {
      run.drain(false);
      if (!marked) marked = run.rows().count(RecordKind::kMark) != 0;
      usleep(1000);
    }
    kill(child, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(run.wait(child)));
    // The numbered marks of the main thread arrive without a gap, up to the number counted as dropped.
    uint64_t expected = 0, missing = 0;
    for (const Row* row : run.rows().of(RecordKind::kMark)) {
      const uint64_t number = strtoull(row->text.c_str(), nullptr, 10);
      ASSERT_GE(number, expected);
      missing += number - expected;
      expected = number + 1;
    }
    EXPECT_GT(expected, 0u);
    EXPECT_LE(missing, run.dropped());
  }
}

TEST(Writer, LongTextIsCutAndCounted) {
  PoolRun run;
  EXPECT_EQ(run.run({target(), "long"}), 0);
  std::vector<size_t> lengths;
  for (const Row& row : run.rows().rows)
    if (row.kind == RecordKind::kMark || row.kind == RecordKind::kPush) lengths.push_back(row.text.size());
  EXPECT_EQ(lengths, (std::vector<size_t>{60000, 59999, 60000}));
  std::vector<std::string> notes;
  for (const Row* row : run.rows().of(RecordKind::kNote)) notes.push_back(row->text);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[1], "marker texts longer than 60000 bytes were cut there: 2 so far");
}

TEST(Writer, PauseFromOutside) {
  PoolRun run({.initial_bytes = 4 << 20, .max_bytes = 64 << 20, .closed = tape::gate::kProgram});
  EXPECT_EQ(run.run({target(), "pairs", "1000"}), 0);
  EXPECT_EQ(run.rows().count(RecordKind::kPush), 0u);
  EXPECT_EQ(run.dropped(), 0u);
}

}  // namespace
}  // namespace tacho::test
