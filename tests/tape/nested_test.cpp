// Signal handlers that record while their thread is recording, at every single instruction of it: the CPU's trap flag
// raises a signal after each, so no timing is needed to hit the one that matters.
#include <signal.h>
#include <ucontext.h>

#include <thread>

#include "tape/pool_run.h"
#include "tape/writer.h"

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)

namespace tacho::test {
namespace {

constexpr uint64_t kTrapFlag = 0x100;

// The handler's work and its results. One thread steps.
struct Steps {
  long now = 0;       // instructions since the trap flag was set
  long at = 0;        // after which one the handler records
  bool done = false;  // the flag is to go
  long nested = 0;    // records the handler wrote
  long refused = 0;   // and for which it found no room
};
Steps g_steps;

void on_trap(int, siginfo_t*, void* context) {
  if (g_steps.done) {
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~static_cast<greg_t>(kTrapFlag);
    return;
  }
  if (++g_steps.now != g_steps.at) return;
  if (auto* const record = tape::begin<event::MarkRecord>(event::RecordKind::kMark, event::Table::kMarker, 0)) {
    record->time = 1;
    tape::commit();
    ++g_steps.nested;
  } else {
    ++g_steps.refused;
  }
}

// From here on on_trap() runs after every instruction. Below the red zone, which the compiler may be using.
inline void begin_steps() {
  asm volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\torq %0, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp"
               :
               : "i"(kTrapFlag)
               : "memory", "cc");
}

bool record_call() {
  auto* const record = tape::begin<event::ApiRecord>(event::RecordKind::kApi, event::Table::kApi);
  if (record == nullptr) return false;
  record->start = record->end = 1;
  record->correlation = 1;
  tape::commit();
  return true;
}

// Leaves `left` bytes in a fresh block of this thread.
bool fill_but(uint32_t left) {
  tape::flush_thread();
  const uint32_t size = tape::kBlockPayload - left;
  std::byte* const at = tape::reserve(size, event::Table::kApi);
  if (at == nullptr) return false;
  const event::RecordHeader pad{event::RecordKind::kPad, 0, static_cast<uint16_t>(size), 0};
  memcpy(at, &pad, sizeof pad);
  tape::commit();
  return true;
}

struct Totals {
  long calls = 0, calls_refused = 0, rounds = 0;
};

// One call recorded a round, with a mark nested after its 1st, 2nd, ... instruction, until it has no more.
template <typename Prepare>
void step_through(PoolRun& run, Prepare prepare, Totals& totals) {
  std::thread([&] {
    for (long at = 1;; at += 1 + at / 400) {
      prepare();
      g_steps.at = at;
      g_steps.now = 0;
      g_steps.done = false;
      begin_steps();
      const bool kept = record_call();
      g_steps.done = true;
      asm volatile("nop; nop" : : : "memory");
      // Whatever was written is published: a kill now would lose none of it.
      const tape::ThreadState& state = tape::t_state;
      if (state.block != nullptr) {
        EXPECT_EQ(state.block->committed.load(), static_cast<uint32_t>(state.cursor - tape::payload(state.block)))
            << at;
      }
      ++totals.rounds;
      ++(kept ? totals.calls : totals.calls_refused);
      run.drain(false);
      if (g_steps.now < at) break;
    }
    tape::flush_thread();
  }).join();
}

TEST(Nested, AfterEveryInstructionOfARecord) {
  PoolRun run({.initial_bytes = 1 << 20, .max_bytes = 1 << 20});
  ASSERT_TRUE(tape::writer_internal::attach_mapped(
      &run.pool().header(),
      run.pool().header().data_offset + static_cast<size_t>(run.pool().max_blocks()) * tape::kBlockSize));
  struct sigaction action {
  }, before{};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(sigaction(SIGTRAP, &action, &before), 0);
  g_steps = {};
  Totals totals;
  // In the middle of a block; where the call does not fit any more and the mark does; and where no other block is free.
  step_through(
      run, [] {}, totals);
  step_through(
      run, [] { EXPECT_TRUE(fill_but(sizeof(event::ApiRecord) - 8)); }, totals);
  std::vector<tape::BlockHeader*> taken;
  step_through(
      run,
      [&] {
        for (tape::BlockHeader* const block : taken) tape::discard_extent(block);
        taken.clear();
        run.drain(false);
        EXPECT_TRUE(fill_but(sizeof(event::ApiRecord) - 8));
        while (tape::BlockHeader* const block = tape::open_extent(tape::BlockKind::kCupti, 1, 0))
          taken.push_back(block);
      },
      totals);
  for (tape::BlockHeader* const block : taken) tape::discard_extent(block);
  sigaction(SIGTRAP, &before, nullptr);
  run.drain(true);

  EXPECT_GT(totals.rounds, 100);
  EXPECT_GT(g_steps.nested, 50);
  EXPECT_GT(totals.calls_refused, 10);
  // Everything that found room has arrived, and everything else was counted.
  EXPECT_EQ(static_cast<long>(run.rows().count(event::RecordKind::kApi)), totals.calls);
  EXPECT_EQ(static_cast<long>(run.rows().count(event::RecordKind::kMark)), g_steps.nested);
  EXPECT_EQ(static_cast<long>(run.dropped()), totals.calls_refused + g_steps.refused);
}

}  // namespace
}  // namespace tacho::test

#endif
