// Own times of what nests on the host, the program's ranges, functions that only wait.
#include "analysis/host/own_time.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "analysis/stats.h"
#include "support/trace_maker.h"
#include "trace/rows.h"
#include "walk/names/program_ranges.h"

namespace tacho::analysis {
namespace {

using trace::must;

TEST(OwnTime, FunctionsThatOnlyWait) {
  EXPECT_TRUE(python_waits("threading.py(359): wait"));
  EXPECT_TRUE(python_waits("/usr/lib/python3.11/threading.py(1112): _wait_for_tstate_lock"));
  EXPECT_TRUE(python_waits("<method 'acquire' of '_thread.lock' objects>"));
  EXPECT_TRUE(python_waits("<built-in method acquire of _thread.lock object at 0x7f12>"));
  EXPECT_TRUE(python_waits("<built-in function sleep>"));
  EXPECT_TRUE(python_waits("<built-in method time.sleep>"));
  EXPECT_TRUE(python_waits("queue.py(171): get"));
  EXPECT_TRUE(python_waits("multiprocessing/connection.py(390): _recv"));
  EXPECT_FALSE(python_waits("threading.py(1075): _bootstrap_inner"));
  EXPECT_FALSE(python_waits("train.py(12): wait"));
  EXPECT_FALSE(python_waits("model/connection.py(12): _recv"));
  EXPECT_FALSE(python_waits("<built-in method append of list object at 0x7f12>"));
  EXPECT_FALSE(python_waits("<built-in method asleep of X object at 0x7f12>"));
  EXPECT_FALSE(python_waits("wait"));
  EXPECT_FALSE(python_waits(""));
}

// A host thread, a stream and the places that torch.profiler makes up.
class Profiled {
 public:
  Profiled() {
    const int64_t process = made_.process(7, "python3"), spans = made_.process(0, "Spans");
    host_ = made_.thread_track(process, 7);
    queue_ = made_.queue_track(process, made_.device("G"), 1);
    spans_ = made_.thread_track(spans, 1);
  }
  void call(event::Domain domain, std::string_view name, int64_t start, int64_t duration) {
    made_.call(host_, start, duration, made_.function(name, domain));
  }
  void range(int64_t track, std::string_view name, int64_t start, int64_t duration,
             event::MarkerKind kind = event::MarkerKind::kPushPop) {
    made_.marker(track, start, duration, made_.label(name, kind));
  }
  const trace::Trace& trace() {
    trace_ = made_.open();
    return *trace_;
  }
  int64_t host() const { return host_; }
  int64_t queue() const { return queue_; }
  int64_t spans() const { return spans_; }

 private:
  test::TraceMaker made_;
  std::shared_ptr<const trace::Trace> trace_;
  int64_t host_ = 0, queue_ = 0, spans_ = 0;
};

TEST(OwnTime, EachMomentCountsOnceForTheInnermost) {
  Profiled run;
  run.range(run.host(), "ProfilerStep#1", 0, 1000);
  run.call(event::Domain::kPython, "train.py(1): step", 100, 800);
  run.call(event::Domain::kOperator, "aten::linear", 200, 300);
  run.call(event::Domain::kOperator, "aten::mm", 250, 200);
  run.call(event::Domain::kCudaRuntime, "cudaLaunchKernel", 300, 50);
  run.call(event::Domain::kPython, "threading.py(359): wait", 600, 100);
  run.call(event::Domain::kPython, "never ends", 950, event::kUnknown);
  const trace::Trace& trace = run.trace();
  const OwnTimes own = must(own_times(trace, std::nullopt));
  EXPECT_EQ(own[HostKind::kMarker].total, 200);
  EXPECT_EQ(own[HostKind::kPython].total, 400);
  EXPECT_EQ(own[HostKind::kPython].count, 1);
  EXPECT_EQ(own[HostKind::kPython].unknown, 1);
  EXPECT_EQ(own[HostKind::kOperator].total, 250);
  EXPECT_EQ(own[HostKind::kOperator].count, 2);
  EXPECT_EQ(own[HostKind::kOperator].max, 150);
  EXPECT_EQ(own[HostKind::kApi].total, 50);
  EXPECT_EQ(own[HostKind::kWait].total, 100);
  EXPECT_EQ(must(own_times(trace, 2))[HostKind::kPython].count, 0) << "of another process";

  const auto rows = must(statistics(trace, By::kDomain, {.of_program = true}));
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows.back().name, "PYTHON_WAIT");
  EXPECT_TRUE(std::isnan(rows.back().percent));
  double percent = 0;
  for (size_t i = 0; i + 1 < rows.size(); ++i) percent += rows[i].percent;
  EXPECT_NEAR(percent, 100, 1e-9);
  // Without the option: as rocprofv3 adds up.
  int64_t all = 0;
  for (const StatRow& row : must(statistics(trace, By::kDomain))) all += row.total;
  EXPECT_EQ(all, 1000 + 800 + 100 + 300 + 200 + 50);

  const auto flat = must(StatTable::make(trace, By::kApi, {.nested = false}));
  ASSERT_EQ(flat.size(), 1u);
  EXPECT_EQ(flat.row(0).name, "cudaLaunchKernel");
  EXPECT_EQ(flat.left_out(), 5);
}

TEST(OwnTime, RangesOfTheProgram) {
  Profiled run;
  run.range(run.host(), "ProfilerStep#1", 0, 1000);
  run.range(run.queue(), "ProfilerStep#1", 100, 700);
  run.range(run.queue(), "only on the device", 100, 50);
  run.range(run.spans(), "PyTorch Profiler (0)", 0, 2000);
  run.range(run.host(), "Record Window End", 2000, 0, event::MarkerKind::kMark);
  run.range(run.host(), "Record Window End", 10, 20);  // a range that the program calls so
  run.range(run.host(), "a moment", 5, 0, event::MarkerKind::kMark);
  const trace::Trace& trace = run.trace();
  const auto table = must(StatTable::make(trace, By::kMarker, {.of_program = true}));
  std::map<std::string, std::pair<int64_t, int64_t>> got;
  for (size_t i = 0; i < table.size(); ++i) got[table.row(i).name] = {table.row(i).count, table.row(i).total};
  const std::map<std::string, std::pair<int64_t, int64_t>> want = {{"ProfilerStep#1", {1, 1000}},
                                                                   {"only on the device", {1, 50}},
                                                                   {"Record Window End", {1, 20}},
                                                                   {"a moment", {1, 0}}};
  EXPECT_EQ(got, want);
  EXPECT_EQ(table.left_out(), 3);
  EXPECT_EQ(must(StatTable::make(trace, By::kMarker)).left_out(), 0);
  EXPECT_FALSE(walk::made_up_process(trace, 0));
  EXPECT_FALSE(walk::made_up_process(trace, 1));
  EXPECT_TRUE(walk::made_up_process(trace, 2));
}

}  // namespace
}  // namespace tacho::analysis
