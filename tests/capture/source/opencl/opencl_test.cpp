// The OpenCL source, seen from outside: programs run with libtacho.so on a pool, their records are checked, and what
// they print is compared with a run without it.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/clock.h"
#include "capture/source/opencl/pool_run.h"
#include "support/folder.h"

namespace tacho::test {
namespace {

using event::AllocationOperation, event::CopyDirection, event::CopyKind, event::LossReason, event::MemoryKind,
    event::Table;

// The folder of PoCL's compiled kernels, warm after the first test.
void warm() {
  std::filesystem::create_directories(getenv("POCL_CACHE_DIR"));
}

// A library instrumented for threads cannot be preloaded: its code runs before the runtime of the instrumentation.
#if defined(__SANITIZE_THREAD__)
constexpr bool kCanPreload = false;
#else
constexpr bool kCanPreload = true;
#endif

Outcome run_case(const std::vector<std::string>& words, const RunOptions& options = {}) {
  warm();
  std::vector<std::string> command{target("opencl_cases")};
  command.insert(command.end(), words.begin(), words.end());
  return run(command, options);
}

void expect_sound(const Outcome& run) {
  EXPECT_TRUE(run.problems.empty()) << run.problems.size() << " problems, first: " << run.problems.front();
  EXPECT_EQ(run.dropped, 0u);
}

uint32_t direction(const event::CopyRecord& copy) {
  return copy.header.value & 0xff;
}
uint32_t kind(const event::CopyRecord& copy) {
  return copy.header.value >> 8 & 0xff;
}

// The program's view is the same as without tacho

struct Way {
  const char* name;
  bool layer, preload;
};
class SameAsUntraced : public testing::TestWithParam<std::tuple<const char*, Way>> {};

TEST_P(SameAsUntraced, OutputAndExitCode) {
  const auto& [name, way] = GetParam();
  if (way.preload && !kCanPreload) GTEST_SKIP() << "not under this sanitizer";
  RunOptions options;
  options.layer = way.layer;
  options.preload = way.preload;
  const Outcome traced = run_case({name}, options);
  options.traced = false;
  const Outcome untraced = run_case({name}, options);
  EXPECT_EQ(traced.out, untraced.out);
  EXPECT_EQ(traced.err, untraced.err);
  EXPECT_EQ(traced.exit_code, untraced.exit_code);
  EXPECT_EQ(untraced.out.find("FAILED"), std::string::npos) << untraced.out;
  if (std::string_view(name) == "loaded" && !way.layer) {
    EXPECT_TRUE(traced.properties.empty());  // dlopen'ed functions are not interposed: only a layer sees them
    return;
  }
  EXPECT_EQ(traced.properties.at("opencl.attached"), way.layer ? "layer" : "interposed");
  expect_sound(traced);
  EXPECT_FALSE(traced.api.empty());
}

INSTANTIATE_TEST_SUITE_P(
    OpenCL, SameAsUntraced,
    testing::Combine(testing::Values("queue_properties", "profiling", "reference_counts", "copies", "images", "svm",
                                     "sub_buffers", "shapes", "native", "user_event", "failed_gate", "no_finish",
                                     "storm", "early_release", "threads", "callbacks", "many_objects", "command_buffer",
                                     "forked", "fork_beside", "builds", "late_functions", "loaded"),
                     testing::Values(Way{"layer", true, false}, Way{"layer_preloaded", true, true},
                                     Way{"interposed", false, true})),
    [](const auto& info) { return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param).name; });

// Records

TEST(OpenCL, StormIsComplete) {
  const Outcome run = run_case({"storm", "20000"});
  expect_sound(run);
  EXPECT_EQ(run.launches, 20000u);
  ASSERT_EQ(run.dispatches.size(), 20000u);
  EXPECT_EQ(run.calls("clEnqueueNDRangeKernel"), 20000u);
  std::set<uint32_t> ordinals;
  std::set<uint64_t> correlations;
  for (const Dispatch& dispatch : run.dispatches) {
    EXPECT_EQ(dispatch.kernel, "add_one");
    EXPECT_EQ(dispatch.grid[0], 256u);
    EXPECT_EQ(dispatch.grid[1], 1u);
    EXPECT_EQ(dispatch.group[0], 64u);
    ordinals.insert(dispatch.ordinal);
    correlations.insert(dispatch.correlation);
  }
  EXPECT_EQ(ordinals.size(), 20000u);
  EXPECT_EQ(*ordinals.rbegin(), 19999u);
  EXPECT_EQ(correlations.size(), 20000u);
  for (const size_t i : {size_t{0}, size_t{9999}, size_t{19999}}) {
    const Api* const call = run.call_of(run.dispatches[i].correlation);
    ASSERT_NE(call, nullptr);
    EXPECT_EQ(call->name, "clEnqueueNDRangeKernel");
  }
  ASSERT_EQ(run.queues.size(), 1u);
  EXPECT_EQ(run.queues[0].clock, static_cast<uint32_t>(event::DeviceClock::kMonotonicRaw));
  ASSERT_EQ(run.devices.size(), 1u);
  EXPECT_EQ(run.devices[0].kind, static_cast<uint32_t>(event::DeviceKind::kCpu));
}

// A dispatch starts after the call that enqueued it and ends before clFinish returns, in the clock that the queue
// states.
TEST(OpenCL, DeviceTimesLieInTheirCalls) {
  // Converted between two samples of both clocks, as tacho does; the rate that the target measures within 20 us at its
  // start is too coarse for that.
  const ClockTuple before = sample_clocks();
  const Outcome run = run_case({"storm", "200"});
  const ClockTuple after = sample_clocks();
  ASSERT_EQ(run.processes.size(), 1u);
  const event::ProcessRecord& process = run.processes[0];
  const bool ticks_are_tsc = process.ns_per_tick != 1.0;
  const double slope = static_cast<double>(after.raw - before.raw) / static_cast<double>(after.tsc - before.tsc);
  const auto raw = [&](uint64_t ticks) {
    if (!ticks_are_tsc) return static_cast<double>(ticks);
    return static_cast<double>(before.raw) + (static_cast<double>(ticks) - static_cast<double>(before.tsc)) * slope;
  };
  const Api* last = nullptr;
  for (const Api& call : run.api)
    if (call.name == "clEnqueueReadBuffer") last = &call;
  ASSERT_NE(last, nullptr);
  constexpr double kSlack = 20'000;
  for (const Dispatch& dispatch : run.dispatches) {
    const Api* const call = run.call_of(dispatch.correlation);
    ASSERT_NE(call, nullptr);
    EXPECT_GE(static_cast<double>(dispatch.queued), raw(call->start) - kSlack);
    EXPECT_LE(static_cast<double>(dispatch.queued), raw(call->end) + kSlack);
    EXPECT_LE(static_cast<double>(dispatch.end), raw(last->end) + kSlack);
  }
}

TEST(OpenCL, Shapes) {
  const Outcome run = run_case({"shapes"});
  expect_sound(run);
  std::vector<const Dispatch*> shape;
  const Dispatch *local = nullptr, *task = nullptr;
  for (const Dispatch& dispatch : run.dispatches) {
    if (dispatch.kernel == "shape") shape.push_back(&dispatch);
    if (dispatch.kernel == "with_local") local = &dispatch;
    if (dispatch.kernel == "add_one") task = &dispatch;
  }
  std::sort(shape.begin(), shape.end(), [](auto* a, auto* b) { return a->ordinal < b->ordinal; });
  ASSERT_EQ(shape.size(), 3u);
  EXPECT_EQ(std::vector<uint64_t>(shape[0]->grid, shape[0]->grid + 3), (std::vector<uint64_t>{8, 4, 2}));
  EXPECT_EQ(std::vector<uint64_t>(shape[0]->group, shape[0]->group + 3), (std::vector<uint64_t>{4, 2, 1}));
  EXPECT_EQ(std::vector<uint64_t>(shape[1]->grid, shape[1]->grid + 3), (std::vector<uint64_t>{8, 4, 1}));
  EXPECT_EQ(shape[1]->group[0], 0u);
  EXPECT_EQ(shape[2]->offset[0], 3u);
  EXPECT_EQ(shape[2]->grid[0], 8u);
  ASSERT_NE(local, nullptr);
  EXPECT_EQ(local->local_bytes, 64u);
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(task->kind, static_cast<uint32_t>(event::DispatchKind::kTask));
  size_t failed = 0;
  for (const Api& call : run.api) failed += call.name == "clEnqueueNDRangeKernel" && call.result != 0 ? 1 : 0;
  EXPECT_EQ(failed, 3u);
  EXPECT_EQ(run.launches, 5u);
}

TEST(OpenCL, CopiesWithBytesAndDirection) {
  const Outcome run = run_case({"copies"});
  expect_sound(run);
  std::map<std::tuple<CopyDirection, CopyKind>, std::vector<uint64_t>> seen;
  for (const event::CopyRecord& copy : run.copies) {
    seen[{static_cast<CopyDirection>(direction(copy)), static_cast<CopyKind>(kind(copy))}].push_back(copy.bytes);
    EXPECT_LE(copy.start, copy.end);
    EXPECT_NE(run.call_of(copy.correlation), nullptr);
  }
  const auto bytes = [&](CopyDirection direction, CopyKind kind) {
    auto found = seen[{direction, kind}];
    std::sort(found.begin(), found.end());
    return found;
  };
  using Bytes = std::vector<uint64_t>;
  EXPECT_EQ(bytes(CopyDirection::kHostToDevice, CopyKind::kPlain), Bytes{4096});
  EXPECT_EQ(bytes(CopyDirection::kDeviceToHost, CopyKind::kPlain), (Bytes{8, 4096}));
  EXPECT_EQ(bytes(CopyDirection::kDeviceToDevice, CopyKind::kPlain), Bytes{4096});
  EXPECT_EQ(bytes(CopyDirection::kHostToDevice, CopyKind::kRectangle), Bytes{256});
  EXPECT_EQ(bytes(CopyDirection::kDeviceToHost, CopyKind::kRectangle), Bytes{256});
  EXPECT_EQ(bytes(CopyDirection::kDeviceToDevice, CopyKind::kRectangle), Bytes{256});
  EXPECT_EQ(bytes(CopyDirection::kDeviceToHost, CopyKind::kMap), Bytes{1024});
  EXPECT_EQ(bytes(CopyDirection::kHostToDevice, CopyKind::kUnmap), Bytes{1024});
  EXPECT_EQ(bytes(CopyDirection::kDeviceToHost, CopyKind::kMigrate), Bytes{4096});
  EXPECT_EQ(bytes(CopyDirection::kHostToDevice, CopyKind::kMigrate), Bytes{4096});
  ASSERT_EQ(run.fills.size(), 1u);
  EXPECT_EQ(run.fills[0].bytes, 4096u);
  EXPECT_EQ(run.fills[0].pattern, 0xdeadbeefu);
  EXPECT_EQ(run.fills[0].pattern_bytes, 4u);
  for (const event::CopyRecord& copy : run.copies) {
    const Api* const call = run.call_of(copy.correlation);
    const bool waits = call->name != "clEnqueueCopyBuffer" && call->name != "clEnqueueCopyBufferRect" &&
                       call->name != "clEnqueueUnmapMemObject" && call->name != "clEnqueueMigrateMemObjects";
    if (call->name != "clEnqueueReadBuffer") {
      EXPECT_EQ((copy.header.flags & event::kCopyAsynchronous) == 0, waits) << call->name;
    }
  }
}

TEST(OpenCL, ImagesKnowTheirElements) {
  const Outcome run = run_case({"images"});
  expect_sound(run);
  ASSERT_EQ(run.copies.size(), 7u);
  for (const event::CopyRecord& copy : run.copies)
    if (kind(copy) != static_cast<uint32_t>(CopyKind::kUnmap)) {
      EXPECT_EQ(copy.bytes, 32u * 16 * 4);
    }
  ASSERT_EQ(run.fills.size(), 1u);
  EXPECT_EQ(run.fills[0].bytes, 32u * 16 * 4);
}

TEST(OpenCL, AllocationsAndFreesMatch) {
  for (const char* const name : {"copies", "images", "svm", "sub_buffers", "many_objects"}) {
    const Outcome run = run_case({name});
    std::map<uint64_t, uint64_t> live;
    size_t allocated = 0;
    auto records = run.allocations;
    std::sort(records.begin(), records.end(), [](auto& a, auto& b) { return a.start < b.start; });
    for (const event::AllocationRecord& record : records) {
      const auto operation = static_cast<AllocationOperation>(record.header.value & 0xff);
      if (operation == AllocationOperation::kAllocate) {
        ++allocated;
        EXPECT_TRUE(live.emplace(record.address, record.bytes).second) << name;
      } else {
        ASSERT_EQ(live.count(record.address), 1u) << name;
        EXPECT_EQ(live[record.address], record.bytes) << name;
        live.erase(record.address);
      }
    }
    EXPECT_GT(allocated, 0u) << name;
    EXPECT_TRUE(live.empty()) << name << ": " << live.size() << " never freed";
  }
}

TEST(OpenCL, SharedMemory) {
  const Outcome run = run_case({"svm"});
  expect_sound(run);
  std::multiset<uint32_t> directions;
  for (const event::CopyRecord& copy : run.copies) {
    EXPECT_EQ(copy.bytes, 4096u);
    directions.insert(direction(copy));
  }
  EXPECT_EQ(directions.count(static_cast<uint32_t>(CopyDirection::kDeviceToDevice)), 1u);
  EXPECT_EQ(directions.count(static_cast<uint32_t>(CopyDirection::kDeviceToHost)),
            2u);  // to the host, and the map
  ASSERT_EQ(run.fills.size(), 1u);
  EXPECT_EQ(run.fills[0].header.value, static_cast<uint32_t>(MemoryKind::kSvm));
}

TEST(OpenCL, OutOfOrderPastABlockedCommand) {
  const Outcome run = run_case({"user_event"});
  // The program leaves through _exit while one command waits for ever. The 300 others are complete; how many of them
  // are written depends on the flush period only for the last batch.
  EXPECT_EQ(run.launches, 301u);
  EXPECT_GE(run.dispatches.size(), 256u);  // the most that one wait collects
  EXPECT_LE(run.dispatches.size(), 300u);
  EXPECT_TRUE(run.problems.empty());
}

TEST(OpenCL, ExitWithoutFinishCountsWhatIsOnItsWay) {
  const Outcome run = run_case({"no_finish", "8"});
  expect_sound(run);
  const auto lost = run.losses.find({Table::kDispatch, LossReason::kKilled});
  const uint64_t in_flight = lost == run.losses.end() ? 0 : lost->second;
  EXPECT_EQ(run.launches, 9u);
  EXPECT_EQ(run.dispatches.size() + in_flight, 9u);
}

TEST(OpenCL, KilledProgramLosesAtMostAFlushPeriod) {
  RunOptions options;
  options.flush_period_ms = 200;
  const Outcome run = run_case({"killed", "1500"}, options);
  EXPECT_EQ(run.exit_code, 128 + 9);
  EXPECT_TRUE(run.problems.empty());
  ASSERT_GT(run.launches, 1000u);
  // Missing commands were enqueued within the last flush period (and some time for a busy machine).
  uint64_t newest_call = 0;
  std::set<uint64_t> recorded;
  for (const Dispatch& dispatch : run.dispatches) recorded.insert(dispatch.correlation);
  for (const Api& call : run.api) newest_call = std::max(newest_call, call.end);
  const double limit = 500e6 / run.processes[0].ns_per_tick;
  for (const Api& call : run.api)
    if (call.name == "clEnqueueNDRangeKernel" && recorded.count(call.correlation) == 0) {
      EXPECT_LT(static_cast<double>(newest_call - call.start), limit);
    }
}

// One launch and then nothing: no later call collects it, only the flush thread.
TEST(OpenCL, QuietProgramIsFlushed) {
  RunOptions options;
  options.flush_period_ms = 100;
  options.env["TACHO_TEST_IDLE_MS"] = "600";
  const Outcome run = run_case({"idle"}, options);
  EXPECT_EQ(run.exit_code, 128 + 9);
  EXPECT_EQ(run.dispatches.size(), 3u);
}

TEST(OpenCL, ForkedChildrenHaveTheirOwnRecords) {
  const Outcome run = run_case({"forked"});
  expect_sound(run);
  EXPECT_EQ(run.dispatches.size(), 50u + 51u);
  EXPECT_GE(run.processes.size(), 2u);
  std::multiset<uint32_t> ordinals;
  for (const Dispatch& dispatch : run.dispatches) ordinals.insert(dispatch.ordinal);
  EXPECT_EQ(ordinals.count(0), 2u);
}

TEST(OpenCL, ThreadsAndContexts) {
  const Outcome run = run_case({"threads", "300"});
  expect_sound(run);
  EXPECT_EQ(run.dispatches.size(), 8u * 300);
  EXPECT_EQ(run.queues.size(), 5u);
  std::set<uint32_t> threads;
  for (const Api& call : run.api) threads.insert(call.tid);
  EXPECT_EQ(threads.size(), 9u);
}

TEST(OpenCL, CommandBuffers) {
  const Outcome run = run_case({"command_buffer"});
  expect_sound(run);
  if (run.out.find("no command buffers") != std::string::npos) GTEST_SKIP() << "the runtime has none";
  ASSERT_EQ(run.dispatches.size(), 4u);
  EXPECT_EQ(run.dispatches[0].kernel, "command buffer of 2: add_one, scale");
  EXPECT_EQ(run.dispatches[0].kind, static_cast<uint32_t>(event::DispatchKind::kGraph));
  EXPECT_EQ(run.calls("clCommandNDRangeKernelKHR"), 2u);
}

TEST(OpenCL, NativeKernel) {
  const Outcome run = run_case({"native"});
  expect_sound(run);
  ASSERT_EQ(run.dispatches.size(), 1u);
  EXPECT_EQ(run.dispatches[0].kind, static_cast<uint32_t>(event::DispatchKind::kNativeKernel));
}

// Options

TEST(OpenCL, KernelFilter) {
  RunOptions options;
  options.config = "kernel_include=^(shape|add)\nkernel_exclude=one$\n";
  const Outcome run = run_case({"shapes"}, options);
  expect_sound(run);
  for (const Dispatch& dispatch : run.dispatches) EXPECT_EQ(dispatch.kernel, "shape");
  EXPECT_EQ(run.dispatches.size(), 3u);
  EXPECT_EQ(run.launches, 5u);
  EXPECT_EQ(run.losses.at({Table::kDispatch, LossReason::kFiltered}), 2u);
}

TEST(OpenCL, BadFilterIsSaid) {
  RunOptions options;
  options.config = "kernel_include=(\n";
  const Outcome run = run_case({"shapes"}, options);
  ASSERT_EQ(run.notes.size(), 1u);
  EXPECT_NE(run.notes[0].find("kernel_include"), std::string::npos);
  EXPECT_EQ(run.dispatches.size(), 5u);
}

TEST(OpenCL, PausedRecordsNothingButCountsLaunches) {
  RunOptions options;
  options.start_paused = true;
  const Outcome run = run_case({"storm", "100"}, options);
  expect_sound(run);
  EXPECT_TRUE(run.api.empty());
  EXPECT_TRUE(run.dispatches.empty());
  EXPECT_EQ(run.launches, 100u);
  EXPECT_EQ(run.losses.at({Table::kDispatch, LossReason::kFiltered}), 100u);  // so that nobody misses them
}

TEST(OpenCL, OnlyApi) {
  RunOptions options;
  options.sources = tape::source_bit::kApi;
  const Outcome run = run_case({"storm", "100"}, options);
  expect_sound(run);
  EXPECT_EQ(run.calls("clEnqueueNDRangeKernel"), 100u);
  EXPECT_TRUE(run.dispatches.empty());
  EXPECT_TRUE(run.copies.empty());
  EXPECT_TRUE(run.allocations.empty());
}

TEST(OpenCL, OnlyKernels) {
  RunOptions options;
  options.sources = tape::source_bit::kDispatch;
  const Outcome run = run_case({"storm", "100"}, options);
  expect_sound(run);
  EXPECT_TRUE(run.api.empty());
  EXPECT_EQ(run.dispatches.size(), 100u);
  EXPECT_TRUE(run.copies.empty());
}

// A pool far too small: rows are dropped and counted, and the program does not notice.
TEST(OpenCL, FullPoolIsCounted) {
  RunOptions options;
  options.pool_bytes = 64 * 1024 * 4;
  const Outcome run = run_case({"storm", "2000"}, options);
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, "sum 512000\n");
  EXPECT_EQ(run.launches, 2000u);
}

