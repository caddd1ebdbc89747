// One rank's pass: NCCL's marks describe the kernels that were launched before them.
#include "ranks/read/rank_pass.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/format.h"
#include "trace/rows.h"

namespace tacho::ranks {
namespace {

namespace row = event::row;
using trace::Folder;
using trace::must;
using trace::TraceWriter;

constexpr const char* kAllReduce =
    "Collective name=AllReduce, In msg nelems=1024, Out msg nelems=1024, dtype=Float32, Group size=2, Process Group "
    "Name=5a, Algorithm=RING, Protocol=LL";
constexpr const char* kAllGather =
    "Collective name=AllGather, In msg nelems=100, Out msg nelems=400, dtype=Int8, Group size=4, Process Group Name=77";

// A thread that launches kernels; marks follow their launch.
class Rank {
 public:
  Rank() : writer_(must(TraceWriter::create(folder_ / "t.tacho", {}))) {
    process_ = writer_->dimension(row::Process{.pid = 1, .start = 0, .name = writer_->string("p")});
    for (int64_t tid = 1; tid <= 2; ++tid)
      host_[tid] =
          writer_->dimension(row::Track{.kind = event::TrackKind::kThread,
                                        .process = process_,
                                        .thread = writer_->dimension(row::Thread{.process = process_, .tid = tid}),
                                        .native = tid});
    queue_ = writer_->dimension(row::Track{.kind = event::TrackKind::kQueue, .process = process_, .native = 7});
  }
  void launch(const std::string& kernel, int64_t thread = 1) {
    ++number_;
    time_ += 1000;
    writer_->add(row::Api{.track = host_[thread],
                          .start = time_,
                          .duration = 50,
                          .dim = writer_->dimension(row::Function{.name = writer_->string("cuLaunchKernelEx")}),
                          .correlation = number_});
    writer_->add(row::Dispatch{.track = queue_,
                               .start = time_ + 100,
                               .duration = 200,
                               .dim = writer_->dimension(row::Kernel{.name = writer_->string(kernel)}),
                               .correlation = number_});
  }
  void mark(const std::string& text, int64_t thread = 1) {
    writer_->add(row::Marker{
        .track = host_[thread],
        .start = time_ + 60,
        .duration = 0,
        .dim = writer_->dimension(row::Label{
            .name = writer_->string(text), .kind = event::MarkerKind::kMark, .domain = writer_->string("NCCL")})});
  }
  /// "operation bytes group" of every collective.
  std::vector<std::string> arrivals() {
    const auto trace = must(writer_->finish_and_open());
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
  Folder folder_;
  std::unique_ptr<TraceWriter> writer_;
  int64_t process_ = 0, queue_ = 0, number_ = 0, time_ = 0;
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
