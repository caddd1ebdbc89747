// Sums, peaks and owners of memory: what was there before, sums that an allocator tells, levels that do not add up,
// uses.
#include "analysis/memory/memory.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "analysis/memory/answers.h"
#include "base/format.h"
#include "support/memory_maker.h"
#include "trace/rows.h"

namespace tacho::analysis {
namespace {

MemoryUse use_of(const MemoryPlace& place, int64_t bytes) {
  for (const MemoryOwner& owner : place.owners)
    if (owner.all.bytes == bytes) return owner.use;
  ADD_FAILURE() << "no owner of " << bytes;
  return MemoryUse::kOther;
}

TEST(Memory, WhatWasThereBeforeIsKnownByItsFrees) {
  MemoryMaker made;
  made.allocate(10, 1, 100);
  made.free(20, 99, 1000);
  made.allocate(30, 2, 50);
  made.free(40, 1);
  const MemoryReport report = made.report();
  ASSERT_EQ(report.places.size(), 1u);
  const MemoryPlace& place = report.places[0];
  EXPECT_EQ(place.before, 1000);
  EXPECT_EQ(place.peak, 1100);
  EXPECT_EQ(place.peak_time, 10);
  EXPECT_EQ(place.end, 50);
  EXPECT_EQ(place.before_frees, 1);
}

TEST(Memory, TheAllocatorsOwnSumCounts) {
  MemoryMaker made;
  made.allocate(10, 1, 100, 5100, 8000);
  made.allocate(20, 2, 200, 5300, 9000);
  made.free(30, 1, 100, 5200, 9000);
  made.free(40, 77, 300, 4900, 9000);  // there before
  const MemoryPlace place = made.report().places[0];
  EXPECT_EQ(place.before, 5000);
  EXPECT_EQ(place.peak, 5300);
  EXPECT_EQ(place.end, 4900);
  EXPECT_EQ(place.reserved_at_peak, 9000);
  EXPECT_EQ(place.gaps, 0);
}

TEST(Memory, SumsThatDoNotFollowAreGaps) {
  MemoryMaker made;
  made.allocate(10, 1, 100, 100);
  made.allocate(20, 2, 100, 900);  // an event of 700 bytes is missing
  made.free(30, 2, 100, 800);
  const MemoryReport report = made.report();
  const MemoryPlace& place = report.places[0];
  EXPECT_EQ(place.gaps, 1);
  EXPECT_EQ(place.peak, 900);
  EXPECT_EQ(place.end, 800);
  EXPECT_EQ(memory_doubts(place, report).size(), 1u);
}

TEST(Memory, LostRecordsAreSaid) {
  const auto read = [](int64_t lost, event::LossReason reason) {
    MemoryMaker made;
    for (int64_t i = 0; i < 80; ++i) made.allocate(10 + i, 1 + i, 1 << 20);  // in each part of the recording
    if (lost > 0) made.writer->lose(made.process, event::Table::kAllocation, reason, lost);
    return made.report();
  };
  const MemoryReport whole = read(0, event::LossReason::kPoolFull), part = read(7, event::LossReason::kPoolFull);
  EXPECT_EQ(whole.lost, 0);
  EXPECT_EQ(memory_findings(whole.places[0], whole).size(), 1u) << "it grows";
  EXPECT_TRUE(memory_doubts(whole.places[0], whole).empty());
  EXPECT_EQ(part.lost, 7);
  EXPECT_TRUE(memory_findings(part.places[0], part).empty()) << "the frees may be among what is lost";
  ASSERT_EQ(memory_doubts(part.places[0], part).size(), 1u);
  EXPECT_EQ(memory_doubts(part.places[0], part)[0].find("The recording lost 7 allocations and frees"), 0u);
  // What the user left out is no loss.
  EXPECT_EQ(read(7, event::LossReason::kFiltered).lost, 0);
}

TEST(Memory, WhatAnAllocatorTookComesLastAndHasNoCategories) {
  MemoryMaker made;
  made.add(5, AllocationOperation::kAllocate, 4096, 64 << 20, AllocationLevel::kRuntime);
  made.allocate(10, 4096, 1 << 20);
  made.add(20, AllocationOperation::kOutOfMemory, 0, kUnknown, AllocationLevel::kRuntime);
  const MemoryReport report = made.report();
  ASSERT_EQ(report.places.size(), 2u);
  EXPECT_EQ(report.places[0].name, "GPU 0: Fast, tensors");
  EXPECT_EQ(report.places[1].name, "GPU 0: Fast, taken from the driver");
  EXPECT_TRUE(report.places[1].beneath && !report.places[0].beneath);
  ASSERT_EQ(report.places[1].owners.size(), 1u);
  EXPECT_EQ(to_string(report.places[1].owners[0].use), "");
  EXPECT_EQ(report.places[1].failures, 1);
  // That it never frees is what it is for.
  for (const std::string& sentence : memory_findings(report.places[1], report))
    EXPECT_EQ(sentence, "Memory ran out 1 time.");
}

TEST(Memory, SegmentsAreTheReserveOfBlocksAndNoMemoryBeside) {
  MemoryMaker made;
  made.add(5, AllocationOperation::kAllocate, 4096, 1000, AllocationLevel::kSegment);
  made.allocate(10, 4096, 400);
  made.free(20, 4096);
  made.add(30, AllocationOperation::kFree, 4096, 1000, AllocationLevel::kSegment);
  const MemoryReport report = made.report();
  ASSERT_EQ(report.places.size(), 1u);
  EXPECT_EQ(report.places[0].peak, 400);
  EXPECT_EQ(report.places[0].reserved_at_peak, 1000);
  EXPECT_EQ(report.places[0].reserved_end, 0);
}

TEST(Memory, CallsOfTheRuntimeAreMemoryOfTheirOwn) {
  MemoryMaker made;
  made.add(5, AllocationOperation::kAllocate, 4096, 1000, AllocationLevel::kRuntime);
  made.allocate(10, 4096, 400);
  const MemoryReport report = made.report();
  ASSERT_EQ(report.places.size(), 2u);
  EXPECT_EQ(report.places[0].name, "GPU 0: Fast, tensors");
  EXPECT_EQ(report.places[0].peak, 400);
  EXPECT_EQ(report.places[1].peak, 1000);
}

TEST(Memory, AddressesUsedAgainAndSizesThatAreUnknown) {
  MemoryMaker made;
  made.allocate(10, 1, 100);
  made.allocate(20, 1, 300);
  made.allocate(30, 2, kUnknown);
  made.free(40, 3, kUnknown);
  const MemoryReport report = made.report();
  const MemoryPlace& place = report.places[0];
  EXPECT_EQ(place.peak, 300);
  EXPECT_EQ(place.reused, 1);
  EXPECT_EQ(place.unsized, 1);
  EXPECT_EQ(place.unsized_frees, 1);
  EXPECT_EQ(memory_doubts(place, report).size(), 3u);
}

TEST(Memory, OutOfMemoryChangesNoSum) {
  MemoryMaker made;
  made.allocate(10, 1, 100);
  made.add(20, AllocationOperation::kOutOfMemory, 0, kUnknown);
  const MemoryPlace place = made.report().places[0];
  EXPECT_EQ(place.failures, 1);
  EXPECT_EQ(place.peak, 100);
}

TEST(Memory, UsesByWhenMemoryIsAllocatedAndFreed) {
  MemoryMaker made;
  made.range(100, 200, "nn.Module.Net.forward", "module Net @ /u/train.py:3");
  made.range(110, 120, "torch.nn.functional.linear", "function @ /u/net.py:9");
  made.allocate(111, 1, 10);
  made.free(115, 1);
  made.allocate(112, 2, 20);
  made.range(300, 400, "torch.autograd.backward", "call @ /u/train.py:4");
  made.range(310, 320, "LinearBackward", "backward");
  made.range(330, 340, "LinearBackward", "backward");
  made.allocate(311, 3, 30);
  made.free(331, 2);
  made.allocate(312, 4, 40);
  made.free(332, 4);
  made.range(500, 600, "Optimizer.step#SGD.step", "optimizer @ /u/train.py:5");
  made.allocate(510, 5, 50);
  const MemoryReport report = made.report();
  const MemoryPlace& place = report.places[0];
  EXPECT_EQ(use_of(place, 10), MemoryUse::kTemporary);
  EXPECT_EQ(use_of(place, 20), MemoryUse::kActivation);
  EXPECT_EQ(use_of(place, 30), MemoryUse::kGradient);
  EXPECT_EQ(use_of(place, 40), MemoryUse::kTemporary);
  EXPECT_EQ(use_of(place, 50), MemoryUse::kOptimizer);
  for (const MemoryOwner& owner : place.owners)
    if (owner.all.bytes == 20) {
      EXPECT_EQ(owner.line, "net.py:9");
      EXPECT_EQ(owner.module, "Net");
      EXPECT_EQ(owner.operation, "torch.nn.functional.linear");
    }
}

TEST(Memory, MarksSayWhatMemoryIsFor) {
  MemoryMaker made;
  made.allocate(10, 4096, 100);
  made.writer->add(row::Marker{.track = made.track,
                               .start = 20,
                               .duration = 0,
                               .dim = made.writer->dimension(row::Label{.name = made.writer->string("parameter"),
                                                                        .kind = event::MarkerKind::kMark,
                                                                        .domain = made.writer->string("torch"),
                                                                        .category = made.writer->string("memory"),
                                                                        .payload = event::PayloadKind::kInteger}),
                               .payload = 4096});
  EXPECT_EQ(use_of(made.report().places[0], 100), MemoryUse::kParameter);
}

TEST(Memory, MomentsSeeWhatIsLiveThen) {
  MemoryMaker made;
  made.allocate(10, 1, 100);
  made.allocate(20, 2, 200);
  made.free(30, 1);
  made.allocate(40, 3, 1000);
  const MemoryReport report = made.report({.buckets = 8, .moments = {15, 35}});
  ASSERT_EQ(report.places[0].owners.size(), 1u);
  const MemoryOwner& owner = report.places[0].owners[0];
  EXPECT_EQ(owner.live[0].bytes, 1200);  // the peak
  EXPECT_EQ(owner.live[1].bytes, 1200);  // the end
  EXPECT_EQ(owner.live[2].bytes, 100);
  EXPECT_EQ(owner.live[3].bytes, 200);
}

TEST(Memory, TracesWithoutAllocationsHaveNoPlace) {
  MemoryMaker made;
  EXPECT_TRUE(made.report().places.empty());
}

// Random allocations and frees against a plain count of what is live behind every row.
TEST(Memory, OwnersAddUpToTheCurve) {
  constexpr size_t kBuckets = 16, kOwners = 5;
  std::mt19937 random(7);
  const auto below = [&](int64_t end) { return std::uniform_int_distribution<int64_t>(0, end - 1)(random); };
  for (int round = 0; round < 20; ++round) {
    MemoryMaker made;
    struct Block {
      int64_t bytes;
      size_t owner;
    };
    std::map<int64_t, Block> live;
    // Behind each row: its time, and what each owner has.
    std::vector<std::pair<int64_t, std::array<int64_t, kOwners>>> behind;
    std::array<int64_t, kOwners> held{};
    int64_t time = 100;
    const int64_t rows = 3 + below(300);
    for (int64_t i = 0; i < rows; ++i) {
      time += 1 + below(i % 40 == 0 ? 500 : 20);
      const int64_t address = 1 + below(40);
      const auto found = live.find(address);
      if (found != live.end() && below(4) != 0) {
        held[found->second.owner] -= found->second.bytes;
        live.erase(found);
        made.free(time, address);
      } else {
        // Sometimes an address that was never freed.
        if (found != live.end()) held[found->second.owner] -= found->second.bytes;
        const Block block{1 + below(1000), static_cast<size_t>(below(kOwners))};
        live[address] = block;
        held[block.owner] += block.bytes;
        made.add(time, AllocationOperation::kAllocate, address, block.bytes, AllocationLevel::kBlock, kUnknown,
                 kUnknown, fmt::format("owner {}", block.owner));
      }
      behind.emplace_back(time, held);
    }
    const MemoryReport report = made.report({.buckets = kBuckets, .moments = {}, .owner_curves = true});
    ASSERT_EQ(report.places.size(), 1u);
    const MemoryPlace& place = report.places[0];
    const std::vector<MemoryArea> areas = memory_areas(place, MemoryBy::kOperator, kOwners);
    for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
      const double from = static_cast<double>(report.from), wide = static_cast<double>(report.to - report.from) + 1;
      // The state at the bucket's begin, and each within it: the first with the most counts.
      std::array<int64_t, kOwners> most{};
      const auto sum = [](const auto& of) { return std::accumulate(of.begin(), of.end(), int64_t{0}); };
      for (const auto& [at, owners] : behind) {
        const auto in = static_cast<size_t>((static_cast<double>(at) - from) / wide * kBuckets);
        if (in > bucket) break;
        if (in < bucket || sum(owners) > sum(most)) most = owners;
      }
      EXPECT_EQ(place.curve[bucket].live, sum(most)) << round << " " << bucket;
      for (size_t owner = 0; owner < kOwners; ++owner) {
        int64_t shown = 0;
        for (const MemoryArea& area : areas)
          if (area.name == fmt::format("owner {}", owner)) shown = area.live[bucket];
        EXPECT_EQ(shown, most[owner]) << round << " " << bucket << " owner " << owner;
      }
    }
    // With fewer of them, the rest stand together.
    int64_t all = 0, some = 0;
    for (const MemoryArea& area : areas) all += std::accumulate(area.live.begin(), area.live.end(), int64_t{0});
    for (const MemoryArea& area : memory_areas(place, MemoryBy::kOperator, 2))
      some += std::accumulate(area.live.begin(), area.live.end(), int64_t{0});
    EXPECT_EQ(all, some);
  }
}

TEST(Memory, AreasTellWhatWasThereBefore) {
  MemoryMaker made;
  made.allocate(10, 1, 100, 5100);
  made.allocate(20, 2, 200, 5300);
  made.free(30, 1, 100, 5200);
  const MemoryPlace place = made.report({.buckets = 2, .moments = {}, .owner_curves = true}).places[0];
  const std::vector<MemoryArea> areas = memory_areas(place, MemoryBy::kOperator, 4);
  ASSERT_EQ(areas.size(), 2u);
  EXPECT_EQ(areas[0].live, (std::vector<int64_t>{300, 300}));
  EXPECT_EQ(areas[1].name, "(before the recording)");
  EXPECT_TRUE(areas[1].names.empty());
  EXPECT_EQ(areas[1].live, (std::vector<int64_t>{5000, 5000}));
}

}  // namespace
}  // namespace tacho::analysis
