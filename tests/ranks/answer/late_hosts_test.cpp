// A late rank whose host was elsewhere: the trace's call stacks and Python functions say where.
#include "ranks/answer/late_hosts.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/format.h"
#include "ranks/answer/answers.h"
#include "ranks/read/load.h"
#include "support/trace_maker.h"
#include "trace/rows.h"

namespace tacho::ranks {
namespace {

using trace::Folder;
using trace::must;

constexpr int64_t kMs = 1'000'000;

// Writes a rank's trace: steps of one gemm and one all-reduce, to which rank 1 comes 100 ms late.
class RankTrace {
 public:
  RankTrace(const std::string& path, int64_t rank) : made_(path), rank_(rank) {
    const int64_t process = made_.process(100 + rank, "p", rank, "node");
    thread_ = made_.thread_track(process, 100 + rank);
    queue_ = made_.queue_track(process, 0, 7);
  }
  void launch(int64_t at, int64_t start, int64_t length, const std::string& kernel) {
    ++number_;
    made_.call(thread_, at, 5000, made_.function("cudaLaunchKernel", event::Domain::kCudaRuntime), number_);
    made_.dispatch(queue_, start, length, made_.kernel(kernel), number_);
  }
  // A stack of frames "function@file:line", outermost first.
  int64_t stack(const std::vector<std::array<std::string, 3>>& frames) {
    int64_t parent = 0;
    for (const auto& [function, file, line] : frames)
      parent = made_.stack(parent, made_.frame(event::FrameKind::kPython, function, file, std::stoll(line)));
    return parent;
  }
  void sample(int64_t at, int64_t length, int64_t stack_row) { made_.sample(thread_, at, length, stack_row); }
  void function(int64_t at, int64_t length, const std::string& name) {
    made_.call(thread_, at, length, made_.function(name, event::Domain::kPython));
  }
  void finish() { made_.open(); }
  int64_t rank() const { return rank_; }

 private:
  test::TraceMaker made_;
  int64_t rank_, thread_ = 0, queue_ = 0, number_ = 0;
};

// The cause of the one straggler; `during(trace, from, to)` adds what the trace tells of a late host.
std::string cause_with(const std::function<void(RankTrace&, int64_t from, int64_t to)>& during) {
  Folder folder;
  for (const int64_t rank : {0, 1}) {
    RankTrace trace(folder / fmt::format("rank{}.tacho", rank), rank);
    int64_t at = 1000 * kMs;
    for (int step = 0; step < 4; ++step) {
      trace.launch(at, at + kMs, 2 * kMs, "gemm");
      const int64_t late = rank == 1 ? 100 * kMs : 0, asked = at + 3 * kMs + late;
      if (rank == 1) during(trace, at, asked);
      trace.launch(asked, asked + kMs, at + 105 * kMs - asked, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
      at += 110 * kMs;
    }
    trace.finish();
  }
  Job job;
  EXPECT_TRUE(load_job({folder / "rank0.tacho", folder / "rank1.tacho"}, job).has_value());
  const Report report = must(answer(job));
  EXPECT_EQ(report.stragglers.size(), 1U);
  return report.stragglers.empty() ? "" : cause_text(report.stragglers[0].cause, job.names);
}

TEST(LateHosts, WithoutStacksItIsUnknown) {
  EXPECT_EQ(cause_with([](RankTrace&, int64_t, int64_t) {}), "the host launched late; why is unknown");
}

TEST(LateHosts, StacksAtLaunchesTellBetweenWhichLines) {
  EXPECT_EQ(cause_with([](RankTrace& trace, int64_t from, int64_t to) {
              trace.sample(from, 0,
                           trace.stack({{"main", "/home/u/ddp.py", "16"},
                                        {"linear", "/usr/lib/python3/dist-packages/torch/nn.py", "5"}}));
              trace.sample(to, 0,
                           trace.stack({{"main", "/home/u/ddp.py", "20"},
                                        {"all_reduce", "/usr/lib/python3/dist-packages/torch/d.py", "9"}}));
            }),
            "the host launched late: between ddp.py:16 and ddp.py:20 for 103.00 ms");
}

TEST(LateHosts, SamplesTellTheLine) {
  EXPECT_EQ(cause_with([](RankTrace& trace, int64_t from, int64_t to) {
              const int64_t load = trace.stack({{"main", "/home/u/ddp.py", "16"}, {"load", "/home/u/data.py", "31"}});
              for (int64_t at = from + 5 * kMs; at < to; at += 10 * kMs) trace.sample(at, 10 * kMs, load);
            }),
            "the host launched late: at data.py:31 for 100.00 ms");
}

TEST(LateHosts, SamplesTellWhatTheHostDid) {
  EXPECT_EQ(cause_with([](RankTrace& trace, int64_t from, int64_t to) {
              const int64_t collecting = trace.stack({{"main", "/home/u/ddp.py", "17"}, {"gc_collect_main", "", "0"}});
              for (int64_t at = from + 5 * kMs; at < to; at += 10 * kMs) trace.sample(at, 10 * kMs, collecting);
            }),
            "the host launched late: garbage collection, at ddp.py:17 for 100.00 ms");
}

// torch.profiler with stacks: the innermost function that was there for most of the delay.
TEST(LateHosts, FunctionsOfPythonTell) {
  EXPECT_EQ(cause_with([](RankTrace& trace, int64_t from, int64_t to) {
              trace.function(from - kMs, to - from + 2 * kMs, "ddp.py(10): train");
              trace.function(from + 3 * kMs, to - from - 4 * kMs, "data.py(31): load");
              trace.function(from + 4 * kMs, 10 * kMs, "data.py(40): one");
            }),
            "the host launched late: in data.py(31): load for 99.00 ms");
}

}  // namespace
}  // namespace tacho::ranks
