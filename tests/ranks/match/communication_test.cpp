// Names of collectives, messages and bandwidths, periods.
#include "ranks/match/communication.h"

#include <gtest/gtest.h>

#include "ranks/read/load.h"
#include "ranks/read/rank_pass.h"
#include "vendor/collective_kernels.h"

namespace tacho::ranks {
namespace {

TEST(Communication, KernelsOfBothNamings) {
  const struct {
    const char* name;
    bool collective;
    Operation operation;
  } kCases[] = {
      {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", true, Operation::kAllReduce},
      {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", true, Operation::kAllReduce},
      {"ncclKernel_ReduceScatter_RING_SIMPLE_Sum_half(ncclDevComm*)", true, Operation::kReduceScatter},
      {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", true, Operation::kAllGather},
      {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", true, Operation::kSendReceive},
      {"ncclDevKernel_Broadcast_RING_LL(...)", true, Operation::kBroadcast},
      {"ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_f32", true, Operation::kAllReduce},
      {"ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", true, Operation::kUnknown},
      {"rccl_main_kernel", true, Operation::kUnknown},
      // NCCL before 2.10.
      {"ncclAllReduceRingLLKernel_sum_f32(ncclColl)", true, Operation::kAllReduce},
      {"_Z33ncclAllGatherRingLLKernel_copy_i88ncclColl", true, Operation::kAllGather},
      {"ncclSendRecvKernel_copy_i8(ncclColl)", true, Operation::kSendReceive},
      {"all_reduce_of_nccl_style(float*)", false, Operation::kAllReduce},
      {"_Z", false, Operation::kUnknown},
      {"_Z12", false, Operation::kUnknown},
      {"void reduce_kernel<512, 1, ReduceOp<float>>(float*)", false, Operation::kReduce},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(vendor::is_collective_kernel(c.name), c.collective) << c.name;
    EXPECT_EQ(operation_of_kernel(c.name), c.operation) << c.name;
  }
}

TEST(Communication, NamesOfTorchDistributed) {
  EXPECT_EQ(operation_of("allreduce"), Operation::kAllReduce);
  EXPECT_EQ(operation_of("_allgather_base"), Operation::kAllGather);
  EXPECT_EQ(operation_of("reduce_scatter_tensor_coalesced"), Operation::kReduceScatter);
  EXPECT_EQ(operation_of("all_to_allv"), Operation::kAllToAll);
  EXPECT_EQ(operation_of("broadcast"), Operation::kBroadcast);
  EXPECT_EQ(operation_of("scatter"), Operation::kScatter);
  EXPECT_EQ(operation_of("gather"), Operation::kGather);
  EXPECT_EQ(operation_of("reduce"), Operation::kReduce);
  EXPECT_EQ(operation_of("send"), Operation::kSendReceive);
  EXPECT_EQ(operation_of("wait"), Operation::kUnknown);
}

TEST(Communication, ReadsBackWhatTheReaderKeeps) {
  const StatedCollective told = stated_by(
      "Collective name=all_gather, In msg nelems=262144, Out msg nelems=1048576, Group size=4, dtype=Float, Process "
      "Group Name=0, Process Group Description=default_pg, Process Group Ranks=[0, 1, 2, 3]");
  EXPECT_EQ(told.operation, Operation::kAllGather);
  EXPECT_EQ(told.in_elements, 262144);
  EXPECT_EQ(told.out_elements, 1048576);
  EXPECT_EQ(told.element_bytes, 4);
  EXPECT_EQ(told.group_size, 4);
  EXPECT_EQ(told.group, "0");
  EXPECT_EQ(told.description, "default_pg");
  EXPECT_EQ(members_of(told.members), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(message_bytes(told, 4), 4 << 20);
  EXPECT_TRUE(members_of("[0, 1, ..., 1023]").empty());
  EXPECT_TRUE(members_of("").empty());
  for (const char* const odd : {"", "=", "Collective name", "Collective name=[", "In msg nelems=x, ", ", , ="})
    EXPECT_EQ(stated_by(odd).operation, Operation::kUnknown) << odd;
}

TEST(Communication, MessagesOfWhichTheSizeIsUnknownHaveNone) {
  EXPECT_EQ(message_bytes(stated_by("Collective name=allreduce, In msg nelems=8, dtype=Weird"), 4), 0);
  EXPECT_EQ(message_bytes(stated_by("Collective name=allreduce, dtype=Float"), 4), 0);
  EXPECT_EQ(message_bytes(stated_by("Collective name=allreduce, In msg nelems=9223372036854775807, dtype=Float"), 4),
            0);
  // FSDP's all-gather may report the part only.
  EXPECT_EQ(message_bytes(stated_by("Collective name=all_gather, In msg nelems=8, dtype=BFloat16"), 4), 64);
}

// The table of nccl-tests' doc/PERFORMANCE.md.
TEST(Communication, BusFactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Operation::kAllReduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::kAllReduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::kAllGather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::kReduceScatter, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::kAllToAll, 2), 0.5);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::kBroadcast, 8), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::kReduce, 8), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::kBarrier, 8), 0);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::kAllReduce, 1), 0);
}