// Other loaders and runtimes

using test::Folder;

constexpr const char* kOclgrindIcd = "/usr/lib/oclgrind/liboclgrind-rt-icd.so";
constexpr const char* kOclgrindLibrary = "/usr/lib/oclgrind/liboclgrind-rt.so";

TEST(OpenCL, OclgrindsEndlessFunctionsAreAnswered) {
  if (access(kOclgrindIcd, R_OK) != 0) GTEST_SKIP() << "oclgrind is not installed";
  const Folder vendors;
  std::ofstream(vendors.path() + "/oclgrind.icd") << kOclgrindIcd << "\n";
  RunOptions options;
  options.env["OCL_ICD_VENDORS"] = vendors.path() + "/";
  for (const bool preload : {false, true}) {
    if (preload && !kCanPreload) continue;
    options.preload = preload;
    const Outcome run = run_case({"late_functions"}, options);
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
    EXPECT_NE(run.out.find("timer -59 -59\n"), std::string::npos) << run.out;
    EXPECT_NE(run.out.find("queue 1 0\n"), std::string::npos) << run.out;
    EXPECT_EQ(run.calls("clGetDeviceAndHostTimer"), 1u);
  }
  const Outcome run = run_case({"storm", "20"}, options);
  expect_sound(run);
  EXPECT_EQ(run.out, "sum 5120\n");
  EXPECT_EQ(run.dispatches.size(), 20u);
  EXPECT_EQ(run.queues.at(0).clock, static_cast<uint32_t>(event::DeviceClock::kRealtime));
}

