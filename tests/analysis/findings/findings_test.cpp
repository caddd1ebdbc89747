// Findings: for each rule a trace in which its fault is planted, one without it, and one that is too near the threshold
// to tell; rules that lack inputs; sentences, spans, savings and order.
#include "analysis/findings/findings.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "analysis/findings/quantities.h"
#include "base/format.h"
#include "metric/catalog/builtin/builtin.h"
#include "trace/rows.h"

namespace tacho::analysis {
namespace {

using event::Table;
namespace row = event::row;
using trace::Folder;
using trace::must;
using trace::TraceWriter;

constexpr int64_t kUs = 1000, kMs = 1000 * kUs;

struct Launch {
  int64_t call = 5 * kUs;   // the launching call
  int64_t delay = 2 * kUs;  // from its end to the kernel's start, on an idle queue
  int stream = 0;
  const char* name = "k";
  int64_t grid = 1 << 20, group = 256;
  int64_t registers = event::kUnknown, shared = 0;
};
struct Copy {
  int64_t bytes = 1 << 20;
  bool blocking = false;
  bool tell = true;  // whether the row says it
  event::CopyDirection direction = event::CopyDirection::kHostToDevice;
  event::MemoryKind memory = event::MemoryKind::kPinned;
  int stream = 0;
  int64_t call = 5 * kUs;
};
struct Machine {
  event::DeviceKind kind = event::DeviceKind::kGpu;
  int64_t units = 100;
  const char* architecture = "";
  int devices = 1;
};

// A program with one thread, and streams that run their operations in order.
class Planted {
 public:
  explicit Planted(const Machine& machine = {}) : writer_(must(TraceWriter::create(folder_ / "t.tacho", {}))) {
    process_ = writer_->dimension(row::Process{.pid = 71, .parent_pid = 0, .start = 0, .name = writer_->string("app")});
    const int64_t thread = writer_->dimension(row::Thread{.process = process_, .tid = 71});
    main_ = writer_->dimension(
        row::Track{.kind = event::TrackKind::kThread, .process = process_, .thread = thread, .native = 71});
    for (int d = 0; d < machine.devices; ++d) {
      const int64_t device = writer_->dimension(row::Device{.process = process_,
                                                            .kind = machine.kind,
                                                            .index = d,
                                                            .name = writer_->string("Device"),
                                                            .architecture = writer_->string(machine.architecture)});
      if (machine.units > 0)
        writer_->property(Table::kDevice, device, "compute_units", fmt::format("{}", machine.units));
      for (int64_t s = 0; s < 2; ++s)
        streams_.push_back(
            {writer_->dimension(
                 row::Track{.kind = event::TrackKind::kQueue, .process = process_, .device = device, .native = s + 1}),
             0});
    }
  }

  int64_t now = kMs;
  void compute(int64_t ns) { now += ns; }
  void call(std::string_view name, int64_t ns, int64_t correlation = 0,
            event::Domain domain = event::Domain::kCudaRuntime) {
    writer_->add(row::Api{.track = main_,
                          .start = now,
                          .duration = ns,
                          .dim = writer_->dimension(row::Function{.name = writer_->string(name), .domain = domain}),
                          .correlation = correlation,
                          .result = 0});
    now += ns;
  }
  void launch(int64_t duration, const Launch& how = {}) {
    call("cudaLaunchKernel", how.call, ++correlation_);
    const int64_t start = std::max(now + how.delay, stream(how.stream).free);
    kernel(start, duration, how, correlation_);
  }
  void waiting_launch(int64_t duration, int64_t late) {
    const int64_t start = now + 5 * kUs;
    call("cudaLaunchKernel", 5 * kUs + duration + late, ++correlation_);
    kernel(start, duration, {}, correlation_);
  }
  void kernel(int64_t start, int64_t duration, const Launch& how, int64_t correlation) {
    writer_->add(row::Dispatch{.track = stream(how.stream).track,
                               .start = start,
                               .duration = duration,
                               .dim = writer_->dimension(row::Kernel{.name = writer_->string(how.name),
                                                                     .grid_x = how.grid,
                                                                     .grid_y = 1,
                                                                     .grid_z = 1,
                                                                     .group_x = how.group,
                                                                     .group_y = 1,
                                                                     .group_z = 1,
                                                                     .registers = how.registers,
                                                                     .shared_static = how.shared}),
                               .correlation = correlation,
                               .queued_ahead = 0,
                               .submit_ahead = 0});
    stream(how.stream).free = start + duration;
    busy_until_ = std::max(busy_until_, start + duration);
  }
  void copy(int64_t duration, const Copy& how = {}) {
    const int64_t start = std::max(now + how.call, stream(how.stream).free);
    call("cudaMemcpy", how.blocking ? start + duration + kUs - now : how.call, ++correlation_);
    const bool up = how.direction == event::CopyDirection::kHostToDevice;
    writer_->add(row::Copy{
        .track = stream(how.stream).track,
        .start = start,
        .duration = duration,
        .dim = writer_->dimension(row::CopyShape{.direction = how.direction,
                                                 .source_memory = up ? how.memory : event::MemoryKind::kDevice,
                                                 .target_memory = up ? event::MemoryKind::kDevice : how.memory,
                                                 .kind = event::CopyKind::kPlain,
                                                 .asynchronous = !how.tell      ? event::kUnknown
                                                                 : how.blocking ? 0
                                                                                : 1}),
        .correlation = correlation_,
        .bytes = how.bytes,
        .queued_ahead = 0,
        .submit_ahead = 0});
    stream(how.stream).free = start + duration;
    busy_until_ = std::max(busy_until_, start + duration);
  }
  // Until all that was asked for is done.
  void wait() { call("cudaDeviceSynchronize", std::max(busy_until_ - now, int64_t{0}) + 3 * kUs); }
  void range(std::string_view name, int64_t from, int64_t to) {
    writer_->add(row::Marker{
        .track = main_,
        .start = from,
        .duration = to - from,
        .dim = writer_->dimension(row::Label{.name = writer_->string(name), .kind = event::MarkerKind::kPushPop}),
        .payload = 0});
  }
  TraceWriter& writer() { return *writer_; }
  int64_t process() const { return process_; }
  int64_t main() const { return main_; }

  Findings find(const FindOptions& options = {}) {
    trace_ = must(writer_->finish_and_open());
    return must(analysis::find(*trace_, options));
  }

 private:
  struct Stream {
    int64_t track, free;
  };
  Stream& stream(int number) { return streams_[static_cast<size_t>(number)]; }

