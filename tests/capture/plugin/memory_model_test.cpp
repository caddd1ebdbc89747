// The virtual GPU's memory: sectors, lines and bank cycles of single accesses, worked out by hand.
#include "capture/plugin/oclgrind/memory_model.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace tacho::plugin {
namespace {

WaveAccess access(uint32_t size, const std::function<uint64_t(unsigned)>& address, uint32_t mask = ~0u) {
  WaveAccess result;
  result.mask = mask;
  result.size = size;
  for (unsigned lane = 0; lane < kWaveSize; ++lane) result.address[lane] = address(lane);
  return result;
}

GlobalCost cost_of(const WaveAccess& one) {
  std::set<uint64_t> lines;
  const GlobalCost cost = global_cost(one, [&](uint64_t line) { EXPECT_TRUE(lines.insert(line).second); });
  EXPECT_EQ(lines.size(), cost.lines);
  return cost;
}

TEST(Global, Contiguous) {
  const GlobalCost cost = cost_of(access(4, [](unsigned lane) { return lane * 4; }));
  EXPECT_EQ(cost.bytes, 128u);
  EXPECT_EQ(cost.used_bytes, 128u);
  EXPECT_EQ(cost.sectors, 4u);
  EXPECT_EQ(cost.lines, 1u);
  EXPECT_EQ(cost.conflicts, 0u);
}
TEST(Global, ContiguousBackwardsIsTheSame) {
  const GlobalCost cost = cost_of(access(4, [](unsigned lane) { return (31 - lane) * 4; }));
  EXPECT_EQ(cost.sectors, 4u);
  EXPECT_EQ(cost.used_bytes, 128u);
}
TEST(Global, Unaligned) {
  const GlobalCost cost = cost_of(access(4, [](unsigned lane) { return 16 + lane * 4; }));
  EXPECT_EQ(cost.sectors, 5u);
  EXPECT_EQ(cost.lines, 2u);
}
TEST(Global, AcrossASector) {
  const GlobalCost cost = cost_of(access(
      8, [](unsigned) { return 28; }, 1));
  EXPECT_EQ(cost.sectors, 2u);
  EXPECT_EQ(cost.lines, 1u);
  EXPECT_EQ(cost.used_bytes, 8u);
}
TEST(Global, Broadcast) {
  const GlobalCost cost = cost_of(access(4, [](unsigned) { return 4096; }));
  EXPECT_EQ(cost.bytes, 128u);
  EXPECT_EQ(cost.used_bytes, 4u);
  EXPECT_EQ(cost.sectors, 1u);
  EXPECT_EQ(cost.conflicts, 31u);
}
TEST(Global, OverlappingBytesCountOnce) {
  const GlobalCost cost = cost_of(access(8, [](unsigned lane) { return lane * 4; }));
  EXPECT_EQ(cost.bytes, 256u);
  EXPECT_EQ(cost.used_bytes, 132u);
  EXPECT_EQ(cost.sectors, 5u);
}
TEST(Global, Nobody) {
  EXPECT_EQ(cost_of(access(
                        4, [](unsigned lane) { return lane; }, 0))
                .sectors,
            0u);
  EXPECT_EQ(cost_of(access(0, [](unsigned lane) { return lane; })).sectors, 0u);
}

TEST(Local, EveryStride) {
  // Of a stride of s words gcd(s, 32) words fall into each bank that is used.
  for (const auto& [stride, cycles] : {std::pair{1u, 1u},
                                       {2u, 2u},
                                       {3u, 1u},
                                       {4u, 4u},
                                       {6u, 2u},
                                       {8u, 8u},
                                       {16u, 16u},
                                       {32u, 32u},
                                       {33u, 1u},
                                       {64u, 32u}}) {
    const LocalCost cost = local_cost(access(4, [stride = stride](unsigned lane) { return lane * stride * 4; }), false);
    EXPECT_EQ(cost.cycles, cycles) << stride;
    EXPECT_EQ(cost.conflicts, cycles - 1) << stride;
  }
}
TEST(Local, BroadcastIsFree) {
  EXPECT_EQ(local_cost(access(4, [](unsigned) { return 64; }), false).cycles, 1u);
  EXPECT_EQ(local_cost(access(1, [](unsigned lane) { return lane; }), false).cycles, 1u);
}
TEST(Local, AtomicsOnOneWordAreSerial) {
  const LocalCost cost = local_cost(access(4, [](unsigned) { return 64; }), true);
  EXPECT_EQ(cost.cycles, 32u);
  EXPECT_EQ(cost.conflicts, 31u);
}
TEST(Local, WideAccessesComeInPhases) {
  EXPECT_EQ(local_cost(access(8, [](unsigned lane) { return lane * 8; }), false).cycles, 2u);
  EXPECT_EQ(local_cost(access(16, [](unsigned lane) { return lane * 16; }), false).cycles, 4u);
  EXPECT_EQ(local_cost(access(16, [](unsigned lane) { return lane * 16; }), false).conflicts, 0u);
  // 64 bytes a work-item: two of them fill the banks.
  EXPECT_EQ(local_cost(access(64, [](unsigned lane) { return lane * 64; }), false).cycles, 16u);
  EXPECT_EQ(local_cost(access(8, [](unsigned lane) { return lane * 16; }), false).conflicts, 2u);
}
TEST(Local, OnlyActiveWorkItemsCount) {
  const LocalCost cost = local_cost(access(
                                        4, [](unsigned lane) { return lane * 128; }, 0x3),
                                    false);
  EXPECT_EQ(cost.cycles, 2u);
  EXPECT_EQ(cost.bytes, 8u);
  EXPECT_EQ(local_cost(access(
                           4, [](unsigned lane) { return lane; }, 0),
                       false)
                .cycles,
            0u);
}
TEST(Constant, Words) {
  EXPECT_EQ(distinct_words(access(4, [](unsigned) { return 8; })), 1u);
  EXPECT_EQ(distinct_words(access(4, [](unsigned lane) { return lane * 4; })), 32u);
  EXPECT_EQ(distinct_words(access(1, [](unsigned lane) { return lane; })), 8u);
}

}  // namespace
}  // namespace tacho::plugin
