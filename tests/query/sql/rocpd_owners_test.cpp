// SQL's rocpd tables of nodes, processes, threads, agents, queues, streams and tracks hold what an exported rocpd file
// holds, ids included; so do the views that name them.
#include <gtest/gtest.h>

#include "format/rocpd/rocpd.h"
#include "query/sql/session.h"
#include "reference.h"
#include "support/folder.h"
#include "support/trace_maker.h"

namespace tacho::query {
namespace {

// Two hosts with one pid each in common, a track without a process, a thread without a name, queues that two threads
// use, marks of two threads, and one kernel without a call.
std::shared_ptr<const trace::Trace> with_many_owners() {
  test::TraceMaker made;
  const int64_t here = made.process(77, "app", 0, "here"), there = made.process(77, "app", 1, "there");
  const int64_t main = made.thread_track(here, 77, "main"), worker = made.thread_track(here, 78),
                far = made.thread_track(there, 78, "far");
  const int64_t gpu = made.device("G", event::DeviceKind::kGpu, "gfx90a"), plain = made.device("H");
  const int64_t queue = made.queue_track(here, gpu, 2), other = made.queue_track(there, plain, 2),
                nobody = made.queue_track(0, plain, 3);
  const int64_t launch = made.function("hipLaunchKernel", event::Domain::kHipRuntime);
  made.call(worker, 50, 10, launch, 4);
  made.call(far, 60, 10, launch, 4);
  for (const int64_t on : {queue, other, nobody}) made.dispatch(on, 100 + on, 30, made.kernel("k"), 4, 0);
  made.dispatch(queue, 300, 30, made.kernel("k"), 9, 1);
  made.marker(far, 70, 0, made.label("there", event::MarkerKind::kMark));
  made.marker(main, 80, 0, made.label("here", event::MarkerKind::kMark));
  made.marker(main, 90, 5, made.label("range", event::MarkerKind::kPushPop));
  return made.open();
}

TEST(RocpdOwners, AreTheSameInSqlAndInAFile) {
  const auto trace = with_many_owners();
  const test::Folder folder;
  std::vector<std::string> written;
  ASSERT_TRUE(format::rocpd::write(*trace, {folder / "a.db", "", ""}, {}, written));
  auto over = Session::over(trace, "rocpd"), file = Session::open(folder / "a.db", "");
  ASSERT_TRUE(over) << over.error().message;
  ASSERT_TRUE(file) << file.error().message;
  const auto compare = [&](const std::string& sql) {
    const Answer here = answer_of(**over, sql), there = answer_of(**file, sql);
    EXPECT_EQ(here.error, "") << sql;
    EXPECT_EQ(here.rows, there.rows) << sql;
    EXPECT_FALSE(here.rows.empty()) << sql;
  };
  for (const std::string table : {"node", "process", "thread", "agent", "queue", "stream"}) {
    std::string columns;
    for (const std::string& name : answer_of(**over, "SELECT * FROM rocpd_info_" + table).columns)
      if (name != "guid") columns += (columns.empty() ? "" : ", ") + in_quotes(name);
    compare("SELECT " + columns + " FROM rocpd_info_" + table + " ORDER BY id");
  }
  compare("SELECT T.id, T.nid, T.pid, T.tid, S.string FROM rocpd_track T JOIN rocpd_string S ON S.id = T.name_id "
          "ORDER BY T.id");
  compare("SELECT nid, pid, tid, agent_id, queue_id, stream_id FROM rocpd_kernel_dispatch ORDER BY start");
  compare("SELECT nid, pid, tid, agent_abs_index, agent_type, queue, stream FROM kernels ORDER BY start");
  compare("SELECT nid, pid, tid, name FROM regions ORDER BY start");
  compare("SELECT nid, pid, tid, name, timestamp FROM samples ORDER BY timestamp");
}

}  // namespace
}  // namespace tacho::query