TEST(OpenCL, TwoRuntimesInOneProcess) {
  if (access(kOclgrindIcd, R_OK) != 0) GTEST_SKIP() << "oclgrind is not installed";
  const Folder vendors;
  std::ofstream(vendors.path() + "/oclgrind.icd") << kOclgrindIcd << "\n";
  std::filesystem::copy_file("/etc/OpenCL/vendors/pocl.icd", vendors.path() + "/pocl.icd");
  RunOptions options;
  options.env["OCL_ICD_VENDORS"] = vendors.path() + "/";
  const Outcome run = run_case({"all_devices"}, options);
  expect_sound(run);
  EXPECT_EQ(run.devices.size(), 2u);
  EXPECT_EQ(run.dispatches.size(), 2u * 3);
  std::set<uint32_t> clocks;
  for (const event::QueueRecord& queue : run.queues) clocks.insert(queue.clock);
  EXPECT_EQ(clocks.size(), 2u);
}

// A runtime that nobody knows: its clock is found by measuring, or paired.
class UnknownRuntime : public testing::Test {
 protected:
  UnknownRuntime() {
    std::ofstream(vendors_.path() + "/odd.icd") << std::filesystem::absolute(target("odd_icd.so")).string() << "\n";
    options_.env["OCL_ICD_VENDORS"] = vendors_.path() + "/";
  }
  Folder vendors_;
  RunOptions options_;
};

