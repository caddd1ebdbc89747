// Perfetto traces decoded by an independent reader.
#include "format/perfetto/perfetto.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/text/utf8.h"
#include "format/perfetto/perfetto_reader.h"
#include "support/folder.h"
#include "support/trace_maker.h"

namespace tacho::test {
namespace {

namespace row = event::row;

// As AMD's tools write it.
PerfettoTrace perfetto_of(const trace::Trace& trace, format::ExportOptions options = {}) {
  options.gpu_model = false;
  Folder folder;
  std::vector<std::string> written;
  const Status done = format::write_perfetto(trace, {folder / "t.pftrace", "", ""}, options, written);
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_EQ(written, std::vector<std::string>{folder / "t.pftrace"});
  EXPECT_EQ(folder.names(), std::vector<std::string>{"t.pftrace"});
  PerfettoTrace read = read_perfetto(read_file(folder / "t.pftrace"));
  EXPECT_EQ(read.errors, std::vector<std::string>{});
  return read;
}

const PerfettoEvent* named(const PerfettoTrace& trace, const std::string& name) {
  for (const PerfettoEvent& event : trace.events)
    if (event.name == name) return &event;
  return nullptr;
}
// Time of the end that belongs to the begin `event`.
int64_t end_of(const PerfettoTrace& trace, const PerfettoEvent& event) {
  int depth = 0;
  for (const PerfettoEvent* at = &event; at != trace.events.data() + trace.events.size(); ++at) {
    if (at->track != event.track) continue;
    if (at->type == 1) ++depth;
    if (at->type == 2 && --depth == 0) return at->time;
  }
  return -1;
}

TEST(Perfetto, TracksSlicesFlowsAndClocks) {
  TraceMaker made;
  made.clock(10'000, 1'010'000);
  made.clock(20'000, 1'020'010);  // BOOTTIME runs 1 in 1000 faster
  const int64_t process = made.process(77, "app");
  const int64_t main = made.thread_track(process, 77, "app"), worker = made.thread_track(process, 80, "loader");
  const int64_t gpu = made.device("Big GPU");
  const int64_t stream = made.queue_track(process, gpu, 3, "stream"), queue = made.queue_track(process, gpu, 9);
  made.call(main, 10'000, 2'000, made.function("clEnqueueNDRangeKernel"), 5, 0);
  made.call(worker, 11'000, 500, made.function("cudaMalloc", event::Domain::kCudaRuntime), 6, 2);
  made.dispatch(stream, 13'000, 1'000, made.kernel("_Z7vecCopyPdS_ii", 1024, 64, 24), 5, 0);
  made.dispatch(queue, 15'000, 1'000, made.kernel("other"), 0, 1);
  const auto trace = made.open();
  const PerfettoTrace read = perfetto_of(*trace);

  ASSERT_EQ(read.snapshots.size(), 2u);
  EXPECT_EQ(read.snapshots[0].at(6), 1'010'000);
  EXPECT_EQ(read.snapshots[0].at(5), 10'000);
  EXPECT_EQ(read.snapshots[0].at(3), 1'009'500);
  EXPECT_EQ(read.snapshots[0].at(1), 1'000'001'010'000);
  EXPECT_EQ(read.snapshots[1].at(6), 1'020'010);

  const PerfettoEvent* const call = named(read, "clEnqueueNDRangeKernel");
  const PerfettoEvent* const kernel = named(read, "vecCopy(double*, double*, int, int)");
  ASSERT_TRUE(call != nullptr && kernel != nullptr);
  EXPECT_EQ(call->time, 1'010'000);
  EXPECT_EQ(end_of(read, *call), 1'012'002);
  EXPECT_EQ(kernel->time, 1'013'003);
  EXPECT_EQ(end_of(read, *kernel), 1'014'004);
  EXPECT_EQ(call->category, "opencl_api");
  EXPECT_EQ(kernel->category, "kernel_dispatch");
  ASSERT_EQ(call->flows.size(), 1u);
  EXPECT_EQ(call->flows, kernel->flows);
  EXPECT_EQ(call->args.at("corr_id"), "5");
  EXPECT_EQ(kernel->args.at("corr_id"), "5");
  EXPECT_EQ(kernel->args.at("workgroup_size"), "64");
  EXPECT_EQ(kernel->args.at("grid_size"), "1024");
  EXPECT_EQ(kernel->args.at("grid"), "(1024,1,1)");
  EXPECT_EQ(kernel->args.at("VGPR_Count"), "24");
  EXPECT_EQ(kernel->args.count("SGPR_Count"), 0u) << "what is not known is not 0";
  EXPECT_EQ(kernel->args.at("dispatch_id"), "1");
  EXPECT_EQ(kernel->args.at("agent"), "Agent-1");
  EXPECT_EQ(kernel->args.at("agent_type"), "GPU");
  EXPECT_EQ(kernel->args.at("stream_ID"), "3");
  const PerfettoEvent* const malloc = named(read, "cudaMalloc");
  ASSERT_NE(malloc, nullptr);
  EXPECT_EQ(malloc->args.at("result"), "2");
  EXPECT_NE(malloc->flows, call->flows);
  EXPECT_EQ(named(read, "other")->flows.size(), 0u);

  EXPECT_EQ(read.tracks.at(kernel->track).name, "STREAM [\" 3 \"] ");
  EXPECT_EQ(read.tracks.at(named(read, "other")->track).name, "COMPUTE Agent [1] QUEUE [1] GPU");
  const PerfettoTrack& thread = read.tracks.at(call->track);
  EXPECT_TRUE(thread.is_thread);
  EXPECT_EQ(thread.tid, 77);
  EXPECT_EQ(thread.name, "app");
  EXPECT_EQ(read.tracks.at(malloc->track).name, "THREAD 1 (80) loader");
  const PerfettoTrack& parent = read.tracks.at(read.tracks.at(kernel->track).parent);
  EXPECT_TRUE(parent.is_process);
  EXPECT_EQ(parent.pid, 77);
  EXPECT_EQ(parent.name, "app");
  EXPECT_EQ(parent.command, "app --fast");

  format::ExportOptions options;
  options.group_by_queue = true;
  options.agent_index = walk::AgentIndex::kTypeRelative;
  options.mangled = true;
  const PerfettoTrace grouped = perfetto_of(*trace, options);
  ASSERT_NE(named(grouped, "_Z7vecCopyPdS_ii"), nullptr);
  EXPECT_EQ(grouped.tracks.at(named(grouped, "_Z7vecCopyPdS_ii")->track).name, "COMPUTE GPU [0] QUEUE [0] GPU");
  EXPECT_EQ(named(grouped, "other")->args.at("agent"), "GPU-0");
}

// rocprofv3's JSON has for each dispatch its stream, its hardware queue and the thread that launched it.
TEST(Perfetto, StreamsOfLaunchingThreadsAreTracksOfTheirOwn) {
  TraceMaker made;
  const int64_t process = made.process(77, "app"), gpu = made.device("Big GPU");
  const int64_t main = made.thread_track(process, 77, "app");
  const int64_t thread =
      made.writer().dimension(event::row::Thread{.process = process, .tid = 77, .name = made.text("app")});
  made.call(main, 10'000, 200, made.function("hipLaunchKernel", event::Domain::kHipRuntime), 1);
  const auto stream = [&](int64_t number, int64_t queue) {
    const int64_t track = made.writer().dimension(event::row::Track{.kind = event::TrackKind::kQueue,
                                                                    .process = process,
                                                                    .thread = thread,
                                                                    .device = gpu,
                                                                    .native = number,
                                                                    .context = queue,
                                                                    .category = made.text("stream")});
    made.writer().property(Table::kTrack, track, "queue", std::to_string(queue));
    return track;
  };
  int64_t at = 11'000;
  for (const auto& [number, queue] : std::vector<std::pair<int64_t, int64_t>>{{0, 7}, {0, 9}, {2, 7}, {2, 9}})
    made.dispatch(stream(number, queue), at += 1'000, 500, made.kernel("k"), 1, 0);
  const auto trace = made.open();
  const auto lines = [&](bool by_queue) {
    format::ExportOptions options;
    options.group_by_queue = by_queue;
    std::multiset<std::string> names;
    int threads = 0;
    for (const auto& [uuid, track] : perfetto_of(*trace, options).tracks) {
      threads += track.is_thread ? 1 : 0;
      if (track.name.find("STREAM") == 0 || track.name.find("QUEUE") != std::string::npos) names.insert(track.name);
    }
    EXPECT_EQ(threads, 1) << "the launching thread's own line alone";
    return names;
  };
  EXPECT_EQ(lines(false), (std::multiset<std::string>{"STREAM [\" 0 \"] ", "STREAM [\" 2 \"] "}));
  EXPECT_EQ(lines(true),
            (std::multiset<std::string>{"COMPUTE Agent [1] QUEUE [0] GPU", "COMPUTE Agent [1] QUEUE [1] GPU"}));
}

TEST(Perfetto, OverlapGoesToLanesOfTheSameName) {
  TraceMaker made;
  const int64_t process = made.process(5);
  const int64_t thread = made.thread_track(process, 5), ranges = made.range_track(process);
  const int64_t gpu = made.device("G"), queue = made.queue_track(process, gpu, 1);
  const int64_t kernel = made.kernel("k");
  made.dispatch(queue, 100, 50, kernel);
  made.dispatch(queue, 120, 10, kernel);  // inside the first in time: another lane, not a child
  made.dispatch(queue, 150, 10, kernel);  // begins when the first ends: fits behind it
  made.marker(ranges, 100, 100, made.label("a", event::MarkerKind::kStartStop));
  made.marker(ranges, 150, 100, made.label("b", event::MarkerKind::kStartStop));  // half over the first
  made.marker(thread, 100, 100, made.label("outer"));
  made.call(thread, 100, 100, made.function("same extent"), 1);
  made.call(thread, 150, 20, made.function("inner"), 2);
  made.call(thread, 200, 0, made.function("instantaneous"), 3);
  made.call(thread, 200, 5, made.function("after"), 4);
  const PerfettoTrace read = perfetto_of(*made.open());
  const auto kernels = read.of_category("kernel_dispatch");
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_NE(kernels[0]->track, kernels[1]->track);
  EXPECT_EQ(kernels[0]->track, kernels[2]->track);
  EXPECT_EQ(read.tracks.at(kernels[0]->track).name, read.tracks.at(kernels[1]->track).name);
  EXPECT_EQ(read.tracks.at(kernels[0]->track).parent, read.tracks.at(kernels[1]->track).parent);
  EXPECT_EQ(end_of(read, *kernels[0]), 150);
  EXPECT_EQ(end_of(read, *kernels[1]), 130);
  EXPECT_EQ(end_of(read, *kernels[2]), 160);
  EXPECT_NE(named(read, "a")->track, named(read, "b")->track);
  EXPECT_EQ(end_of(read, *named(read, "a")), 200);
  EXPECT_EQ(end_of(read, *named(read, "b")), 250);
  EXPECT_EQ(named(read, "outer")->track, named(read, "inner")->track);
  EXPECT_EQ(end_of(read, *named(read, "outer")), 200);
  EXPECT_EQ(end_of(read, *named(read, "same extent")), 200);
  EXPECT_EQ(end_of(read, *named(read, "inner")), 170);
  EXPECT_EQ(end_of(read, *named(read, "instantaneous")), 200);
  EXPECT_EQ(end_of(read, *named(read, "after")), 205);
}

TEST(Perfetto, UnknownEnds) {
  TraceMaker made;
  const int64_t process = made.process(5);
  const int64_t thread = made.thread_track(process, 5), queue = made.queue_track(process, made.device("G"), 1);
  made.call(thread, 100, kUnknown, made.function("never returned"), 1, kUnknown);
  made.call(thread, 150, 10, made.function("inside"), 2);
  made.dispatch(queue, 120, kUnknown, made.kernel("lost"), 1);
  made.dispatch(queue, 130, 70, made.kernel("whole"), 2);
  const PerfettoTrace read = perfetto_of(*made.open());
  const PerfettoEvent* const open = named(read, "never returned");
  ASSERT_NE(open, nullptr);
  EXPECT_EQ(end_of(read, *open), 200) << "the end of the trace";
  EXPECT_EQ(open->args.at("open_at_exit"), "true");
  EXPECT_EQ(named(read, "lost")->type, 3);
  EXPECT_EQ(named(read, "lost")->args.at("end_not_recorded"), "true");
  EXPECT_EQ(end_of(read, *named(read, "whole")), 200);
}

TEST(Perfetto, ClocksAndTimesThatMakeNoSense) {
  TraceMaker made;
  made.clock(1'000, 50'000);
  made.clock(2'000, 10'000);  // BOOTTIME jumped back
  made.clock(3'000, 90'000);  // and far ahead
  const int64_t process = made.process(5);
  const int64_t thread = made.thread_track(process, 5), queue = made.queue_track(process, made.device("G"), 1);
  for (int64_t time = 500; time < 4'000; time += 250) made.call(thread, time, 100, made.function("f"), time);
  made.call(thread, 3'990, -50, made.function("ends before it began"), 7);
  made.dispatch(queue, 600, 100, made.kernel("before its call"), 750);
  made.dispatch(queue, 0, 10, made.kernel("at zero"), 1);
  made.dispatch(queue, -500, 10, made.kernel("before zero"), 2);
  made.dispatch(queue, 100, std::numeric_limits<int64_t>::max() - 50, made.kernel("for ever"), 3);
  const PerfettoTrace read = perfetto_of(*made.open());  // which checks order and balance
  EXPECT_EQ(read.of_category("opencl_api").size(), 15u);
  EXPECT_EQ(read.of_category("kernel_dispatch").size(), 4u);
}

TEST(Perfetto, Counters) {
  TraceMaker made;
  const int64_t process = made.process(5);
  const int64_t thread = made.thread_track(process, 5), gpu = made.device("G"),
                queue = made.queue_track(process, gpu, 1);
  made.copy(queue, 100, 50, event::CopyDirection::kHostToDevice, 4096, gpu);
  made.copy(queue, 120, 10, event::CopyDirection::kHostToDevice, 100, gpu);
  made.allocation(thread, 10, false, 500, 0xabc, gpu);
  made.allocation(thread, 20, false, 300, 0xdef, gpu);
  made.allocation(thread, 30, true, kUnknown, 0xabc, gpu);
  const int64_t power = made.counter("power", "W");
  made.reading(0, gpu, power, "power", 40, 250.5);
  made.reading(0, gpu, power, "power", 60, 260);
  made.dispatch(queue, 200, 40, made.kernel("k"), 0, 0);
  const int64_t waves = made.counter("SQ_WAVES");
  for (int instance = 0; instance < 4; ++instance) made.counter_value(queue, 200, 0, waves, instance, 2.5);
  const PerfettoTrace read = perfetto_of(*made.open());
  const auto series = [&](const std::string& name) {
    std::vector<std::pair<int64_t, double>> values;
    for (const PerfettoEvent& event : read.events)
      if (event.type == 4 && read.tracks.at(event.track).name == name) values.emplace_back(event.time, event.value);
    return values;
  };
  using Series = std::vector<std::pair<int64_t, double>>;
  EXPECT_EQ(series("COPY BYTES to Agent [1] (GPU)"), (Series{{100, 4096}, {120, 4196}, {130, 4096}, {150, 0}}));
  EXPECT_EQ(series("ALLOCATE BYTES on Agent [1] (GPU)"), (Series{{10, 500}, {20, 800}, {30, 300}}));
  EXPECT_EQ(series("power Agent [1] (W)"), (Series{{40, 250.5}, {60, 260}}));
  EXPECT_EQ(series("Agent [1] PMC SQ_WAVES"), (Series{{200, 10}, {240, 0}}));
  for (const auto& [uuid, track] : read.tracks) {
    static_cast<void>(uuid);
    EXPECT_TRUE(!track.name.starts_with("COPY") || track.unit == 3);
    EXPECT_TRUE(!track.name.starts_with("power") || track.unit_name == "W");
  }
}

TEST(Perfetto, NamesOfAnyBytesAndLength) {
  TraceMaker made;
  const int64_t process = made.process(5);
  const int64_t thread = made.thread_track(process, 5), queue = made.queue_track(process, made.device("G"), 1);
  const std::string names[] = {"quote\" back\\slash",     std::string("nul\0inside", 10), "\x01\x1f\x7f",
                               "\xff\xfe bad utf-8 \xc3", std::string(64 * 1024, 'x'),    "with, comma\nand line"};
  int64_t time = 0;
  for (const std::string& name : names) {
    made.dispatch(queue, time, 5, made.kernel(name));
    made.marker(thread, time, 5, made.label("m" + name));
    time += 10;
  }
  const PerfettoTrace read = perfetto_of(*made.open());
  for (const std::string& name : names) {
    EXPECT_NE(named(read, valid_utf8(name)), nullptr);
    EXPECT_NE(named(read, "m" + valid_utf8(name)), nullptr);
  }
}

TEST(Perfetto, SeveralProcessesAndEqualPids) {
  TraceMaker made;
  const int64_t first = made.process(5, "a", 0, "host1"), second = made.process(5, "a", 1, "host2"),
                third = made.process(0, "unknown", kUnknown, "host1");
  for (const int64_t process : {first, second, third}) {
    made.call(made.thread_track(process, 5), 100, 10, made.function("f"), 1);
    made.dispatch(made.queue_track(process, made.device("G"), 1), 150, 10, made.kernel("k"), 1);
  }
  const auto trace = made.open();
  const PerfettoTrace read = perfetto_of(*trace);
  std::set<int64_t> pids;
  std::set<std::string> names;
  for (const auto& [uuid, track] : read.tracks) {
    static_cast<void>(uuid);
    if (track.is_process) pids.insert(track.pid), names.insert(track.name);
  }
  EXPECT_EQ(pids.size(), 3u);
  EXPECT_TRUE(names.contains("a rank 1 on host2"));
  // Equal correlations of different processes are different flows.
  std::set<uint64_t> flows;
  for (const PerfettoEvent& event : read.events) flows.insert(event.flows.begin(), event.flows.end());
  EXPECT_EQ(flows.size(), 3u);
  format::ExportOptions options;
  options.process = second;
  EXPECT_EQ(perfetto_of(*trace, options).of_category("kernel_dispatch").size(), 1u);
}

TEST(Perfetto, TenThousandThreadsAndQueues) {
  TraceMaker made;
  const int64_t process = made.process(1);
  const int64_t gpu = made.device("G"), kernel = made.kernel("k"), function = made.function("f");
  for (int i = 0; i < 10'000; ++i) {
    made.call(made.thread_track(process, 1 + i), i, 100'000, function, i + 1);
    made.dispatch(made.queue_track(process, gpu, i), 200'000 + i, 100'000, kernel, i + 1);
  }
  const PerfettoTrace read = perfetto_of(*made.open());
  EXPECT_EQ(read.of_category("kernel_dispatch").size(), 10'000u);
  EXPECT_EQ(read.of_category("opencl_api").size(), 10'000u);
  EXPECT_EQ(read.tracks.size(), 20'001u);
}

TEST(Perfetto, MostOverlapOfOneQueue) {
  TraceMaker made;
  const int64_t queue = made.queue_track(made.process(1), made.device("G"), 1), kernel = made.kernel("k");
  for (int i = 0; i < 2000; ++i)
    made.dispatch(queue, i, 100'000, kernel);  // all at the same time: more than there are lanes
  const PerfettoTrace read = perfetto_of(*made.open());
  const auto kernels = read.of_category("kernel_dispatch");
  EXPECT_EQ(kernels.size(), 2000u) << "what has no lane is an instant, not gone";
  EXPECT_GT(std::count_if(kernels.begin(), kernels.end(), [](const auto* event) { return event->type == 1; }), 200);
}

TEST(Perfetto, KernelRename) {
  TraceMaker made;
  const int64_t process = made.process(5);
  const int64_t thread = made.thread_track(process, 5), other = made.thread_track(process, 6);
  const int64_t queue = made.queue_track(process, made.device("G"), 1), kernel = made.kernel("k"),
                launch = made.function("launch");
  made.marker(thread, 0, 100, made.label("outer"));
  made.marker(thread, 10, 50, made.label("inner"));
  made.call(thread, 20, 5, launch, 1);
  made.call(thread, 70, 5, launch, 2);
  made.call(other, 30, 5, launch, 3);
  made.dispatch(queue, 1000, 10, kernel, 1);
  made.dispatch(queue, 1010, 10, kernel, 2);
  made.dispatch(queue, 1020, 10, kernel, 3);
  format::ExportOptions options;
  options.kernel_rename = true;
  const PerfettoTrace read = perfetto_of(*made.open(), options);
  const auto kernels = read.of_category("kernel_dispatch");
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels[0]->name, "inner");
  EXPECT_EQ(kernels[1]->name, "outer");
  EXPECT_EQ(kernels[2]->name, "k");
}

TEST(Perfetto, CallStacks) {
  TraceMaker made;
  const int64_t thread = made.thread_track(made.process(5), 6);
  const auto frame = [&](std::string_view function, std::string_view module) {
    return made.writer().dimension(
        row::Frame{.function = made.text(function), .module = made.text(module), .address = module.empty() ? 0 : 0x10});
  };
  const int64_t outer = made.writer().dimension(row::Stack{.frame = frame("main", "app")});
  const int64_t inner = made.writer().dimension(row::Stack{.parent = outer, .frame = frame("work", "")});
  made.writer().add(row::Sample{.track = thread, .start = 100, .duration = 1000, .dim = inner});
  made.writer().add(row::Sample{.track = thread, .start = 200, .duration = 1000, .dim = outer});
  const PerfettoTrace read = perfetto_of(*made.open());
  ASSERT_EQ(read.samples.size(), 2u);
  EXPECT_EQ(read.samples[0].frames, (std::vector<std::string>{"main", "work"}));
  EXPECT_EQ(read.samples[1].frames, std::vector<std::string>{"main"});
  EXPECT_EQ(read.samples[0].tid, 6);
  EXPECT_EQ(read.samples[0].time, 100);
}

TEST(Perfetto, DomainsCanBeLeftOut) {
  TraceMaker made;
  const int64_t process = made.process(5);
  const int64_t thread = made.thread_track(process, 5), queue = made.queue_track(process, made.device("G"), 1);
  made.call(thread, 0, 5, made.function("cl"), 1);
  made.call(thread, 10, 5, made.function("hip", event::Domain::kHipRuntime), 2);
  made.dispatch(queue, 20, 5, made.kernel("k"), 1);
  const auto trace = made.open();
  format::ExportOptions options;
  options.domains = 1ull << static_cast<unsigned>(event::Domain::kHipRuntime);
  options.tables = 1ull << static_cast<unsigned>(Table::kApi);
  const PerfettoTrace read = perfetto_of(*trace, options);
  EXPECT_EQ(read.of_category("opencl_api").size(), 0u);
  EXPECT_EQ(read.of_category("hip_api").size(), 1u);
  EXPECT_EQ(read.of_category("kernel_dispatch").size(), 0u);
}

}  // namespace
}  // namespace tacho::test
