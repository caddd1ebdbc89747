// Which rank has not called what the others have.
#include "watch/recorder/rank_progress.h"

#include <gtest/gtest.h>

namespace tacho::watch {
namespace {

constexpr int64_t kMs = 1'000'000;

class Ranks {
 public:
  void join(int rank, int ranks, uint64_t communicator = 0x5a) { add(rank, ranks, communicator, "", 0, 0); }
  void call(int rank, const char* operation, uint64_t number, int64_t at, uint64_t communicator = 0x5a) {
    add(rank, 0, communicator, operation, number, at);
  }
  std::string late(int64_t now, int64_t ns) {
    return progress_.late(now, ns, [](uint16_t process) { return "process " + std::to_string(process); }).value_or("");
  }
  std::vector<std::string> all(int64_t now) {
    return progress_.all(now, [](uint16_t process) { return "process " + std::to_string(process); });
  }

 private:
  void add(int rank, int ranks, uint64_t communicator, const char* operation, uint64_t number, int64_t at) {
    KeptRecord record;
    record.object = communicator;
    record.amount = number;
    record.context = static_cast<uint64_t>(ranks) << 32 | static_cast<uint32_t>(rank);
    record.process = static_cast<uint16_t>(100 + rank);
    progress_.observe(record, operation, at);
  }
  RankProgress progress_;
};

TEST(RankProgress, NamesTheRankThatIsMissingOnce) {
  Ranks ranks;
  for (int rank = 0; rank < 3; ++rank) ranks.join(rank, 3);
  for (uint64_t number = 0; number < 5; ++number)
    for (int rank = 0; rank < 3; ++rank) ranks.call(rank, "AllReduce", number, static_cast<int64_t>(number) * kMs);
  EXPECT_EQ(ranks.late(1000 * kMs, kMs), "");
  ranks.call(0, "AllReduce", 5, 2000 * kMs);
  ranks.call(0, "AllReduce", 6, 2001 * kMs);
  ranks.call(2, "AllReduce", 5, 2050 * kMs);
  EXPECT_EQ(ranks.late(2099 * kMs, 100 * kMs), "");
  EXPECT_EQ(ranks.late(2100 * kMs, 100 * kMs),
            "AllReduce 5 of communicator 5a was called by ranks 0, 2 0.100 s ago, and not yet by rank 1 (process 101)");
  EXPECT_EQ(ranks.late(2200 * kMs, 100 * kMs), "");  // once
  EXPECT_EQ(ranks.all(2200 * kMs).size(), 1u);
  ranks.call(1, "AllReduce", 5, 2300 * kMs);
  // Rank 0 is further, and both others are behind now.
  EXPECT_EQ(ranks.late(2301 * kMs, 100 * kMs),
            "AllReduce 6 of communicator 5a was called by rank 0 0.300 s ago, and not yet by ranks 1 (process 101), 2 "
            "(process 102)");
  ranks.call(1, "AllReduce", 6, 2400 * kMs);
  ranks.call(2, "AllReduce", 6, 2400 * kMs);
  EXPECT_TRUE(ranks.all(9000 * kMs).empty());
}

TEST(RankProgress, KeepsCommunicatorsAndOperationsApart) {
  Ranks ranks;
  ranks.join(0, 2);
  ranks.join(1, 2);
  ranks.join(0, 4, 0xb);
  ranks.join(1, 4, 0xb);
  ranks.call(0, "AllReduce", 0, kMs);
  ranks.call(1, "AllGather", 0, kMs);  // they wait for each other
  EXPECT_EQ(ranks.all(2 * kMs).size(), 2u);
  ranks.call(1, "AllReduce", 0, 3 * kMs, 0xb);
  const std::vector<std::string> all = ranks.all(4 * kMs);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0],
            "AllReduce 0 of communicator b was called by rank 1 0.001 s ago, and not yet by rank 0 (process 100); 2 of "
            "its 4 ranks are not watched here");
}

TEST(RankProgress, SurvivesAnything) {
  Ranks ranks;
  for (int i = 0; i < 1000; ++i) {
    ranks.call(-i, "AllReduce", UINT64_MAX, 0);
    ranks.call(i, "AllReduce", UINT64_MAX - 1, 0);
  }
  EXPECT_LE(ranks.all(1).size(), 1u);
  ranks.call(0, "AllReduce", UINT64_MAX, 0);
  ranks.late(INT64_MAX, 0);
}

}  // namespace
}  // namespace tacho::watch
