// One rank's pass: NCCL's marks describe the kernels that were launched before them.
#include "ranks/read/rank_pass.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/format.h"
#include "support/trace_maker.h"
#include "trace/rows.h"

namespace tacho::ranks {
namespace {

using trace::must;

constexpr const char* kAllReduce =
    "Collective name=AllReduce, In msg nelems=1024, Out msg nelems=1024, dtype=Float32, Group size=2, Process Group "
    "Name=5a, Algorithm=RING, Protocol=LL";
constexpr const char* kAllGather =
    "Collective name=AllGather, In msg nelems=100, Out msg nelems=400, dtype=Int8, Group size=4, Process Group Name=77";

// A thread that launches kernels; marks follow their launch.
class Rank {
 public:
  Rank() {
    const int64_t process = made_.process(1, "p");
    for (int64_t tid = 1; tid <= 2; ++tid) host_[tid] = made_.thread_track(process, tid);
    queue_ = made_.queue_track(process, 0, 7);
  }
  void launch(const std::string& kernel, int64_t thread = 1) {
    ++number_;
    time_ += 1000;
    made_.call(host_[thread], time_, 50, made_.function("cuLaunchKernelEx", event::Domain::kUnknown), number_);
    made_.dispatch(queue_, time_ + 100, 200, made_.kernel(kernel), number_);
  }
  void mark(const std::string& text, int64_t thread = 1) {
    made_.marker(host_[thread], time_ + 60, 0, made_.label(text, event::MarkerKind::kMark, "NCCL"));
  }
  /// "operation bytes group" of every collective.
  std::vector<std::string> arrivals() {
    const auto trace = made_.open();
    Names names;
    Spools spools = must(Spools::create());
    RankRun run;
    EXPECT_TRUE(pass_over(*trace, {}, names, spools, run).has_value());
    std::vector<Arrival> read(run.arrivals);
    EXPECT_TRUE(spools.arrivals.read(run.spool_at, read.size(), read.data()).has_value());
    std::vector<std::string> told;
    for (const Arrival& arrival : read)
      told.push_back(fmt::format("{} {} {}", operation_name(arrival.operation), arrival.bytes,
                                 names.communicator(arrival.communicator).name));
    return told;
  }

 private:
  test::TraceMaker made_;
  int64_t queue_ = 0, number_ = 0, time_ = 0;
  std::map<int64_t, int64_t> host_;
};

TEST(RankPass, ACollectiveIsWhatNcclSaidAfterItsLaunch) {
  Rank rank;
  rank.launch("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)");
  rank.mark(kAllReduce);
  rank.launch("gemm");
  rank.launch("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  rank.mark(kAllGather);
  rank.launch("ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)");  // nothing was said of it
  EXPECT_EQ(rank.arrivals(), (std::vector<std::string>{"all_reduce 4096 5a", "all_gather 400 77", "broadcast 0 "}));
}

TEST(RankPass, AKernelOfSeveralCollectivesMovesAllTheirBytes) {
  Rank rank;
  rank.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  rank.mark(kAllReduce);
  rank.mark(kAllReduce);
  rank.launch("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)");
  rank.mark(kAllReduce);
  rank.mark(kAllGather);  // two operations in one: neither
  EXPECT_EQ(rank.arrivals(), (std::vector<std::string>{"all_reduce 8192 5a", "collective 0 5a"}));
}

TEST(RankPass, MarksOfAnotherThreadSayNothingOfThisOnesLaunches) {
  Rank rank;
  rank.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  rank.mark(kAllGather, 2);
  EXPECT_EQ(rank.arrivals(), (std::vector<std::string>{"all_reduce 0 "}));
}

}  // namespace
}  // namespace tacho::ranks