TEST_F(UnknownRuntime, ClockIsMeasured) {
  using event::DeviceClock;
  for (const auto& [name, clock] :
       {std::pair{"raw", DeviceClock::kMonotonicRaw}, std::pair{"monotonic", DeviceClock::kMonotonic},
        std::pair{"realtime", DeviceClock::kRealtime}, std::pair{"odd", DeviceClock::kPaired}}) {
    options_.env["ODD_CLOCK"] = name;
    const Outcome run = run_case({"storm", "60"}, options_);
    expect_sound(run);
    ASSERT_EQ(run.queues.size(), 1u);
    EXPECT_EQ(run.queues[0].clock, static_cast<uint32_t>(clock)) << name;
    EXPECT_EQ(run.dispatches.size(), 60u);
    EXPECT_EQ(run.dispatches[0].private_bytes, 48u);
    EXPECT_EQ(run.dispatches[0].local_bytes, 1024u);
    EXPECT_EQ(run.pairs.empty(), clock != DeviceClock::kPaired);
    // Without a timer, the narrowest call of a second gives the pair.
    for (const event::ClockPairRecord& pair : run.pairs) EXPECT_LT(pair.uncertainty, 10'000'000u);
  }
}

TEST_F(UnknownRuntime, TimerGivesPairs) {
  options_.env["ODD_TIMER"] = "1";
  options_.flush_period_ms = 50;
  options_.env["TACHO_TEST_IDLE_MS"] = "300";
  const Outcome run = run_case({"idle"}, options_);
  EXPECT_TRUE(run.problems.empty());
  ASSERT_GE(run.pairs.size(), 3u);
  const double ns_per_tick = run.processes.at(0).ns_per_tick;
  const event::ClockPairRecord &first = run.pairs.front(), &last = run.pairs.back();
  const double host = static_cast<double>(last.host - first.host) * ns_per_tick;
  EXPECT_NEAR(host, static_cast<double>(last.device - first.device), host * 0.01 + 1e6);
  EXPECT_EQ(run.devices.at(0).clock_error_ns, 10'000u);
}

TEST_F(UnknownRuntime, FailedCommandsKeepTheirRow) {
  options_.env["ODD_FAIL"] = "3";
  const Outcome run = run_case({"storm", "60"}, options_);
  EXPECT_TRUE(run.problems.empty());
  ASSERT_EQ(run.dispatches.size(), 60u);
  const auto unknown =
      std::count_if(run.dispatches.begin(), run.dispatches.end(), [](const Dispatch& d) { return d.end == 0; });
  EXPECT_EQ(unknown, 20);
}

TEST_F(UnknownRuntime, UnifiedSharedMemory) {
  const Outcome run = run_case({"usm"}, options_);
  expect_sound(run);
  EXPECT_EQ(run.out, "usm: 6\n");
  ASSERT_EQ(run.copies.size(), 1u);
  EXPECT_EQ(direction(run.copies[0]), static_cast<uint32_t>(CopyDirection::kDeviceToHost));
  EXPECT_EQ(run.copies[0].bytes, 4096u);
  ASSERT_EQ(run.fills.size(), 1u);
  EXPECT_EQ(run.allocations.size(), 4u);
  EXPECT_EQ(run.calls("clEnqueueMemcpyINTEL"), 1u);
}

// Oclgrind's library in place of the loader: no layers, objects of one runtime only, which calls itself through its
// exported names.
TEST(OpenCL, LibraryWithoutLayers) {
  if (!kCanPreload) GTEST_SKIP() << "not under this sanitizer";
  if (access(kOclgrindLibrary, R_OK) != 0) GTEST_SKIP() << "oclgrind is not installed";
  const Folder libraries;
  std::filesystem::create_symlink(kOclgrindLibrary, libraries.path() + "/libOpenCL.so.1");
  RunOptions options;
  options.env["LD_LIBRARY_PATH"] = libraries.path();
  options.preload = true;
  const Outcome run = run_case({"storm", "20"}, options);
  EXPECT_EQ(run.properties.at("opencl.attached"), "interposed");
  EXPECT_TRUE(run.problems.empty());
  EXPECT_EQ(run.out, "sum 5120\n");
  EXPECT_EQ(run.dispatches.size(), 20u);
  EXPECT_EQ(run.calls("clEnqueueNDRangeKernel"), 20u);
  EXPECT_EQ(run.calls("clReleaseKernel"), 0u);   // the program never calls it, the library itself does
  EXPECT_EQ(run.calls("clGetPlatformIDs"), 1u);  // the first call is recorded too
  ASSERT_EQ(run.allocations.size(), 1u);
  options.preload = false;
  const Outcome missed = run_case({"storm", "20"}, options);
  EXPECT_EQ(missed.out, "sum 5120\n");
  EXPECT_TRUE(missed.properties.empty());  // which the launcher reports to the user
}

TEST(OpenCL, StackedLayersAndALayerTwice) {
  RunOptions options;
  options.env["OPENCL_LAYERS"] = library() + ":" + target("opencl_layer.so") + ":" + library();
  const Outcome run = run_case({"storm", "50"}, options);
  EXPECT_TRUE(run.problems.empty());
  EXPECT_EQ(run.out, "sum 12800\n");
  EXPECT_EQ(run.err, "other layer: 50 launches\n");
  EXPECT_EQ(run.dispatches.size(), 50u);
  EXPECT_EQ(run.calls("clEnqueueNDRangeKernel"), 50u);
}

TEST(OpenCL, NotTracedCostsNothingAndSaysNothing) {
  if (!kCanPreload) GTEST_SKIP() << "not under this sanitizer";
  RunOptions options;
  options.preload = true;
  options.env["TACHO_POOL"] = "";
  const Outcome run = run_case({"storm", "50"}, options);
  EXPECT_EQ(run.out, "sum 12800\n");
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_TRUE(run.processes.empty());
}

TEST(OpenCL, PythonProgram) {
  const std::string python = "/usr/bin/python3";
  if (system("/usr/bin/python3 -c 'import pyopencl' 2>/dev/null") != 0) GTEST_SKIP() << "pyopencl is not installed";
  warm();
  const Outcome run = test::run({python, "-c", R"(
import pyopencl as cl, numpy as np
c = cl.create_some_context(interactive=False)
q = cl.CommandQueue(c)
a = np.arange(1 << 16, dtype=np.float32)
i = cl.Buffer(c, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=a)
o = cl.Buffer(c, cl.mem_flags.WRITE_ONLY, a.nbytes)
p = cl.Program(c, 'kernel void sq(global const float* a, global float* o) { int i = get_global_id(0); o[i] = a[i] * a[i]; }').build()
for n in range(10): p.sq(q, a.shape, None, i, o)
r = np.empty_like(a)
cl.enqueue_copy(q, r, o)
print(np.allclose(r, a * a), q.properties)
)"});
  EXPECT_EQ(run.out, "True 0\n") << run.err;
  EXPECT_EQ(run.dispatches.size(), 10u);
  EXPECT_TRUE(run.problems.empty());
}

// Examples

TEST(OpenCL, VcopyExample) {
  warm();
  const Outcome run = test::run({example("vcopy"), "-n", "1048576", "-b", "256", "-i", "20"});
  expect_sound(run);
  EXPECT_EQ(run.out, "vcopy testing on GCD 0\n"
                     "Finished allocating vectors on the CPU\n"
                     "Finished allocating vectors on the GPU\n"
                     "Finished copying vectors to the GPU\n"
                     "sw thinks it moved 1.000000 KB per wave\n"
                     "Total threads: 1048576, Grid Size: 4096 block Size:256, Wavefronts:16384:\n"
                     "Launching the  kernel on the GPU\n"
                     "Finished executing kernel\n"
                     "Finished copying the output vector from the GPU to the CPU\n"
                     "Releasing GPU memory\n"
                     "Releasing CPU memory\n");
  ASSERT_EQ(run.dispatches.size(), 20u);
  EXPECT_EQ(run.dispatches[0].kernel, "vecCopy");
  EXPECT_EQ(run.dispatches[0].grid[0], 1048576u);
  EXPECT_EQ(run.dispatches[0].group[0], 256u);
  EXPECT_EQ(run.allocations.size(), 4u);
}

}  // namespace
}  // namespace tacho::test
