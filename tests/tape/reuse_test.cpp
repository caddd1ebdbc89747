// Which blocks writers take, and what wakes tacho: freed blocks first, futexes when few are left, growth ahead of need.
#include <chrono>

#include "tape/pool_run.h"
#include "tape/sleep.h"
#include "tape/writer.h"

namespace tacho::test {
namespace {

using tape::BlockHeader;

class Reuse : public testing::Test {
 protected:
  void open(const tape::PoolOptions& options) {
    run_.emplace(options);
    ASSERT_TRUE(tape::writer_internal::attach_mapped(
        &head(), head().data_offset + static_cast<size_t>(run_->pool().max_blocks()) * tape::kBlockSize));
  }
  tape::PoolHeader& head() { return run_->pool().header(); }
  uint32_t index_of(const BlockHeader* block) {
    return static_cast<uint32_t>(block - &run_->pool().block(0)) / (tape::kBlockSize / sizeof(BlockHeader));
  }
  uint32_t take() {
    BlockHeader* const block = tape::open_extent(tape::BlockKind::kCupti, 1, 0);
    if (block == nullptr) return ~0u;
    taken_.push_back(block);
    return index_of(block);
  }
  void give_back() {
    for (BlockHeader* const block : taken_) tape::discard_extent(block);
    taken_.clear();
    run_->drain(false);
  }
  std::optional<PoolRun> run_;
  std::vector<BlockHeader*> taken_;
};

TEST_F(Reuse, FreedBlocksAreTakenBeforeOthers) {
  open({.initial_bytes = 4 << 20, .max_bytes = 4 << 20});
  uint32_t highest = 0;
  for (int round = 0; round < 500; ++round) {
    for (int i = 0; i < 3; ++i) highest = std::max(highest, take());
    give_back();
  }
  EXPECT_LE(highest, 4u);  // definitions have a block, too
  // Also when the lowest comes back alone, in between.
  for (int i = 0; i < 10; ++i) take();
  tape::discard_extent(taken_[2]);
  const uint32_t freed = index_of(taken_[2]);
  taken_.erase(taken_.begin() + 2);
  run_->drain(false);
  EXPECT_EQ(take(), freed);
  give_back();
}

TEST_F(Reuse, EveryBlockIsFoundWhereverTheHintIs) {
  open({.initial_bytes = 1 << 20, .max_bytes = 1 << 20});
  for (const uint32_t hint : {0u, 7u, 15u, 16u, 1000u, ~0u}) {
    head().hint.store(hint);
    size_t count = 0;
    while (take() != ~0u) ++count;
    EXPECT_EQ(count, 15u) << hint;  // of 16, one has definitions
    give_back();
  }
  head().hint.store(9);
  BlockHeader* const extent = tape::open_extent(tape::BlockKind::kCupti, 10, 0);  // only below the hint there is room
  ASSERT_NE(extent, nullptr);
  tape::discard_extent(extent);
}

TEST_F(Reuse, TheWriterWakesWhoeverSleepsWhenFewBlocksAreLeft) {
  open({.initial_bytes = 1 << 20, .max_bytes = 1 << 20});
  head().drain_below.store(10);
  head().grow_below.store(5);
  head().drainer_sleeps.store(1);
  head().grower_sleeps.store(1);
  while (head().free_blocks.load() > 10) take();
  EXPECT_EQ(head().drainer_sleeps.load(), 1u);
  take();
  EXPECT_EQ(head().drainer_sleeps.load(), 0u);
  while (head().free_blocks.load() > 5) take();
  EXPECT_EQ(head().grower_sleeps.load(), 1u);
  take();
  EXPECT_EQ(head().grower_sleeps.load(), 0u);
  give_back();
}

TEST_F(Reuse, ASleepThatIsNotNeededEndsAtOnceAndOneThatIsWokenToo) {
  open({.initial_bytes = 1 << 20, .max_bytes = 1 << 20});
  std::atomic<uint32_t> word{0};
  tape::sleep_on(word, -1, [] { return true; });  // would never end
  std::atomic<bool> wanted{false};
  std::thread sleeper([&] {
    while (!wanted) tape::sleep_on(word, -1, [&] { return wanted.load(); });
  });
  wanted = true;
  tape::wake_sleeper(word);
  sleeper.join();
  tape::Drainer drainer(run_->pool());
  drainer.wake();
  drainer.sleep();
}

TEST_F(Reuse, ThePoolGrowsAheadOfItsWriters) {
  open({.initial_bytes = 1 << 20, .max_bytes = 32 << 20});
  const tape::Grower grower(run_->pool());
  EXPECT_EQ(head().growable.load(), 1u);
  // Until the pool has its maximum there is always a next block, if one waits for it.
  for (size_t count = 0; count < 511;) {
    const uint32_t backed = head().populated_blocks.load();
    if (take() != ~0u) {
      ++count;
      continue;
    }
    ASSERT_TRUE(tape::can_grow() || head().populated_blocks.load() != backed) << count;
    tape::wait_for_growth(backed, 1'000'000'000);
  }
  while (tape::can_grow()) std::this_thread::yield();
  EXPECT_EQ(head().populated_blocks.load(), 512u);
  EXPECT_EQ(take(), ~0u);
  give_back();
}

TEST_F(Reuse, ASourceMayAskForMore) {
  open({.initial_bytes = 8 << 20, .max_bytes = 32 << 20});
  const tape::Grower grower(run_->pool());
  tape::want_blocks(300);
  while (head().populated_blocks.load() < 300 && tape::can_grow()) {
    const uint32_t backed = head().populated_blocks.load();
    if (backed < 300) tape::wait_for_growth(backed, 1'000'000'000);
  }
  EXPECT_GE(head().populated_blocks.load(), 300u);
}

TEST_F(Reuse, BlocksLieAtMultiplesOfTheirSize) {
  open({.initial_bytes = 1 << 20, .max_bytes = 4 << 20});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(&run_->pool().block(0)) % tape::kBlockSize, 0u);
}

}  // namespace
}  // namespace tacho::test
