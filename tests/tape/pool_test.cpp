// Pool and Drainer alone: creation, growth, order, recovery, and forged files.
#include "tape/pool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "tape/pool_run.h"

namespace tacho::tape {
namespace {

PoolOptions small() {
  return {.initial_bytes = 1 << 20, .max_bytes = 4 << 20};
}

// Writes one block by hand, as a target would.
void put_block(Pool& pool, uint32_t index, BlockKind kind, BlockState state, std::string_view mark, uint64_t sequence) {
  BlockHeader& block = pool.block(index);
  block.kind = kind;
  block.process_slot = 0;
  block.thread_index = 1;
  block.pid = static_cast<uint32_t>(getpid());
  block.tid = static_cast<uint32_t>(gettid());
  block.blocks = 1;
  block.sequence = sequence;
  std::atomic<uint64_t>& next = pool.header().sequence;
  next = std::max(next.load(), sequence + 1);
  auto* const bytes = reinterpret_cast<char*>(&block) + sizeof block;
  const auto padded = static_cast<uint32_t>((mark.size() + 7) & ~size_t{7});
  event::MarkRecord record{};
  record.header = {event::RecordKind::kMark, 0, static_cast<uint16_t>(sizeof record + padded),
                   static_cast<uint32_t>(mark.size())};
  memcpy(bytes, &record, sizeof record);
  memset(bytes + sizeof record, 0, padded);
  memcpy(bytes + sizeof record, mark.data(), mark.size());
  block.committed.store(record.header.size);
  pool.state(index).store(static_cast<uint32_t>(state));
}

TEST(Pool, IsPrivateNamedAtRandomAndRemoved) {
  std::string path;
  {
    auto pool = Pool::create(small());
    ASSERT_TRUE(pool) << pool.error().message;
    path = pool->path();
    struct stat status {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    auto other = Pool::create(small());
    ASSERT_TRUE(other);
    EXPECT_NE(other->path(), path);
    // Backed by memory before anybody writes: no SIGBUS on a full disk later.
    EXPECT_GE(static_cast<uint64_t>(status.st_blocks) * 512, 1u << 20);
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST(Pool, GrowsToItsMaximumOnly) {
  auto pool = Pool::create(small());
  ASSERT_TRUE(pool);
  EXPECT_EQ(pool->header().populated_blocks.load(), 16u);
  EXPECT_TRUE(pool->grow(40));
  EXPECT_TRUE(pool->grow(40));
  EXPECT_EQ(pool->header().populated_blocks.load(), 64u);
  EXPECT_FALSE(pool->grow(1));
}

TEST(Pool, RefusesATooLargeConfiguration) {
  PoolOptions options = small();
  options.config.assign(kConfigBytes, 'x');
  EXPECT_FALSE(Pool::create(options));
}

TEST(Pool, TakesAnotherFolderWhenTheFirstIsTooSmall) {
  char folder[] = "/tmp/tacho-small-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  if (mount("none", folder, "tmpfs", 0, "size=256k") != 0) {
    rmdir(folder);
    GTEST_SKIP() << "mounting a tmpfs needs privileges: " << strerror(errno);
  }
  setenv("TACHO_POOL_DIR", folder, 1);
  auto pool = Pool::create(small());
  ASSERT_TRUE(pool) << pool.error().message;
  EXPECT_NE(pool->path().substr(0, strlen(folder)), folder);
  unsetenv("TACHO_POOL_DIR");
  umount(folder);
  rmdir(folder);
}

TEST(Pool, WorksOnATinyFolderAndSaysWhenItIsFull) {
  char folder[] = "/tmp/tacho-tiny-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  if (mount("none", folder, "tmpfs", 0, "size=1300k") != 0) {
    rmdir(folder);
    GTEST_SKIP() << "mounting a tmpfs needs privileges: " << strerror(errno);
  }
  setenv("TACHO_POOL_DIR", folder, 1);
  {
    test::PoolRun run({.initial_bytes = 1 << 20, .max_bytes = 64 << 20});
    unsetenv("TACHO_POOL_DIR");
    EXPECT_EQ(run.pool().path().substr(0, strlen(folder)), folder);
    while (run.pool().grow(64)) {
    }
    EXPECT_TRUE(run.pool().out_of_space());
    EXPECT_EQ(run.run({test::build_folder() + "/tests/tape_target", "threads", "8", "20000"}), 0);
    // A pop whose push was dropped is not written.
    EXPECT_EQ(2 * run.rows().count(event::RecordKind::kPush) + run.dropped(),
              8 * 20000u + run.rows().count(event::RecordKind::kPush) +
                  (run.rows().count(event::RecordKind::kPush) - run.rows().count(event::RecordKind::kPop)));
  }
  umount(folder);
  rmdir(folder);
}

TEST(Pool, SaysWhichFoldersFailed) {
  const pid_t child = fork();
  if (child == 0) {  // no file may grow: every candidate fails
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{0, 0};
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto pool = Pool::create(small());
    const bool right =
        !pool && pool.error().message.find("TACHO_POOL_DIR") != std::string::npos &&
        pool.error().message.find("/dev/shm: files may have 0 bytes at most (ulimit -f") != std::string::npos;
    _exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Drainer, HandsOnDefinitionsFirstAndBlocksInOrder) {
  auto pool = Pool::create(small());
  ASSERT_TRUE(pool);
  put_block(*pool, 0, BlockKind::kRecords, BlockState::kFull, "second", 20);
  put_block(*pool, 1, BlockKind::kRecords, BlockState::kFull, "first", 10);
  put_block(*pool, 2, BlockKind::kDefinitions, BlockState::kOpen, "definition", 30);
  Drainer drainer(*pool);
  std::vector<std::string> texts;
  const auto collect = [&](const Piece& piece) {
    texts.emplace_back(reinterpret_cast<const char*>(piece.bytes.data()) + sizeof(event::MarkRecord));
  };
  drainer.pass(collect, false);
  EXPECT_EQ(texts, (std::vector<std::string>{"definition", "first", "second"}));
  EXPECT_EQ(pool->state(0).load(), static_cast<uint32_t>(BlockState::kFree));
  EXPECT_EQ(pool->state(2).load(), static_cast<uint32_t>(BlockState::kOpen));
  EXPECT_EQ(drainer.pass(collect, false), 0u);  // nothing twice
}

TEST(Drainer, BlocksThatAreOpenedDuringAPassWaitForTheNext) {
  auto pool = Pool::create(small());
  ASSERT_TRUE(pool);
  put_block(*pool, 0, BlockKind::kRecords, BlockState::kFull, "before", 10);
  put_block(*pool, 1, BlockKind::kRecords, BlockState::kOpen, "during", 11);
  pool->header().sequence = 11;  // as a pass reads it just before the second is opened
  Drainer drainer(*pool);
  std::vector<std::string> texts;
  const auto collect = [&](const Piece& piece) {
    texts.emplace_back(reinterpret_cast<const char*>(piece.bytes.data()) + sizeof(event::MarkRecord));
  };
  drainer.pass(collect, false);
  EXPECT_EQ(texts, (std::vector<std::string>{"before"}));
  pool->header().sequence = 12;
  drainer.pass(collect, false);
  EXPECT_EQ(texts, (std::vector<std::string>{"before", "during"}));
  // The last pass leaves nothing.
  put_block(*pool, 2, BlockKind::kRecords, BlockState::kFull, "at the end", 12);
  pool->header().sequence = 12;
  drainer.pass(collect, true);
  EXPECT_EQ(texts.back(), "at the end");
}

TEST(Drainer, ABlockThatItsWriterDiedTakingHoldsNothing) {
  auto pool = Pool::create(small());
  ASSERT_TRUE(pool);
  // Killed after it took the block and before it described it: its contents are nobody's, or an earlier user's.
  pool->state(0).store(static_cast<uint32_t>(BlockState::kOpen));
  put_block(*pool, 1, BlockKind::kCupti, BlockState::kFull, "of a driver", 1);
  Drainer drainer(*pool);
  std::vector<BlockKind> kinds;
  const auto collect = [&](const Piece& piece) { kinds.push_back(piece.block->kind); };
  drainer.pass(collect, false);
  EXPECT_EQ(kinds, (std::vector<BlockKind>{BlockKind::kCupti}));
  pool->state(1).store(static_cast<uint32_t>(BlockState::kOpen));
  drainer.pass(collect, true);
  EXPECT_EQ(kinds, (std::vector<BlockKind>{BlockKind::kCupti}));
  for (uint32_t i = 0; i < 2; ++i) EXPECT_EQ(pool->state(i).load(), static_cast<uint32_t>(BlockState::kFree)) << i;
}

TEST(Drainer, FreesWhatDeadThreadsLeftOpen) {
  test::PoolRun run;
  EXPECT_EQ(run.run({test::build_folder() + "/tests/tape_target", "pairs", "3"}), 0);
  for (uint32_t i = 0; i < run.pool().header().populated_blocks.load(); ++i)
    EXPECT_EQ(run.pool().state(i).load(), static_cast<uint32_t>(BlockState::kFree)) << i;
}

TEST(Drainer, ShortProcessesDoNotEatThePool) {
  // 200 processes, each with a block for records and one for definitions, in a pool of 64 blocks that is never final.
  test::PoolRun run({.initial_bytes = 4 << 20, .max_bytes = 4 << 20});
  for (int i = 0; i < 200; ++i) {
    int status = -1;
    const pid_t child = run.spawn({test::build_folder() + "/tests/tape_target", "pairs", "1"});
    ASSERT_EQ(waitpid(child, &status, 0), child);
    run.drain(false);
  }
  run.drain(true);
  EXPECT_EQ(run.dropped(), 0u);
  EXPECT_EQ(run.rows().count(event::RecordKind::kPush), 200u);
}

TEST(Drainer, SharedBlockWaitsForAWriterInTheMiddle) {
  auto pool = Pool::create(small());
  ASSERT_TRUE(pool);
  put_block(*pool, 0, BlockKind::kShared, BlockState::kFull, "whole", 1);
  auto* const bytes = reinterpret_cast<std::byte*>(&pool->block(0)) + sizeof(BlockHeader);
  memset(bytes + 24, 0, kBlockPayload - 24);
  pool->block(0).committed.store(kBlockPayload);
  Drainer drainer(*pool);
  size_t pieces = 0;
  const auto count = [&](const Piece&) { ++pieces; };
  for (int i = 0; i < 200; ++i) drainer.pass(count, false);
  EXPECT_EQ(pieces, 1u);
  EXPECT_EQ(pool->state(0).load(),
            static_cast<uint32_t>(BlockState::kFull));  // a record is still being written
  const event::RecordHeader pad{event::RecordKind::kPad, 0, static_cast<uint16_t>(kBlockPayload - 24), 0};
  memcpy(bytes + 24, &pad, sizeof pad);
  drainer.pass(count, false);
  EXPECT_EQ(pool->state(0).load(), static_cast<uint32_t>(BlockState::kFree));
}

TEST(Recovery, ReadsAPoolWhoseTachoDied) {
  auto pool = Pool::create(small());
  ASSERT_TRUE(pool);
  put_block(*pool, 0, BlockKind::kDefinitions, BlockState::kKept, "kept", 1);
  pool->block(0).drained = pool->block(0).committed;
  put_block(*pool, 1, BlockKind::kRecords, BlockState::kOpen, "open", 2);
  auto opened = Pool::open(pool->path());
  ASSERT_TRUE(opened) << opened.error().message;
  Drainer drainer(*opened);
  drainer.rewind_definitions();
  std::vector<std::string> texts;
  drainer.pass(
      [&](const Piece& piece) {
        texts.emplace_back(reinterpret_cast<const char*>(piece.bytes.data()) + sizeof(event::MarkRecord));
      },
      true);
  EXPECT_EQ(texts, (std::vector<std::string>{"kept", "open"}));
  // The file itself is untouched: recovery can be repeated.
  EXPECT_EQ(pool->state(0).load(), static_cast<uint32_t>(BlockState::kKept));
  EXPECT_EQ(pool->state(1).load(), static_cast<uint32_t>(BlockState::kOpen));
}

class HostilePool : public testing::Test {
 protected:
  void SetUp() override {
    auto pool = Pool::create(small());
    ASSERT_TRUE(pool);
    put_block(*pool, 0, BlockKind::kDefinitions, BlockState::kFull, "definition", 1);
    put_block(*pool, 1, BlockKind::kRecords, BlockState::kOpen, "record", 2);
    put_block(*pool, 2, BlockKind::kShared, BlockState::kFull, "shared", 3);
    std::ifstream file(pool->path(), std::ios::binary);
    good_.assign(std::istreambuf_iterator<char>(file), {});
    path_ = testing::TempDir() + "hostile.pool";
  }
  void TearDown() override { unlink(path_.c_str()); }
  Result<Pool> open(std::string_view bytes) {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return Pool::open(path_);
  }
  // Drains whatever can be opened; touches every byte that is handed on.
  void use(Result<Pool>& pool) {
    if (!pool) {
      EXPECT_NE(pool.error().message.find(path_), std::string::npos) << pool.error().message;
      return;
    }
    Drainer drainer(*pool);
    drainer.rewind_definitions();
    uint64_t sum = 0;
    size_t handed_on = 0;
    drainer.pass(
        [&](const Piece& piece) {
          for (const std::byte byte : piece.bytes) sum += static_cast<uint8_t>(byte);
          handed_on += piece.bytes.size();
        },
        true);
    EXPECT_LE(sum, handed_on * 255);
    EXPECT_LE(handed_on, good_.size()) << "no block is handed on twice";
  }
  std::string good_;
  std::string path_;
};

TEST_F(HostilePool, TruncatedAnywhereIsOneSentence) {
  for (const size_t size :
       {0ul, 1ul, 100ul, kHeaderBytes - 1, kHeaderBytes, kHeaderBytes + 8192, good_.size() / 2, good_.size() - 1}) {
    auto pool = open(std::string_view(good_).substr(0, size));
    EXPECT_FALSE(pool) << size;
    use(pool);
  }
}

TEST_F(HostilePool, OtherFilesAreOneSentence) {
  EXPECT_FALSE(Pool::open("/etc/passwd"));
  EXPECT_FALSE(Pool::open("/nonexistent/x.pool"));
  EXPECT_FALSE(Pool::open("/tmp"));
  EXPECT_FALSE(Pool::open("/dev/zero"));
  std::string other = good_;
  other[8] = static_cast<char>(other[8] + 1);  // another schema
  auto pool = open(other);
  ASSERT_FALSE(pool);
  EXPECT_NE(pool.error().message.find("version"), std::string::npos);
}

TEST_F(HostilePool, FlippedBytesHandOnNoMoreThanTheFileHas) {
  std::mt19937_64 random(20261120);
  const size_t data = kHeaderBytes;
  for (int round = 0; round < 300; ++round) {
    std::string bad = good_;
    for (int flips = 0; flips < 20; ++flips) {
      // Headers, states and block headers are where it hurts.
      const size_t places[] = {random() % 256, data + random() % 256,
                               reinterpret_cast<const PoolHeader*>(good_.data())->data_offset +
                                   kBlockSize * (random() % 4) + random() % 128};
      bad[places[random() % 3]] = static_cast<char>(random());
    }
    memcpy(bad.data(), good_.data(),
           24);  // magic, schema and version stay: else nothing behind them is reached
    auto pool = open(bad);
    use(pool);
  }
}

}  // namespace
}  // namespace tacho::tape
