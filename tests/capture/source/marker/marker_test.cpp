// Markers from end to end of the pool: tacho.h, ROCTx, NVTX. The programs check the functions' results; this file
// checks the records.
#include <bit>

#include "tape/pool_run.h"

namespace tacho::test {
namespace {

using event::RecordKind;

std::string program(const std::string& name) {
  return build_folder() + "/tests/" + name;
}

const Row* find(const Rows& rows, RecordKind kind, const std::string& text) {
  for (const Row& row : rows.rows)
    if (row.kind == kind && row.text == text) return &row;
  return nullptr;
}

std::string output_of(PoolRun& run, const std::vector<std::string>& arguments,
                      const std::vector<std::string>& environment = {}) {
  static int write_end;
  int out[2];
  if (pipe(out) != 0) return "no pipe";
  write_end = out[1];
  EXPECT_EQ(run.run(arguments, environment, true, [] { dup2(write_end, STDOUT_FILENO); }), 0);
  close(out[1]);
  std::string text(4096, '\0');
  const ssize_t size = read(out[0], text.data(), text.size());
  close(out[0]);
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

TEST(TachoApi, RecordsWhatWasSaid) {
  PoolRun run;
  EXPECT_EQ(output_of(run, {program("marker_tacho")}), "1\n0\n");
  const Rows& rows = run.rows();
  EXPECT_EQ(rows.count(RecordKind::kMark), 6u);
  const Row* all = find(rows, RecordKind::kMark, "with all");
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(all->domain, "io");
  EXPECT_EQ(all->category, "read");
  EXPECT_EQ(all->color, 0x80ff0000u);
  EXPECT_EQ(static_cast<int64_t>(all->payload), -42);
  EXPECT_NE(all->flags & event::kMarkerInteger, 0);
  const Row* older = find(rows, RecordKind::kMark, "older");
  ASSERT_NE(older, nullptr);
  EXPECT_EQ(older->domain, "io");
  EXPECT_EQ(older->flags,
            event::kMarkerDomain | event::kMarkerInteger);  // nothing of what lies behind the 16 bytes
  ASSERT_NE(find(rows, RecordKind::kMark, ""), nullptr);
  std::vector<std::string> stack_order;
  for (const Row& row : rows.rows)
    if (row.kind == RecordKind::kPush || row.kind == RecordKind::kPop)
      stack_order.push_back((row.kind == RecordKind::kPush ? "push " : "pop ") + row.domain + " " + row.text);
  EXPECT_EQ(stack_order, (std::vector<std::string>{"push  outer", "push io in io", "pop io ", "pop  ",
                                                   "push  kept whole", "pop  "}));
  const Row* start = find(rows, RecordKind::kRangeStart, "across threads");
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(std::bit_cast<double>(start->payload), 0.5);
  ASSERT_EQ(rows.count(RecordKind::kRangeStop), 1u);
  const Row* stop = rows.of(RecordKind::kRangeStop)[0];
  EXPECT_EQ(stop->id, start->id);
  EXPECT_NE(stop->tid, start->tid);
  ASSERT_EQ(rows.count(RecordKind::kThread), 1u);
  EXPECT_EQ(rows.of(RecordKind::kThread)[0]->text, "stopper");
  EXPECT_EQ(rows.of(RecordKind::kThread)[0]->id, stop->tid);
  EXPECT_EQ(find(rows, RecordKind::kMark, "paused"), nullptr);
  EXPECT_NE(find(rows, RecordKind::kMark, "after flush"), nullptr);
}

TEST(TachoApi, SaysNothingWithoutAProfiler) {
  PoolRun run;
  const pid_t child = fork();
  if (child == 0) {
    unsetenv("TACHO_LIBRARY");
    unsetenv("LD_PRELOAD");
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    execl(program("marker_tacho").c_str(), "marker_tacho", nullptr);
    _exit(127);
  }
  EXPECT_EQ(run.wait(child), 0);
  EXPECT_TRUE(run.rows().rows.empty());
}

TEST(TachoApi, DeepStacksAndTooManyPops) {
  PoolRun run;
  EXPECT_EQ(run.run({program("marker_tacho"), "deep"}), 0);
  EXPECT_EQ(run.rows().count(RecordKind::kPush), 200u);
  EXPECT_EQ(run.rows().count(RecordKind::kPop), 200u);
}

TEST(TachoApi, MoreDomainsThanAreTracked) {
  PoolRun run;
  EXPECT_EQ(run.run({program("marker_tacho"), "domains"}), 0);
  EXPECT_EQ(run.rows().count(RecordKind::kPush), 20u);
  EXPECT_EQ(run.rows().count(RecordKind::kPop), 20u);
  for (const Row* pop : run.rows().of(RecordKind::kPop)) EXPECT_EQ(pop->domain.substr(0, 7), "domain ");
}

TEST(TachoApi, MarkersSwitchRecordingOnAndOff) {
  tape::PoolOptions options{.initial_bytes = 1 << 20, .max_bytes = 1 << 20, .closed = tape::gate::kTrigger};
  options.config = "start_marker=3\nstop_marker=6\n";
  PoolRun run(options);
  EXPECT_EQ(run.run({program("marker_tacho"), "triggers"}), 0);
  std::string texts;
  for (const Row* mark : run.rows().of(RecordKind::kMark)) texts += mark->text;
  EXPECT_EQ(texts, "3456");
  EXPECT_EQ(run.pool().header().trigger_start.load(), 1u);
  EXPECT_EQ(run.pool().header().trigger_stop.load(), 1u);
}

void expect_roctx(const Rows& rows) {
  std::vector<std::string> seen;
  for (const Row& row : rows.rows) {
    if (row.kind == RecordKind::kPush || row.kind == RecordKind::kMark || row.kind == RecordKind::kRangeStart) {
      seen.push_back(row.text);
      EXPECT_EQ(row.domain, "ROCTx");
    }
    if (row.kind == RecordKind::kPop) {
      seen.push_back("pop");
    }
    if (row.kind == RecordKind::kRangeStop) {
      seen.push_back("stop");
    }
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"a mark", "outer", "inner", "pop", "one", "two", "stop", "pop", "stop",
                                            "resumed"}));
  ASSERT_EQ(rows.count(RecordKind::kThread), 1u);
  EXPECT_EQ(rows.of(RecordKind::kThread)[0]->text, "worker");
  EXPECT_EQ(rows.count(RecordKind::kProperty), 1u);
}

TEST(Roctx, PreloadedForLinkedPrograms) {
  PoolRun run;
  EXPECT_EQ(run.run({program("marker_roctx"), "linked"}), 0);
  expect_roctx(run.rows());
}

TEST(Roctx, StandInsForProgramsThatOpenTheLibrary) {
  for (const char* name :
       {"libroctx64.so", "libroctx64.so.4", "librocprofiler-sdk-roctx.so", "librocprofiler-sdk-roctx.so.1"}) {
    PoolRun run;
    EXPECT_EQ(run.run({program("marker_roctx"), name}, {"LD_LIBRARY_PATH=" + build_folder() + "/lib/roctx"}, false), 0)
        << name;
    expect_roctx(run.rows());
  }
}

TEST(Roctx, StandInsBehaveWithoutTacho) {
  PoolRun run;
  EXPECT_EQ(run.run({program("marker_roctx"), "libroctx64.so"},
                    {"LD_LIBRARY_PATH=" + build_folder() + "/lib/roctx", "TACHO_LIBRARY=", "TACHO_POOL="}, false),
            0);
  EXPECT_TRUE(run.rows().rows.empty());
}

void expect_nvtx(const Rows& rows) {
  const auto mark = [&](const std::string& text, const std::string& category) -> const Row& {
    for (const Row& row : rows.rows)
      if (row.kind == RecordKind::kMark && row.text == text && row.category == category) return row;
    ADD_FAILURE() << "no mark " << text << " in category '" << category << "'";
    return rows.rows.front();
  };
  EXPECT_EQ(mark("ascii", "").domain, "NVTX");
  mark("wide \u00e4 \u20ac \U0001f600", "");
  const Row& full = mark("full", "seventh");
  EXPECT_EQ(full.color, 0xff112233u);
  EXPECT_EQ(std::bit_cast<double>(full.payload), 2.5);
  EXPECT_EQ(static_cast<int64_t>(mark("full", "eighth").payload), -3);
  EXPECT_EQ(std::bit_cast<double>(mark("full", "9").payload), 0.25);
  EXPECT_EQ(mark("full", "").payload, 4000000000u);
  EXPECT_EQ(mark("registered wide", "library's seventh").domain, "library");
  EXPECT_EQ(mark("unicode event", "seventh").domain, "NVTX");
  std::vector<std::string> stack;
  for (const Row& row : rows.rows) {
    if (row.kind == RecordKind::kPush) stack.push_back(row.domain + ":" + row.text + ":" + row.category);
    if (row.kind == RecordKind::kPop) stack.push_back("pop " + row.domain);
  }
  EXPECT_EQ(stack, (std::vector<std::string>{"NVTX:outer:", "NVTX:inner:", "NVTX:full:", "pop NVTX", "pop NVTX",
                                             "pop NVTX", "library:registered:library's seventh",
                                             "andere:registered wide:other's seventh", "pop library", "pop andere"}));
  const auto starts = rows.of(RecordKind::kRangeStart), stops = rows.of(RecordKind::kRangeStop);
  ASSERT_EQ(starts.size(), 4u);
  ASSERT_EQ(stops.size(), 4u);
  EXPECT_EQ(stops[0]->id, starts[1]->id);
  EXPECT_EQ(stops[1]->id, starts[0]->id);
  EXPECT_EQ(stops[2]->id, starts[2]->id);
  EXPECT_EQ(starts[3]->domain, "library");
  const auto threads = rows.of(RecordKind::kThread);
  ASSERT_EQ(threads.size(), 2u);
  EXPECT_EQ(threads[0]->text, "main thread");
  EXPECT_EQ(threads[0]->value, 1u);
  EXPECT_EQ(threads[1]->text, "somebody else");
  EXPECT_EQ(threads[1]->id, static_cast<uint64_t>(getpid()));
}

TEST(Nvtx, WholeFunctionTable) {
  for (const bool preload : {false, true}) {
    PoolRun run;
    EXPECT_EQ(run.run({program("marker_nvtx")}, {"NVTX_INJECTION64_PATH=" + library_path()}, preload), 0);
    expect_nvtx(run.rows());
  }
}

TEST(Nvtx, RealHeaders) {
  if (access(program("marker_nvtx_real").c_str(), X_OK) != 0)
    GTEST_SKIP() << "built without NVTX's headers (TACHO_CUDA_HOME)";
  PoolRun run;
  EXPECT_EQ(run.run({program("marker_nvtx_real")}, {"NVTX_INJECTION64_PATH=" + library_path()}, false), 0);
  expect_nvtx(run.rows());
}

TEST(Nvtx, RefusesWhenNotTraced) {
  PoolRun run;
  EXPECT_EQ(
      run.run({program("marker_nvtx"), "untraced"}, {"NVTX_INJECTION64_PATH=" + library_path(), "TACHO_POOL="}, false),
      0);
  EXPECT_TRUE(run.rows().rows.empty());
}

TEST(Python, Markers) {
  const char* const source = getenv("TACHO_SOURCE");
  ASSERT_NE(source, nullptr);
  if (access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "no /usr/bin/python3";
  for (const bool preload : {true, false}) {
    PoolRun run;
    const std::string folder = std::string("PYTHONPATH=") + source + "/python";
    EXPECT_EQ(run.run({"/usr/bin/python3", std::string(source) + "/tests/capture/source/marker/marker_python.py"},
                      {folder, "PYTHONDONTWRITEBYTECODE=1"}, preload),
              0);
    const Rows& rows = run.rows();
    const Row* full = find(rows, RecordKind::kMark, "gr\u00fc\u00df");
    ASSERT_NE(full, nullptr);
    EXPECT_EQ(full->domain, "d");
    EXPECT_EQ(full->category, "c");
    EXPECT_EQ(full->color, 0xff00ff00u);
    EXPECT_EQ(full->payload, 3u);
    EXPECT_EQ(rows.count(RecordKind::kMark), 3u);
    EXPECT_EQ(rows.count(RecordKind::kPush, "call"), 3u);
    EXPECT_EQ(rows.count(RecordKind::kPush), 6u);
    EXPECT_EQ(rows.count(RecordKind::kPop), 6u);
    EXPECT_EQ(rows.count(RecordKind::kRangeStop), 1u);
  }
  PoolRun run;
  EXPECT_EQ(
      run.run({"/usr/bin/python3", std::string(source) + "/tests/capture/source/marker/marker_python.py", "untraced"},
              {std::string("PYTHONPATH=") + source + "/python", "TACHO_POOL=", "PYTHONDONTWRITEBYTECODE=1"}, false),
      0);
}

}  // namespace
}  // namespace tacho::test