TEST(Period, TheShortestThatRepeatsWithTheLongestStretchFirst) {
  std::vector<uint64_t> signatures;
  std::vector<int64_t> before;
  for (int i = 2; i < 2 + 13 * 5; ++i) {
    signatures.push_back(i % 13 == 12 ? 7U : i % 13 % 2 == 0 ? 1U : 2U);
    before.push_back(i % 13 == 0 ? 900 : 10);
  }
  const Period period = period_of(signatures, before);
  EXPECT_EQ(period.collectives, 13U);
  EXPECT_EQ(period.first, 11U);
}

TEST(Period, NoneWhereNothingOrEverythingRepeats) {
  EXPECT_EQ(period_of({1, 1, 1, 1, 1, 1, 1, 1}, std::vector<int64_t>(8, 5)).collectives, 0U);
  EXPECT_EQ(period_of({1, 2, 3, 4, 5, 6, 7, 8}, std::vector<int64_t>(8, 5)).collectives, 0U);
  EXPECT_EQ(period_of({}, {}).collectives, 0U);
  EXPECT_EQ(period_of({1, 2, 1, 2}, std::vector<int64_t>(4, 5)).collectives, 0U) << "twice is no repetition";
}

TEST(RankInPath, NamesAndFolders) {
  EXPECT_EQ(rank_in_path("a/kineto_rank12.json.gz"), 12);
  EXPECT_EQ(rank_in_path("rank-3.tacho"), 3);
  EXPECT_EQ(rank_in_path("rank_0_trace.json"), 0);
  EXPECT_EQ(rank_in_path("Trace-Rank 5.json"), 5);
  EXPECT_EQ(rank_in_path("RANK=6.json"), 6);
  EXPECT_EQ(rank_in_path("out/7/trace.tacho"), 7);
  EXPECT_EQ(rank_in_path("out/rank7/trace.tacho"), 7);
  EXPECT_EQ(rank_in_path("out/7/host/trace.tacho"), 7);
  EXPECT_EQ(rank_in_path("ranks/trace.tacho"), kUnknown);
  EXPECT_EQ(rank_in_path("trace.tacho"), kUnknown);
  EXPECT_EQ(rank_in_path("/"), kUnknown);
  EXPECT_EQ(rank_in_path("rank99999999999999999999.json"), kUnknown);
}

TEST(RankNames, OneNumberInAllNames) {
  using Ranks = std::vector<int64_t>;
  EXPECT_EQ(ranks_in_paths({"a2/t_0.json", "a2/t_10.json", "a2/t_2.json"}), (Ranks{0, 10, 2}));
  EXPECT_EQ(ranks_in_paths({"1234-TP-0.trace.json.gz", "1234-TP-1.trace.json.gz"}), (Ranks{0, 1}));
  EXPECT_EQ(ranks_in_paths({"node0/t.json", "node1/t.json"}), (Ranks{0, 1}));
  EXPECT_EQ(ranks_in_paths({"000.json", "001.json"}), (Ranks{0, 1}));
  // Process ids, two numbers, other words, none at all.
  EXPECT_EQ(ranks_in_paths({"host_83.json", "host_84.json"}), Ranks{});
  EXPECT_EQ(ranks_in_paths({"dp0_tp0.json", "dp0_tp1.json", "dp1_tp0.json", "dp1_tp1.json"}), Ranks{});
  EXPECT_EQ(ranks_in_paths({"a0.json", "b1.json"}), Ranks{});
  EXPECT_EQ(ranks_in_paths({"0.json", "99999999999999999999.json"}), Ranks{});
  EXPECT_EQ(ranks_in_paths({"t.json", "t.json"}), Ranks{});
  EXPECT_EQ(ranks_in_paths({"t0.json"}), Ranks{});
  EXPECT_EQ(ranks_in_paths({}), Ranks{});
}

}  // namespace
}  // namespace tacho::ranks
