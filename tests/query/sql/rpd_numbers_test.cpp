// SQL's rpd tables hold the numbers that an exported .rpd file holds: grids, processes, threads and GPUs.
#include <gtest/gtest.h>

#include "format/rpd/rpd.h"
#include "inputs.h"
#include "query/sql/session.h"
#include "reference.h"
#include "support/trace_maker.h"

namespace tacho::query {
namespace {

// A process on each of two hosts. Each launches a kernel by a function whose grids upstream records in work-items, and
// by one that counts workgroups; each has a range of no thread's.
std::shared_ptr<const trace::Trace> two_hosts() {
  test::TraceMaker made;
  int64_t time = 0;
  for (const char* const host : {"a", "b"}) {
    const int64_t process = made.process(77, "app", event::kUnknown, host), thread = made.thread_track(process, 78);
    const int64_t gpu = made.device(host, event::DeviceKind::kGpu, "gfx90a", host[0] == 'a' ? 3 : event::kUnknown);
    const int64_t queue = made.queue_track(process, gpu, 2);
    int64_t correlation = 0;
    for (const char* const launch : {"hipExtModuleLaunchKernel", "hipModuleLaunchKernel"}) {
      time += 100;
      made.call(thread, time, 10, made.function(launch, event::Domain::kHipRuntime), ++correlation);
      made.dispatch(queue, time + 20, 30, made.kernel("k", 2048, 128), correlation);
    }
    made.marker(made.range_track(process), time + 60, 5, made.label("range"));
  }
  return made.open();
}

TEST(RpdNumbersInSql, AreThoseOfAnExportedFile) {
  const Folder folder;
  const auto trace = two_hosts();
  std::vector<std::string> written;
  ASSERT_TRUE(format::rpd::write(*trace, {folder / "t.rpd", "", ""}, {}, written));
  auto over_trace = Session::over(trace, "rpd");
  auto over_file = Session::open(folder / "t.rpd");
  ASSERT_TRUE(over_trace && over_file);
  const auto same = [&](const std::string& sql, const std::vector<std::string>& rows) {
    for (Session* const session : {over_trace->get(), over_file->get()}) {
      const Answer answer = answer_of(*session, sql);
      EXPECT_EQ(answer.error, "") << sql;
      EXPECT_EQ(answer.rows, rows) << sql << (session == over_file->get() ? ", over the file" : ", over the trace");
    }
  };
  same("SELECT gridX, workgroupX FROM kernel ORDER BY start", {"2048 | 128", "16 | 128", "2048 | 128", "16 | 128"});
  same("SELECT gridX, count(*) FROM rocpd_kernelapi GROUP BY gridX ORDER BY gridX", {"16 | 2", "2048 | 2"});
  same("SELECT gpuId, count(*) FROM op GROUP BY gpuId ORDER BY gpuId", {"3 | 2", "1000 | 2"});
  same("SELECT gpuId FROM busy ORDER BY gpuId", {"3", "1000"});
  same("SELECT pid, tid FROM api ORDER BY start",
       {"77 | 78", "77 | 78", "77 | 77", "10000077 | 10000078", "10000077 | 10000078", "10000077 | 10000077"});
}

}  // namespace
}  // namespace tacho::query