  Folder folder_;
  std::unique_ptr<TraceWriter> writer_;
  std::shared_ptr<const trace::Trace> trace_;
  int64_t process_ = 0, main_ = 0, correlation_ = 0, busy_until_ = 0;
  std::vector<Stream> streams_;
};

const TraceFinding* finding_of(const Findings& findings, std::string_view rule) {
  for (const TraceFinding& finding : findings.findings)
    if (finding.rule == rule) return &finding;
  return nullptr;
}

std::string state_of(const Findings& findings, std::string_view rule) {
  if (const TraceFinding* finding = finding_of(findings, rule)) return finding->possible ? "possible" : "found";
  for (const UnjudgedRule& unjudged : findings.not_judged)
    if (unjudged.rule == rule) return "not judged";
  return "silent";
}

std::string all_of(const Findings& findings) {
  std::string out;
  for (const TraceFinding& finding : findings.findings)
    out += fmt::format("{} {} {}: {}\n", finding.rule, finding.possible ? "possible" : "found", savings_text(finding),
                       finding.sentence);
  for (const UnjudgedRule& rule : findings.not_judged) out += fmt::format("{} needs {}\n", rule.rule, rule.needs);
  return out;
}

void expect_state(const Findings& findings, std::string_view rule, std::string_view state) {
  EXPECT_EQ(state_of(findings, rule), state) << rule << "\n" << all_of(findings);
}

// The device idles

// Kernels of 10 us; the host takes `code` between launches.
Findings launches(int64_t code, int64_t kernel = 10 * kUs) {
  Planted planted;
  for (int i = 0; i < 500; ++i) {
    planted.launch(kernel);
    planted.compute(code);
  }
  return planted.find();
}

TEST(Findings, LaunchBound) {
  const Findings bound = launches(20 * kUs);
  expect_state(bound, "launch-bound", "found");
  // 5 us of call and 20 of code against 10 us of work: 15 of 25 us idle, 499 times.
  ASSERT_NE(finding_of(bound, "launch-bound"), nullptr);
  const TraceFinding& finding = *finding_of(bound, "launch-bound");
  EXPECT_NE(finding.sentence.find("GPU 0 idled 7.49 ms (60 % of its span) in 499 gaps of 15.00 us"), std::string::npos)
      << finding.sentence;
  EXPECT_NEAR(static_cast<double>(finding.saves->second), 499 * 15e3, 10e3);
  EXPECT_NEAR(static_cast<double>(finding.saves->first), 499 * 7.5e3, 10e3);
  ASSERT_EQ(finding.spans.size(), 1u) << "gaps of one stretch are one span";
  EXPECT_EQ(finding.spans[0].tracks.size(), 2u) << "the queue and the thread";
  EXPECT_GT(finding.spans[0].to - finding.spans[0].from, 12 * kMs);
  expect_state(launches(0), "launch-bound", "silent");
  expect_state(launches(20 * kUs, 100 * kUs), "launch-bound", "silent");
  expect_state(launches(6'900), "launch-bound", "possible");    // 1.9 of 11.9 us: 16 %
  expect_state(launches(300 * kUs), "launch-bound", "silent");  // that is no launching any more
}

// Initialisation with its own kernels, a long import, and then 400 launches of two kernels.
Findings start_and_loop(int64_t import, int64_t code_in_start, int64_t code_in_loop) {
  Planted planted;
  Launch fill, gemm, norm;
  fill.name = "fill";
  gemm.name = "gemm";
  norm.name = "norm";
  for (int i = 0; i < 60; ++i) {
    planted.launch(2 * kUs, fill);
    planted.compute(code_in_start);
  }
  planted.compute(import);
  for (int i = 0; i < 400; ++i) {
    planted.launch(100 * kUs, gemm);
    planted.compute(code_in_loop);
    planted.launch(5 * kUs, i % 10 == 0 ? fill : norm);
    planted.compute(code_in_loop);
  }
  return planted.find();
}

TEST(Findings, IdleStart) {
  // 60 launches of 90 us of own code, and an import of 80 ms; then the device is never without work.
  const Findings once = start_and_loop(80 * kMs, 90 * kUs, 0);
  expect_state(once, "idle-start", "possible");
  for (const char* rule : {"launch-bound", "host-computes", "tiny-kernels", "queued-gaps"})
    expect_state(once, rule, "silent");
  ASSERT_NE(finding_of(once, "idle-start"), nullptr);
  const TraceFinding& finding = *finding_of(once, "idle-start");
  EXPECT_NE(finding.sentence.find("in most of it the thread that launches was in none of the GPU's calls"),
            std::string::npos)
      << finding.sentence;
  EXPECT_FALSE(finding.saves) << "it is no reason to come before what the run does all the time";
  EXPECT_EQ(finding.doubt, "it happens once, and a longer run has no more of it");
  ASSERT_FALSE(finding.spans.empty());
  EXPECT_NEAR(static_cast<double>(finding.spans[0].to - finding.spans[0].from), 85.7e6, 1e6) << "with its neighbours";
  // A loop that is launch-bound itself stays so, and is measured without the start-up.
  const Findings both = start_and_loop(80 * kMs, 90 * kUs, 90 * kUs);
  expect_state(both, "launch-bound", "found");
  EXPECT_NE(finding_of(both, "launch-bound")->sentence.find("of its span; the first 85"), std::string::npos)
      << finding_of(both, "launch-bound")->sentence;
  // No start-up: the loop from the beginning, or as many kernels before as in it.
  expect_state(start_and_loop(0, 0, 0), "idle-start", "silent");
  expect_state(launches(20 * kUs), "idle-start", "silent");
}

TEST(Findings, HostWaits) {
  const auto steps = [](int64_t code, bool wait) {
    Planted planted;
    for (int i = 0; i < 50; ++i) {
      planted.launch(kMs);
      if (wait) planted.wait();
      planted.compute(code);
    }
    return planted.find();
  };
  const Findings waits = steps(90 * kUs, true);
  expect_state(waits, "host-waits", "found");
  ASSERT_NE(finding_of(waits, "host-waits"), nullptr);
  const TraceFinding& finding = *finding_of(waits, "host-waits");
  EXPECT_EQ(finding.saves->first, 0);
  EXPECT_NEAR(static_cast<double>(finding.saves->second), 49 * 100e3, 200e3);
  EXPECT_EQ(finding.spans.size(), 5u);
  expect_state(steps(90 * kUs, false), "host-waits", "silent");
  expect_state(steps(0, true), "host-waits", "silent");
  expect_state(steps(45 * kUs, true), "host-waits", "possible");  // 55 us of 1.05 ms
}

TEST(Findings, HostComputes) {
  const auto steps = [](int64_t code) {
    Planted planted;
    for (int i = 0; i < 50; ++i) {
      planted.launch(10 * kMs);
      planted.wait();
      planted.compute(code);
    }
    return planted.find();
  };
  expect_state(steps(5 * kMs), "host-computes", "found");
  expect_state(steps(5 * kMs), "host-waits", "silent");
  expect_state(steps(20 * kUs), "host-computes", "silent");
  expect_state(steps(530 * kUs), "host-computes", "possible");
}

TEST(Findings, DataLoading) {
  const auto steps = [](int64_t loading, const char* name) {
    Planted planted;
    for (int i = 0; i < 50; ++i) {
      planted.launch(10 * kMs);
      planted.wait();
      planted.range(name, planted.now, planted.now + loading);
      planted.compute(loading);
    }
    return planted.find();
  };
  const Findings found = steps(5 * kMs, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
  expect_state(found, "data-loading", "found");
  EXPECT_NEAR(static_cast<double>(finding_of(found, "data-loading")->saves->second), 49 * 5e6, 5e6);
  expect_state(steps(10 * kUs, "dataloader"), "data-loading", "silent");
  expect_state(steps(530 * kUs, "dataloader"), "data-loading", "possible");
  expect_state(steps(5 * kMs, "forward"), "data-loading", "not judged");
}

// Of 50 steps each waits and then runs `work` of the host for a time.
Findings host_work(const char* work, int64_t time, int64_t range = 0) {
  Planted planted;
  for (int i = 0; i < 50; ++i) {
    planted.launch(10 * kMs);
    planted.wait();
    planted.range(work, planted.now, planted.now + (range == 0 ? time : range));
    planted.compute(time);
  }
  return planted.find();
}

TEST(Findings, RecompilationAndGarbageCollection) {
  const Findings compiled = host_work("_compile.compile_inner (dynamo_timed)", 5 * kMs);
  expect_state(compiled, "recompilation", "found");
  expect_state(compiled, "garbage-collection", "silent");
  expect_state(compiled, "host-computes", "silent");  // it has a rule of its own
  EXPECT_NE(finding_of(compiled, "recompilation")->sentence.find("in 49 gaps while the host compiled"),
            std::string::npos)
      << finding_of(compiled, "recompilation")->sentence;
  expect_state(host_work("_compile.compile_inner (dynamo_timed)", 530 * kUs), "recompilation", "possible");
  const Findings collected = host_work("Python GC", 5 * kMs);
  expect_state(collected, "garbage-collection", "found");
  expect_state(collected, "recompilation", "silent");
  expect_state(host_work("Python GC", 205 * kUs), "garbage-collection", "possible");
  const Findings in_stream = host_work("host function of stream 7", 5 * kMs);
  expect_state(in_stream, "host-functions", "found");
  expect_state(in_stream, "garbage-collection", "silent");
  EXPECT_NE(finding_of(in_stream, "host-functions")->sentence.find("in 49 gaps while functions of the host ran"),
            std::string::npos)
      << finding_of(in_stream, "host-functions")->sentence;
  expect_state(host_work("host function of stream 7", 530 * kUs), "host-functions", "possible");
  expect_state(host_work("my host function", 5 * kMs), "host-functions", "silent");
  // A tenth of the host's time: then its own code is what the device waits for.
  expect_state(host_work("Python GC", 5 * kMs, 500 * kUs), "host-computes", "found");
}

TEST(Findings, NamesWhatTheHostDid) {
  const Findings named = host_work("augment#17", 5 * kMs);
  expect_state(named, "host-computes", "found");
  const TraceFinding& finding = *finding_of(named, "host-computes");
  EXPECT_NE(finding.sentence.find("100 % of the time in augment; most of these gaps follow a wait for the device."),
            std::string::npos)
      << finding.sentence;
  EXPECT_NE(all_of(named).find("host-computes"), std::string::npos);
  EXPECT_TRUE(std::any_of(finding.evidence.begin(), finding.evidence.end(), [](const std::string& line) {
    return line == "Such gaps after a wait for the device: 49";
  })) << fmt::format("{}", fmt::join(finding.evidence, "\n"));
  // Less than a third of it says nothing, nor does a range around all.
  EXPECT_NE(finding_of(host_work("augment", 5 * kMs, kMs), "host-computes")->sentence.find("it computed, read data"),
            std::string::npos);
  EXPECT_NE(finding_of(host_work("ProfilerStep#3", 5 * kMs), "host-computes")->sentence.find("it computed, read data"),
            std::string::npos);
}

TEST(Findings, QueuedGaps) {
  const auto steps = [](int64_t gap) {
    Planted planted;
    int64_t at = planted.now + 100 * kUs;
    for (int i = 0; i < 200; ++i) planted.call("cudaLaunchKernel", 100, i + 1);
    for (int i = 0; i < 200; ++i, at += 20 * kUs + gap) planted.kernel(at, 20 * kUs, {}, i + 1);
    return planted.find();
  };
  expect_state(steps(10 * kUs), "queued-gaps", "found");
  expect_state(steps(10 * kUs), "launch-bound", "silent");
  expect_state(steps(kUs), "queued-gaps", "silent");
  expect_state(steps(2'300), "queued-gaps", "possible");
}

TEST(Findings, AllocationChurn) {
  const auto steps = [](int64_t call, int warm) {
    Planted planted;
    for (int i = 0; i < 200; ++i) {
      if (i >= warm) {
        planted.call("cudaMalloc", call);
        planted.call("cudaFree", call);
      }
      planted.launch(100 * kUs);
      planted.wait();
    }
    return planted.find();
  };
  expect_state(steps(5 * kUs, 0), "allocation-churn", "found");
  expect_state(steps(5 * kUs, 180), "allocation-churn", "silent");
  expect_state(steps(100, 0), "allocation-churn", "silent");
  expect_state(steps(1'280, 0), "allocation-churn", "possible");
  Planted before;  // once, before the first launch
  for (int i = 0; i < 200; ++i) before.call("cudaMalloc", 100 * kUs);
  for (int i = 0; i < 200; ++i) before.launch(100 * kUs);
  expect_state(before.find(), "allocation-churn", "silent");
}

TEST(Findings, ReturnedMemory) {
  // As torch.cuda.empty_cache() after each of a few steps does.
  const auto steps = [](int count, int segments, int64_t call) {
    Planted planted;
    for (int step = 0; step < count; ++step) {
      for (int i = 0; i < 20; ++i) {
        if (i > 0 && i <= segments && step > 0) planted.call("cudaMalloc", call);
        planted.launch(100 * kUs);
      }
      planted.wait();
      for (int i = 0; i < segments; ++i) planted.call("cudaFree", call);
    }
    return planted.find();
  };
  const Findings found = steps(2, 12, 200 * kUs);
  expect_state(found, "returned-memory", "found");
  EXPECT_NE(finding_of(found, "returned-memory")->sentence.find("gave memory back 12 times and got memory 12 times"),
            std::string::npos)
      << finding_of(found, "returned-memory")->sentence;
  expect_state(steps(2, 3, 200 * kUs), "returned-memory", "silent");
  expect_state(steps(2, 12, 100), "returned-memory", "silent");
  expect_state(steps(6, 12, 200 * kUs), "returned-memory", "silent");  // allocation-churn says it
  expect_state(steps(6, 12, 200 * kUs), "allocation-churn", "found");
}

TEST(Findings, SteadyAllocations) {
  // One in each of `count` steps from `first` on.
  const auto steps = [](int first, int count, int64_t call) {
    Planted planted;
    for (int step = 0; step < 16; ++step)
      for (int i = 0; i < 20; ++i) {
        if (i == 10 && step >= first && step < first + count) planted.call("cudaMalloc", call);
        planted.launch(100 * kUs);
        if (i == 19) planted.wait();
      }
    return planted.find();
  };
  const Findings found = steps(0, 16, 100 * kUs);
  expect_state(found, "steady-allocations", "found");
  EXPECT_NE(finding_of(found, "steady-allocations")->sentence.find("got memory 15 times, in 8 of 8 equal parts"),
            std::string::npos)
      << finding_of(found, "steady-allocations")->sentence;
  expect_state(steps(0, 8, 400 * kUs), "steady-allocations", "silent");  // the first half alone
  expect_state(steps(0, 16, 10 * kUs), "steady-allocations", "silent");
}

// Kernels

TEST(Findings, WaitingLaunches) {
  // Launches that return `late` after their kernel's end.
  const auto run = [](int64_t kernel, int64_t late, event::DeviceKind kind = event::DeviceKind::kGpu) {
    Planted planted({.kind = kind});
    for (int i = 0; i < 200; ++i) planted.waiting_launch(kernel, late);
    return planted.find();
  };
  const Findings found = run(50 * kUs, 4 * kUs);
  expect_state(found, "waiting-launches", "found");
  EXPECT_NE(finding_of(found, "waiting-launches")->sentence.find("200 of 200 launches"), std::string::npos);
  for (const char* const rule : {"launch-bound", "tiny-kernels"}) expect_state(found, rule, "silent");
  expect_state(run(50 * kUs, -4 * kUs), "waiting-launches", "silent");
  expect_state(run(5 * kUs, 4 * kUs), "waiting-launches", "silent");  // a short kernel ends before its call anyway
  EXPECT_NE(state_of(run(50 * kUs, 4 * kUs, event::DeviceKind::kCpu), "waiting-launches"), "found");
}

TEST(Findings, TinyKernels) {
  const auto run = [](int64_t kernel, int64_t call) {
    Planted planted;
    Launch how;
    how.call = call;
    how.name = "_Z4axpyPf";
    for (int i = 0; i < 500; ++i) planted.launch(kernel, how);
    return planted.find();
  };
  const Findings tiny = run(2 * kUs, 6 * kUs);
  expect_state(tiny, "tiny-kernels", "found");
  EXPECT_NE(finding_of(tiny, "tiny-kernels")->sentence.find("500 of 500 kernels on GPU 0"), std::string::npos);
  EXPECT_NE(finding_of(tiny, "tiny-kernels")->sentence.find("axpy"), std::string::npos);
  expect_state(run(20 * kUs, 6 * kUs), "tiny-kernels", "silent");
  Planted graph;  // launched by one call each hundred: no kernel has a launch to be shorter than
  for (int g = 0; g < 10; ++g) {
    graph.call("cudaGraphLaunch", 50 * kUs, 1000 + g);
    for (int k = 0; k < 100; ++k) graph.kernel(graph.now + k * 3 * kUs, 2 * kUs, {}, 1000 + g);
    graph.compute(300 * kUs);
  }
  expect_state(graph.find(), "tiny-kernels", "silent");
  Planted half;  // a little more than half of them
  for (int i = 0; i < 530; ++i) {
    Launch how;
    how.call = i < 280 ? 6 * kUs : 3 * kUs;
    half.launch(i < 280 ? 2 * kUs : 4 * kUs, how);
  }
  expect_state(half.find(), "tiny-kernels", "found");
}

TEST(Findings, SmallGrids) {
  const auto run = [](int small, int64_t units) {
    Machine machine;
    machine.units = units;
    Planted planted(machine);
    for (int i = 0; i < 100; ++i) {
      Launch how;
      if (i < small) how.grid = 256 * 10, how.name = "small";
      planted.launch(100 * kUs, how);
    }
    return planted.find();
  };
  const Findings found = run(50, 100);
  expect_state(found, "small-grids", "found");
  EXPECT_NE(finding_of(found, "small-grids")->sentence.find("the longest is small with 10"), std::string::npos)
      << finding_of(found, "small-grids")->sentence;
  EXPECT_NEAR(static_cast<double>(finding_of(found, "small-grids")->saves->second), 50 * 100e3 * 0.9, 50e3);
  expect_state(run(5, 100), "small-grids", "silent");
  expect_state(run(12, 100), "small-grids", "silent");
  expect_state(run(16, 100), "small-grids", "possible");
  expect_state(run(50, 0), "small-grids", "not judged");
  expect_state(run(50, 8), "small-grids", "silent");
}

TEST(Findings, ElementwiseRows) {
  const auto run = [](int length, const char* name, int64_t last = 50 * kUs) {
    Planted planted;
    for (int i = 0; i < 40; ++i) {
      planted.launch(100 * kUs, {.name = "gemm"});
      for (int k = 0; k < length; ++k) planted.launch(k + 1 == length ? last : 50 * kUs, {.name = name});
    }
    return planted.find();
  };
  const char* const elementwise = "void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor<float>>";
  const Findings found = run(6, elementwise);
  expect_state(found, "elementwise-rows", "possible");
  EXPECT_NE(finding_of(found, "elementwise-rows")->sentence.find("240 elementwise kernels on GPU 0 ran in 40 rows"),
            std::string::npos)
      << finding_of(found, "elementwise-rows")->sentence;
  EXPECT_NEAR(static_cast<double>(finding_of(found, "elementwise-rows")->saves->second), 40 * 225e3, 1e4);
  expect_state(run(3, elementwise), "elementwise-rows", "silent");
  expect_state(run(6, "triton_poi_fused_mul_0"), "elementwise-rows", "silent");
  expect_state(run(4, elementwise, 300 * kUs), "elementwise-rows", "silent");  // the last is no part of a row
}

TEST(Findings, LowOccupancy) {
  const auto run = [](int64_t registers, const char* architecture) {
    Machine machine;
    machine.architecture = architecture;
    Planted planted(machine);
    Launch how;
    how.registers = registers;
    for (int i = 0; i < 100; ++i) planted.launch(100 * kUs, how);
    return planted.find();
  };
  // 255 registers: 256 a thread, 8192 a warp, 8 warps of 64; of 256 threads one block, 12.5 %.
  const Findings found = run(255, "sm_90");
  expect_state(found, "low-occupancy", "possible");
  EXPECT_NE(finding_of(found, "low-occupancy")->sentence.find("fills 12 %, limited by registers"), std::string::npos)
      << finding_of(found, "low-occupancy")->sentence;
  expect_state(run(32, "sm_90"), "low-occupancy", "silent");
  expect_state(run(255, "gfx942"), "low-occupancy", "not judged");
  expect_state(run(event::kUnknown, "sm_90"), "low-occupancy", "not judged");
}

TEST(Findings, SerialisedStreams) {
  const auto run = [](int64_t grid, bool concurrent, const char* other) {
    Planted planted;
    if (other[0] != '\0') planted.call(other, kUs);
    int64_t at = planted.now + 3 * kMs;
    Launch first, second;
    first.grid = second.grid = grid;
    second.stream = 1;
    for (int i = 0; i < 200; ++i) planted.call("cudaLaunchKernel", 100, i + 1);
    for (int i = 0; i < 100; ++i, at += concurrent ? 110 * kUs : 205 * kUs) {
      planted.kernel(at, 100 * kUs, first, 2 * i + 1);
      planted.kernel(concurrent ? at + kUs : at + 102 * kUs, 100 * kUs, second, 2 * i + 2);
    }
    return planted.find();
  };
  expect_state(run(256 * 10, false, ""), "serialised-streams", "found");
  expect_state(run(256 * 10, true, ""), "serialised-streams", "silent");
  expect_state(run(256 * 1000, false, ""), "serialised-streams", "silent");
  expect_state(run(256 * 10, false, "cudaStreamWaitEvent"), "serialised-streams", "possible");
}

// Kernels of the default stream between those of two streams, which wait for it and it for them.
TEST(Findings, SerialisedStreamsByAThird) {
  Machine machine;
  machine.devices = 2;  // for a third queue, moved to the first device
  Planted planted(machine);
  planted.writer().update(Table::kTrack, 4, event::column::Track::device, 1);
  Launch first, second, between;
  first.grid = second.grid = between.grid = 256 * 10;
  second.stream = 1;
  between.stream = 2;
  for (int i = 0; i < 400; ++i) planted.call("cudaLaunchKernel", 100, i + 1);
  int64_t at = planted.now + 3 * kMs;
  for (int i = 0; i < 100; ++i, at += 212 * kUs) {
    planted.kernel(at, 100 * kUs, first, 4 * i + 1);
    planted.kernel(at + 103 * kUs, kUs, between, 4 * i + 2);
    planted.kernel(at + 106 * kUs, 100 * kUs, second, 4 * i + 3);
    planted.kernel(at + 209 * kUs, kUs, between, 4 * i + 4);
  }
  const Findings findings = planted.find();
  expect_state(findings, "serialised-streams", "found");
  EXPECT_NEAR(static_cast<double>(finding_of(findings, "serialised-streams")->saves->second), 100 * 100e3, 300e3);
}

// Copies

TEST(Findings, ExposedCopies) {
  const auto run = [](int64_t copy, bool beside, event::DeviceKind kind) {
    Machine machine;
    machine.kind = kind;
    Planted planted(machine);
    Copy how;
    how.stream = beside ? 1 : 0;
    for (int i = 0; i < 50; ++i) {
      planted.launch(kMs);
      planted.copy(copy, how);
    }
    return planted.find();
  };
  const Findings found = run(500 * kUs, false, event::DeviceKind::kGpu);
  expect_state(found, "exposed-copies", "found");
  EXPECT_NEAR(static_cast<double>(finding_of(found, "exposed-copies")->saves->second), 50 * 500e3, 1e3);
  expect_state(run(500 * kUs, true, event::DeviceKind::kGpu), "exposed-copies", "silent");
  expect_state(run(115 * kUs, false, event::DeviceKind::kGpu), "exposed-copies", "possible");
  const Findings cpu = run(500 * kUs, false, event::DeviceKind::kCpu);
  expect_state(cpu, "exposed-copies", "possible");
  EXPECT_NE(finding_of(cpu, "exposed-copies")->doubt.find("the device is a CPU"), std::string::npos);
}

TEST(Findings, SynchronousCopies) {
  const auto run = [](int64_t copy, bool blocking, bool tell) {
    Planted planted;
    Copy how;
    how.blocking = blocking;
    how.tell = tell;
    for (int i = 0; i < 50; ++i) {
      planted.launch(kMs);
      planted.copy(copy, how);
    }
    return planted.find();
  };
  expect_state(run(500 * kUs, true, true), "synchronous-copies", "found");
  expect_state(run(500 * kUs, true, false), "synchronous-copies", "found");  // the call's end shows it
  expect_state(run(500 * kUs, false, false), "synchronous-copies", "silent");
  expect_state(run(20 * kUs, true, true), "synchronous-copies", "silent");
  expect_state(run(54 * kUs, true, true), "synchronous-copies", "possible");
}

TEST(Findings, PageableCopies) {
  const auto run = [](int64_t copy, event::MemoryKind memory) {
    Planted planted;
    Copy how;
    how.memory = memory;
    for (int i = 0; i < 50; ++i) {
      planted.launch(kMs);
      planted.copy(copy, how);
    }
    return planted.find();
  };
  expect_state(run(500 * kUs, event::MemoryKind::kPageable), "pageable-copies", "found");
  expect_state(run(500 * kUs, event::MemoryKind::kPinned), "pageable-copies", "silent");
  expect_state(run(54 * kUs, event::MemoryKind::kPageable), "pageable-copies", "possible");
  expect_state(run(500 * kUs, event::MemoryKind::kUnknown), "pageable-copies", "not judged");
}

TEST(Findings, SmallCopies) {
  const auto run = [](int count, int64_t bytes, int64_t kernel) {
    Planted planted;
    Copy how;
    how.bytes = bytes;
    for (int i = 0; i < 20; ++i) {
      planted.launch(kernel);
      for (int c = 0; c < count; ++c) planted.copy(10 * kUs, how);
    }
    return planted.find();
  };
  const Findings found = run(20, 64, kMs);
  expect_state(found, "small-copies", "found");
  // 19 of the 20 of each row.
  const auto [low, high] = *finding_of(found, "small-copies")->saves;
  EXPECT_NEAR(static_cast<double>(low), 20 * 19 * 10e3, 20e3);
  EXPECT_NEAR(static_cast<double>(high), 20 * 19 * 10e3, 20e3);
  expect_state(run(20, 1 << 20, kMs), "small-copies", "silent");
  expect_state(run(3, 64, kMs), "small-copies", "silent");
  expect_state(run(6, 64, 1'850 * kUs), "small-copies", "possible");
}

// Several devices, start-up

TEST(Findings, ExposedCollectives) {
  const auto run = [](int64_t communication, int stream) {
    Planted planted;
    Launch compute, collective;
    collective.stream = stream;
    collective.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)";
    for (int i = 0; i < 50; ++i) {
      planted.launch(kMs, compute);
      planted.launch(communication, collective);
    }
    return planted.find();
  };
  expect_state(run(500 * kUs, 0), "exposed-collectives", "found");
  expect_state(run(500 * kUs, 1), "exposed-collectives", "silent");
  expect_state(run(115 * kUs, 0), "exposed-collectives", "possible");
}

TEST(Findings, StartUp) {
  const auto run = [](int64_t build) {
    Planted planted;
    planted.call("clBuildProgram", build, 0, event::Domain::kOpenCL);
    for (int i = 0; i < 100; ++i) planted.launch(5 * kMs);
    return planted.find();
  };
  expect_state(run(300 * kMs), "start-up", "found");
  expect_state(run(10 * kMs), "start-up", "silent");
  expect_state(run(58 * kMs), "start-up", "possible");
}

TEST(Findings, OperatorsBelowTheirRoof) {
  const auto run = [](int64_t lost) {
    Planted planted;
    for (int i = 0; i < 100; ++i) planted.launch(kMs);
    OperatorRoofs roofs;
    roofs.gpu = 100 * kMs;
    roofs.lost = lost;
    roofs.lost_least = lost / 2;
    roofs.operators = 3;
    roofs.worst = "aten::mm [[8, 8], [8, 8]]";
    roofs.percent = 12.5;
    roofs.bound = "memory";
    roofs.lines = {"aten::mm [[8, 8], [8, 8]]: 30 ms at 12 % of the memory roof"};
    FindOptions options;
    options.operators = roofs;
    return planted.find(options);
  };
  const Findings found = run(30 * kMs);
  expect_state(found, "operators-below-roof", "found");
  const TraceFinding& finding = *finding_of(found, "operators-below-roof");
  EXPECT_NE(finding.sentence.find("Operator aten::mm [[8, 8], [8, 8]] reaches 12 % of its memory roof; it and 2 others "
                                  "took 30.00 ms more than that asks"),
            std::string::npos)
      << finding.sentence;
  EXPECT_EQ(finding.evidence.back(), "aten::mm [[8, 8], [8, 8]]: 30 ms at 12 % of the memory roof");
  expect_state(run(2 * kMs), "operators-below-roof", "silent");
  expect_state(run(5'100 * kUs), "operators-below-roof", "possible");
  Planted planted;
  planted.launch(kMs);
  expect_state(planted.find(), "operators-below-roof", "not judged");
}

TEST(Findings, WhatOperatorsNeedNotDo) {
  const auto run = [](OperatorShare OperatorRoofs::*share, int64_t ns, int64_t saved) {
    Planted planted;
    for (int i = 0; i < 100; ++i) planted.launch(kMs);
    FindOptions options;
    options.operators.emplace().gpu = 100 * kMs;
    (*options.operators).*share = {ns, saved, "aten::mm [[8, 8], [8, 8]]", {"the line of it"}};
    return planted.find(options);
  };
  const Findings converting = run(&OperatorRoofs::converting, 20 * kMs, 20 * kMs);
  expect_state(converting, "converting-operators", "found");
  EXPECT_EQ(finding_of(converting, "converting-operators")->evidence.back(), "the line of it");
  EXPECT_NEAR(static_cast<double>(finding_of(converting, "converting-operators")->saves->second), 20e6, 1e5);
  // Of a sample shares are those of the sample, and the saving is the run's.
  Planted sampled;
  for (int i = 0; i < 100; ++i) sampled.launch(kMs);
  FindOptions options;
  options.operators.emplace().gpu = 10 * kMs;
  options.operators->part = 0.1;
  options.operators->sampled = "shapes were recorded for a tenth";
  options.operators->converting = {2 * kMs, 2 * kMs, "aten::mm [[8, 8], [8, 8]]", {"the line of it"}};
  const Findings of_sample = sampled.find(options);
  expect_state(of_sample, "converting-operators", "found");
  EXPECT_EQ(finding_of(of_sample, "converting-operators")->evidence.back(), "shapes were recorded for a tenth");
  EXPECT_NEAR(static_cast<double>(finding_of(of_sample, "converting-operators")->saves->second), 20e6, 1e5);
  expect_state(run(&OperatorRoofs::converting, 5'100 * kUs, kMs), "converting-operators", "possible");
  expect_state(run(&OperatorRoofs::converting, kMs, kMs), "converting-operators", "silent");
  expect_state(run(&OperatorRoofs::single, 50 * kMs, 40 * kMs), "products-in-f32", "possible");
  expect_state(run(&OperatorRoofs::single, 5 * kMs, 4 * kMs), "products-in-f32", "silent");
  expect_state(run(&OperatorRoofs::few_rows, 50 * kMs, 0), "small-batch", "possible");
  expect_state(run(&OperatorRoofs::few_rows, 20 * kMs, 0), "small-batch", "silent");
  expect_state(run(&OperatorRoofs::unfused, 20 * kMs, 15 * kMs), "unfused-attention", "found");
  expect_state(run(&OperatorRoofs::unfused, 20 * kMs, 0), "unfused-attention", "silent");
  expect_state(run(&OperatorRoofs::doubles, 20 * kMs, 10 * kMs), "double-precision", "possible");
  expect_state(run(&OperatorRoofs::doubles, kMs, kMs), "double-precision", "silent");
  expect_state(run(&OperatorRoofs::copying, 20 * kMs, 20 * kMs), "copies-on-device", "possible");
  expect_state(run(&OperatorRoofs::copying, 10 * kMs, 10 * kMs), "copies-on-device", "silent");
  expect_state(run(&OperatorRoofs::optimizer, 20 * kMs, 15 * kMs), "single-tensor-optimizer", "found");
  expect_state(run(&OperatorRoofs::optimizer, 20 * kMs, 0), "single-tensor-optimizer", "silent");
  Planted planted;
  planted.launch(kMs);
  expect_state(planted.find(), "converting-operators", "not judged");
}

// `factor`: by how much kernels take longer, by their number and the step; three kernels, 20 steps.
Findings slowed(const std::function<double(int kernel, int step)>& factor, event::DeviceKind kind, bool telemetry) {
  Planted planted({.kind = kind});
  for (int step = 0; step < 20; ++step)
    for (int kernel = 0; kernel < 4; ++kernel)
      for (int i = 0; i < 2; ++i)
        planted.launch(std::llround(static_cast<double>((20 + 10 * kernel) * kUs) * factor(kernel, step)),
                       {.name = kernel < 2    ? "gemm"
                                : kernel == 2 ? "conv"
                                              : "add",
                        .grid = (1 + kernel) << 16});
  if (telemetry) {
    const int64_t clock = planted.writer().dimension(row::Track{.kind = event::TrackKind::kCounter,
                                                                .native = 1,
                                                                .name = planted.writer().string("GPU Core Clock [0]"),
                                                                .category = planted.writer().string("telemetry.gpu")});
    for (int64_t at = kMs; at < planted.now; at += 100 * kUs)
      planted.writer().add(row::Reading{.track = clock, .start = at, .value = std::bit_cast<int64_t>(1800.0)});
  }
  return planted.find();
}

TEST(Findings, KernelsSlowDown) {
  const auto drop = [](int kernel, int step) { return kernel < 3 && step >= 12 ? 1.25 : 1.0; };
  const Findings found = slowed(drop, event::DeviceKind::kGpu, false);
  expect_state(found, "kernels-slow-down", "possible");  // without shapes
  const TraceFinding& finding = *finding_of(found, "kernels-slow-down");
  EXPECT_NE(finding.sentence.find("3 kernels on GPU 0 take 1.25 times as long"), std::string::npos) << finding.sentence;
  EXPECT_NE(finding.sentence.find("another takes as long as before"), std::string::npos) << finding.sentence;
  // 8 steps of two launches each: a quarter of 20, 30 and 40 us.
  EXPECT_NEAR(static_cast<double>(finding.saves->second), 16 * 22'500, 1000);
  EXPECT_NEAR(static_cast<double>(finding.spans.at(0).from - found.from), 12 * 2 * 140e3, 100e3);
  // Readings of the clock tell more; a CPU's clock is not this rule's; one kernel is none.
  expect_state(slowed(drop, event::DeviceKind::kGpu, true), "kernels-slow-down", "silent");
  expect_state(slowed(drop, event::DeviceKind::kCpu, false), "kernels-slow-down", "silent");
  const auto one = [](int kernel, int step) { return kernel == 2 && step >= 12 ? 1.25 : 1.0; };
  expect_state(slowed(one, event::DeviceKind::kGpu, false), "kernels-slow-down", "silent");
  // Larger batches: kernels of as many workgroups as there are units take longer, others have other grids.
  Planted batches;
  for (int step = 0; step < 20; ++step)
    for (int kernel = 0; kernel < 8; ++kernel)
      for (int i = 0; i < 2; ++i)
        batches.launch((step >= 12 ? 50 : 40) * kUs,
                       {.name = kernel % 2 == 0 ? "gemm" : "conv",
                        .grid = 25'600 + kernel * 256 + (kernel >= 6 && step >= 12 ? 9'000 : 0)});
  expect_state(batches.find(), "kernels-slow-down", "silent");
  const auto faster = [](int, int step) { return step < 12 ? 1.25 : 1.0; };
  expect_state(slowed(faster, event::DeviceKind::kGpu, false), "kernels-slow-down", "silent");
}

TEST(Findings, LateRank) {
  const auto run = [](int64_t waited, int64_t collectives) {
    Planted planted;
    for (int i = 0; i < 100; ++i) planted.launch(kMs);
    RankLateness late;
    late.rank = 3;
    late.ranks = 4;
    late.waited = waited;
    late.late_in = collectives;
    late.collectives = 50;
    late.cause = "30 more kernels";
    late.spans = {{2 * kMs, 3 * kMs, {1}}};
    FindOptions options;
    options.ranks = late;
    return planted.find(options);
  };
  const Findings found = run(20 * kMs, 40);
  expect_state(found, "late-rank", "found");
  const TraceFinding& finding = *finding_of(found, "late-rank");
  EXPECT_NE(finding.sentence.find("Rank 3 came last to 40 of 50 collectives"), std::string::npos) << finding.sentence;
  EXPECT_NE(finding.sentence.find("the cause: 30 more kernels."), std::string::npos) << finding.sentence;
  ASSERT_EQ(finding.spans.size(), 1u);
  EXPECT_EQ(finding.spans[0].from, 2 * kMs);
  expect_state(run(100 * kUs, 40), "late-rank", "silent");
  expect_state(run(20 * kMs, 3), "late-rank", "silent");
  expect_state(run(3'150 * kUs, 40), "late-rank", "possible");
}

// Without a trace of many ranks, collectives alone say that one is wanted.
TEST(Findings, LateRankNeedsTheOtherRanks) {
  Planted planted;
  Launch collective;
  collective.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)";
  for (int i = 0; i < 10; ++i) planted.launch(kMs, collective);
  expect_state(planted.find(), "late-rank", "not judged");
}

TEST(Findings, UnbalancedAndUnusedGpus) {
  const auto run = [](int64_t second, int devices, int64_t rank) {
    Machine machine;
    machine.devices = devices;
    Planted planted(machine);
    if (rank >= 0) planted.writer().update(Table::kProcess, planted.process(), event::column::Process::rank, rank);
    Launch other;
    other.stream = 2;
    for (int i = 0; i < 100; ++i) {
      planted.launch(kMs);
      if (second > 0) planted.launch(second, other);
    }
    return planted.find();
  };
  const Findings found = run(500 * kUs, 2, -1);
  expect_state(found, "unbalanced-gpus", "found");
  EXPECT_NE(finding_of(found, "unbalanced-gpus")->sentence.find("GPU 0 worked for 100.00 ms and GPU 1 for 50.00 ms"),
            std::string::npos)
      << finding_of(found, "unbalanced-gpus")->sentence;
  expect_state(run(980 * kUs, 2, -1), "unbalanced-gpus", "silent");
  expect_state(run(895 * kUs, 2, -1), "unbalanced-gpus", "possible");
  expect_state(found, "unused-gpus", "silent");
  const Findings unused = run(0, 3, -1);
  expect_state(unused, "unused-gpus", "possible");
  EXPECT_FALSE(finding_of(unused, "unused-gpus")->saves.has_value());
  expect_state(run(0, 1, -1), "unused-gpus", "silent");
}

// A merged trace may hold runs that have nothing to do with each other.
TEST(Findings, OnlyGpusOfOneRunAreCompared) {
  const auto run = [](int64_t rank, int64_t other_rank, bool collectives) {
    Machine machine;
    machine.devices = 2;
    Planted planted(machine);
    event::row::Process process;
    process.pid = 77;
    process.run = 1;
    process.rank = other_rank;
    const int64_t other = planted.writer().dimension(process);
    planted.writer().update(Table::kProcess, planted.process(), event::column::Process::rank, rank);
    planted.writer().update(Table::kDevice, 2, event::column::Device::process, other);
    Launch second, collective, second_collective;
    second.stream = second_collective.stream = 2;
    collective.name = second_collective.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)";
    for (int i = 0; i < 100; ++i) {
      planted.launch(kMs);
      planted.launch(500 * kUs, second);
      if (collectives && i % 10 == 0) {
        planted.launch(10 * kUs, collective);
        planted.launch(10 * kUs, second_collective);
      }
    }
    return planted.find();
  };
  expect_state(run(event::kUnknown, event::kUnknown, false), "unbalanced-gpus", "silent");
  expect_state(run(0, 0, true), "unbalanced-gpus", "silent");
  expect_state(run(0, event::kUnknown, true), "unbalanced-gpus", "silent");
  expect_state(run(0, 1, false), "unbalanced-gpus", "found");
  expect_state(run(event::kUnknown, event::kUnknown, true), "unbalanced-gpus", "found");
}

// The share is one of the time of the runs that are compared, not of all that was merged.
TEST(Findings, UnbalancedGpusAreJudgedByTheirOwnRun) {
  const auto run = [](bool merged) {
    Machine machine;
    machine.devices = 3;
    Planted planted(machine);
    Launch second, other;
    second.stream = 2;
    other.stream = 4;
    for (int i = 0; i < 100; ++i) {
      planted.launch(kMs);
      planted.launch(500 * kUs, second);
    }
    if (merged) {
      const int64_t process = planted.writer().dimension(event::row::Process{.pid = 77, .run = 1});
      planted.writer().update(Table::kDevice, 3, event::column::Device::process, process);
      planted.kernel(planted.now + 10'000 * kMs, kMs, other, 0);
    }
    return planted.find();
  };
  const Findings alone = run(false), merged = run(true);
  expect_state(alone, "unbalanced-gpus", "found");
  expect_state(merged, "unbalanced-gpus", "found");
  EXPECT_EQ(finding_of(alone, "unbalanced-gpus")->evidence, finding_of(merged, "unbalanced-gpus")->evidence);
  EXPECT_EQ(finding_of(alone, "unbalanced-gpus")->saves, finding_of(merged, "unbalanced-gpus")->saves);
}

TEST(Findings, SlowClockAndFullMemory) {
  const auto run = [](double slow, int slow_readings, double memory) {
    Planted planted;
    planted.writer().property(Table::kDevice, 1, "memory_bytes", "1000000000");
    const auto series = [&](const char* name) {
      return planted.writer().dimension(row::Track{.kind = event::TrackKind::kCounter,
                                                   .native = 1,
                                                   .name = planted.writer().string(name),
                                                   .category = planted.writer().string("telemetry.gpu")});
    };
    const int64_t clock = series("GPU Core Clock [0]"), used = series("GPU Memory Usage [0]");
    for (int i = 0; i < 100; ++i) planted.launch(kMs);
    for (int i = 0; i < 50; ++i) {
      const int64_t at = 2 * kMs + i * 2 * kMs;
      planted.writer().add(row::Reading{
          .track = clock, .start = at, .value = std::bit_cast<int64_t>(i < slow_readings ? slow : 2000.0)});
      planted.writer().add(row::Reading{.track = used, .start = at, .value = std::bit_cast<int64_t>(memory)});
    }
    return planted.find();
  };
  const Findings found = run(1200, 25, 0.99e9);
  expect_state(found, "slow-clock", "possible");  // why it fell, readings do not say
  EXPECT_NEAR(static_cast<double>(finding_of(found, "slow-clock")->saves->second), 100e6 * 0.2, 1e6);
  EXPECT_NE(finding_of(found, "slow-clock")->sentence.find("in 25 of 50 readings"), std::string::npos)
      << finding_of(found, "slow-clock")->sentence;
  expect_state(found, "memory-full", "found");
  EXPECT_NE(finding_of(found, "memory-full")->sentence.find("(99 %)"), std::string::npos)
      << finding_of(found, "memory-full")->sentence;
  expect_state(run(1900, 25, 0.5e9), "slow-clock", "silent");
  expect_state(run(1200, 3, 0.5e9), "slow-clock", "silent");
  expect_state(run(1900, 25, 0.5e9), "memory-full", "silent");
  expect_state(run(1900, 25, 0.925e9), "memory-full", "possible");
  // Of two hosts in one trace, each GPU goes by its own host's readings: the other's slower clock is no fall.
  Planted two;
  const int64_t far = two.writer().dimension(row::Process{.pid = 5, .host = two.writer().string("far"), .run = 1});
  for (int i = 0; i < 100; ++i) two.launch(kMs);
  for (const int64_t process : {int64_t{0}, far}) {
    const int64_t clock = two.writer().dimension(row::Track{.kind = event::TrackKind::kCounter,
                                                            .process = process,
                                                            .native = 1,
                                                            .name = two.writer().string("GPU Core Clock [0]"),
                                                            .category = two.writer().string("telemetry.gpu")});
    for (int i = 0; i < 50; ++i)
      two.writer().add(row::Reading{.track = clock,
                                    .start = 2 * kMs + i * 2 * kMs,
                                    .value = std::bit_cast<int64_t>(process == 0 ? 2000.0 : 1200.0)});
  }
  expect_state(two.find(), "slow-clock", "silent");
  Planted without;
  for (int i = 0; i < 100; ++i) without.launch(kMs);
  const Findings unread = without.find();
  expect_state(unread, "slow-clock", "not judged");
  expect_state(unread, "memory-full", "not judged");
}

// The host

TEST(Findings, DominantCall) {
  const auto run = [](int64_t call, const char* name) {
    Planted planted;
    for (int i = 0; i < 100; ++i) {
      planted.launch(100 * kUs);
      planted.call(name, call);
    }
    return planted.find();
  };
  const Findings found = run(200 * kUs, "cudaEventQuery");
  expect_state(found, "dominant-call", "found");
  EXPECT_NE(finding_of(found, "dominant-call")->sentence.find("in 100 calls of cudaEventQuery"), std::string::npos)
      << finding_of(found, "dominant-call")->sentence;
  EXPECT_TRUE(finding_of(found, "dominant-call")->sentence.starts_with("Thread 71 spent 19.80 ms"))
      << finding_of(found, "dominant-call")->sentence;
  expect_state(run(10 * kUs, "cudaEventQuery"), "dominant-call", "silent");
  expect_state(run(200 * kUs, "cudaDeviceSynchronize"), "dominant-call", "silent");
  Planted once;  // the first call starts the runtime
  once.call("cudaMalloc", 100 * kMs);
  for (int i = 0; i < 100; ++i) once.launch(100 * kUs);
  expect_state(once.find(), "dominant-call", "silent");
  Planted near;
  for (int i = 0; i < 100; ++i) {
    near.launch(300 * kUs);
    near.call("cudaEventQuery", 62 * kUs);
    near.wait();
  }
  expect_state(near.find(), "dominant-call", "possible");
}

TEST(Findings, PythonLock) {
  const auto run = [](int waiting, const char* clock) {
    Planted planted;
    TraceWriter& writer = planted.writer();
    const auto frame = [&](const char* function, event::FrameKind kind) {
      return writer.dimension(row::Frame{.kind = kind, .function = writer.string(function)});
    };
    const int64_t python =
        writer.dimension(row::Stack{.parent = 0, .frame = frame("train", event::FrameKind::kPython)});
    const int64_t lock =
        writer.dimension(row::Stack{.parent = python, .frame = frame("take_gil", event::FrameKind::kNative)});
    const int64_t futex = writer.dimension(
        row::Stack{.parent = lock, .frame = frame("pthread_cond_timedwait", event::FrameKind::kNative)});
    const int64_t track = writer.dimension(row::Track{.kind = event::TrackKind::kThread,
                                                      .process = planted.process(),
                                                      .native = 71,
                                                      .category = writer.string(clock)});
    for (int i = 0; i < 100; ++i) planted.launch(kMs);
    for (int i = 0; i < 100; ++i)
      writer.add(row::Sample{.track = track,
                             .start = kMs + i * kMs,
                             .duration = kMs,
                             .dim = i < waiting ? (i % 2 == 0 ? futex : lock) : python});
    return planted.find();
  };
  const Findings found = run(40, "sample.wall");
  expect_state(found, "python-lock", "found");
  EXPECT_NEAR(static_cast<double>(finding_of(found, "python-lock")->saves->second), 40e6, 1e6);
  expect_state(run(2, "sample.wall"), "python-lock", "silent");
  expect_state(run(11, "sample.wall"), "python-lock", "possible");
  expect_state(run(40, "sample.cpu"), "python-lock", "not judged");
}

// A stripped interpreter, as the sampler records it: its own functions have no names.
TEST(Findings, PythonLockOfAStrippedInterpreter) {
  const auto run = [](const char* module, const char* caller, const char* waits) {
    Planted planted;
    TraceWriter& writer = planted.writer();
    const auto stack = [&](int64_t parent, event::FrameKind kind, const char* function, const char* of) {
      return writer.dimension(
          row::Stack{.parent = parent,
                     .frame = writer.dimension(
                         row::Frame{.kind = kind, .function = writer.string(function), .module = writer.string(of)})});
    };
    const int64_t python = stack(0, event::FrameKind::kPython, "spin", "");
    const int64_t inside = stack(python, event::FrameKind::kNative, caller, module);
    const int64_t wait = stack(inside, event::FrameKind::kNative, waits, "/usr/lib/libc.so.6");
    const int64_t futex = stack(wait, event::FrameKind::kNative, "__futex_abstimed_wait_common", "/usr/lib/libc.so.6");
    const int64_t track = writer.dimension(row::Track{.kind = event::TrackKind::kThread,
                                                      .process = planted.process(),
                                                      .native = 71,
                                                      .category = writer.string("sample.wall")});
    for (int i = 0; i < 100; ++i) {
      planted.launch(kMs);
      writer.add(row::Sample{.track = track, .start = kMs + i * kMs, .duration = kMs, .dim = i < 40 ? futex : python});
    }
    return planted.find();
  };
  for (const char* module : {"/usr/bin/python3.11", "/opt/lib/libpython3.12.so.1.0"})
    for (const char* waits : {"pthread_cond_timedwait", "___pthread_cond_timedwait64", "__pthread_cond_clockwait"})
      expect_state(run(module, "", waits), "python-lock", "found");
  expect_state(run("/usr/bin/python3.11", "", "sem_clockwait"), "python-lock", "silent");  // threading.Lock
  expect_state(run("/usr/bin/python3.11", "PyThread_acquire_lock_timed", "pthread_cond_timedwait"), "python-lock",
               "silent");
  expect_state(run("/usr/lib/libtorch_cpu.so", "", "pthread_cond_wait"), "python-lock", "silent");
}

// 100 samples, `hot` of them in one line of the user's code and the others in two more.
Findings sampled(int hot, const char* clock, bool kernels) {
  Planted planted;
  TraceWriter& writer = planted.writer();
  const auto line = [&](int64_t number) {
    return writer.dimension(row::Stack{.parent = 0,
                                       .frame = writer.dimension(row::Frame{.kind = event::FrameKind::kPython,
                                                                            .function = writer.string("multiply"),
                                                                            .file = writer.string("/home/u/np.py"),
                                                                            .line = number})});
  };
  const int64_t lines[] = {line(8), line(9), line(10)};
  const int64_t track = writer.dimension(row::Track{
      .kind = event::TrackKind::kThread, .process = planted.process(), .native = 71, .category = writer.string(clock)});
  if (kernels) planted.launch(kMs);
  for (int i = 0; i < 100; ++i)
    writer.add(
        row::Sample{.track = track, .start = kMs + i * kMs, .duration = kMs, .dim = lines[i < hot ? 0 : 1 + i % 2]});
  return planted.find();
}

TEST(Findings, DominantLine) {
  const Findings found = sampled(87, "sample.cpu", false);
  expect_state(found, "dominant-line", "found");
  EXPECT_EQ(
      finding_of(found, "dominant-line")->sentence,
      "The line np.py:8 (multiply) takes 87.00 ms of the 100.00 ms of CPU time (87 %), the libraries that it calls "
      "included.");
  EXPECT_EQ(finding_of(found, "dominant-line")->saves->second, 87 * kMs);
  EXPECT_FALSE(found.device_work);
  expect_state(sampled(30, "sample.cpu", false), "dominant-line", "silent");
  expect_state(sampled(52, "sample.cpu", false), "dominant-line", "possible");
  // Samples of wall time count a thread that sleeps.
  expect_state(sampled(87, "sample.wall", false), "dominant-line", "possible");
  // With work on a GPU, that and not the host's code is the question.
  const Findings gpu = sampled(87, "sample.cpu", true);
  expect_state(gpu, "dominant-line", "silent");
  EXPECT_TRUE(gpu.device_work);
}

// Gaps that are few but long are at least possible, short ones say nothing.
TEST(Findings, FewGaps) {
  const auto waits = [](int steps, int64_t code) {
    Planted planted;
    for (int i = 0; i < steps; ++i) {
      planted.launch(100 * kUs);
      planted.wait();
      planted.call("cudaDeviceSynchronize", code);
    }
    return planted.find();
  };
  expect_state(waits(40, 2 * kMs), "host-waits", "found");
  const Findings few = waits(4, 2 * kMs);
  expect_state(few, "host-waits", "possible");
  EXPECT_NE(finding_of(few, "host-waits")->doubt.find("there are few such gaps"), std::string::npos);
  expect_state(waits(4, 50 * kUs), "host-waits", "silent");
  const auto launched = [](int count, int64_t call) {
    Planted planted;
    for (int i = 0; i < count; ++i) planted.launch(10 * kUs, {.call = call});
    return planted.find();
  };
  expect_state(launched(40, kMs), "launch-bound", "found");
  expect_state(launched(8, kMs), "launch-bound", "possible");
  expect_state(launched(8, 50 * kUs), "launch-bound", "silent");
}

TEST(Findings, SavingsInWords) {
  const auto text = [](int64_t low, int64_t high) {
    TraceFinding finding;
    finding.saves = {low, high};
    return savings_text(finding);
  };
  EXPECT_EQ(text(51'640'000, 103'300'000), "52 to 103 ms");
  EXPECT_EQ(text(0, 10'890'000), "up to 11 ms");
  EXPECT_EQ(text(0, 1'370'000), "up to 1.4 ms");
  EXPECT_EQ(text(0, 78'950), "up to 79 us");
  EXPECT_EQ(text(400'000'000, 1'600'000'000), "0.4 to 1.6 s");
  EXPECT_EQ(text(0, 900), "up to 900 ns");
  EXPECT_EQ(text(11'000'000, 11'100'000), "11 ms");
  EXPECT_EQ(savings_text({}), "");
}

// All rules

TEST(Findings, RulesStandInTheDocs) {
  const char* const source = getenv("TACHO_SOURCE");
  std::ifstream file(std::string(source != nullptr ? source : ".") + "/docs/findings.md");
  const std::string docs(std::istreambuf_iterator<char>(file), {});
  size_t lines = 0;
  for (size_t at = docs.find("## The rules");
       at != std::string::npos && (at = docs.find("\n| ", at + 1)) < docs.size();)
    ++lines;
  const metric::RuleBook book = must(metric::load_trace_rules());
  for (const metric::Rule& rule : book.rules)
    EXPECT_NE(docs.find(fmt::format("\n| {} |", rule.slug)), std::string::npos)
        << rule.slug << " is not in docs/findings.md";
  EXPECT_EQ(lines, book.rules.size() + 1) << "a line for each rule and the heading";
}

// Of each rule there is a planted run in which it fires and one in which it is silent: those of the tests above, as
// written in this file. A rule without both fails here, whichever of the tests are run.
TEST(Findings, RulesEachFireAndAreSilentInATest) {
  const char* const source = getenv("TACHO_SOURCE");
  std::string tests;
  for (const char* const name : {"findings_test.cpp", "memory_findings_test.cpp"}) {
    std::ifstream file(fmt::format("{}/tests/analysis/findings/{}", source != nullptr ? source : ".", name));
    const size_t before = tests.size();
    tests.append(std::istreambuf_iterator<char>(file), {});
    ASSERT_GT(tests.size(), before) << name;
  }
  const auto expected = [&](std::string_view rule, std::string_view state) {
    return tests.find(fmt::format("\"{}\", \"{}\");", rule, state)) != std::string::npos;
  };
  for (const metric::Rule& rule : must(metric::load_trace_rules()).rules) {
    EXPECT_TRUE(expected(rule.slug, "found") || expected(rule.slug, "possible")) << rule.slug << " fires in no test";
    EXPECT_TRUE(expected(rule.slug, "silent")) << rule.slug << " is silent in no test";
  }
}

TEST(Findings, RulesNameQuantitiesThatExist) {
  const metric::RuleBook book = must(metric::load_trace_rules());
  EXPECT_GE(book.rules.size(), 23u);
  for (const metric::Rule& rule : book.rules) {
    const auto check = [&](const metric::RuleExpression& quantity) {
      for (const metric::FormulaStep& step : quantity.steps)
        if (step.op == metric::FormulaOp::kMetric) {
          EXPECT_NE(quantity_named(step.text), nullptr) << rule.slug << " names " << step.text;
        }
    };
    metric::for_each_deciding(rule, check);
    for (const metric::RuleExpression& each : rule.evidence) check(each);
    for (const metric::RuleExpression& each : rule.in_sentence) check(each);
    EXPECT_TRUE(rule.sentence.ends_with('.')) << rule.slug;
    EXPECT_FALSE(rule.refuted_by.ends_with('.')) << rule.slug;
    for (const std::string_view advice : rule.advice) EXPECT_TRUE(advice.ends_with('.')) << rule.slug;
  }
}

TEST(Findings, WithoutCallsAreNotJudged) {
  Planted planted;
  for (int i = 0; i < 100; ++i) planted.kernel(planted.now + i * 50 * kUs, 10 * kUs, {}, 0);
  const Findings findings = planted.find();
  for (const char* rule : {"launch-bound", "host-waits", "host-computes", "queued-gaps", "tiny-kernels"})
    expect_state(findings, rule, "not judged");
  EXPECT_TRUE(findings.findings.empty()) << all_of(findings);
}

TEST(Findings, OfATraceWithoutDeviceWorkAreNone) {
  Planted planted;
  planted.call("cudaGetDeviceCount", kMs);
  EXPECT_TRUE(planted.find().findings.empty());
}

TEST(Findings, AreRankedAndWrittenAsJson) {
  Planted planted;
  for (int i = 0; i < 300; ++i) {
    planted.launch(10 * kUs);
    planted.compute(20 * kUs);
  }
  Copy slow;
  slow.blocking = true;
  for (int i = 0; i < 20; ++i) planted.copy(300 * kUs, slow);
  const Findings findings = planted.find();
  ASSERT_GE(findings.findings.size(), 2u);
  for (size_t i = 1; i < findings.findings.size(); ++i) {
    const auto middle = [](const TraceFinding& finding) {
      return static_cast<double>(finding.saves->first + finding.saves->second) / (finding.possible ? 4 : 2);
    };
    EXPECT_GE(middle(findings.findings[i - 1]), middle(findings.findings[i]));
  }
  report::JsonValue document = report::JsonValue::object({});
  add_findings(document, findings, findings.from);
  const std::string text = document.text();
  for (const char* part : {"\"rule\": \"launch-bound\"", "\"state\": \"found\"", "\"saves\": [",
                           "\"spans\": [{\"from\": ", "\"refuted_by\": ", "\"not_judged\": [{\"rule\": "})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

}  // namespace
}  // namespace tacho::analysis
