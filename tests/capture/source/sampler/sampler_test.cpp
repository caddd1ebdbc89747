// Call-stack sampling from the timer in the target to rows of a trace: known shares, every kind of stack and thread,
// programs with their own signal handlers, and Python of every version that this machine has.
#include <glob.h>
#include <sys/resource.h>

#include <algorithm>
#include <numeric>

#include "capture/source/sampler/cpu_time.h"
#include "capture/source/sampler/pace.h"
#include "capture/source/sampler/sampled_run.h"
#include "decode/records/samples.h"

namespace tacho::test {
namespace {

std::string program(const std::string& name) {
  return build_folder() + "/tests/" + name;
}
std::string script(const std::string& name) {
  const char* const source = getenv("TACHO_SOURCE");
  return std::string(source != nullptr ? source : ".") + "/tests/capture/source/sampler/" + name;
}

// Wall-clock timers reach thousands of samples a second; CPU-time ones only the kernel's tick.
constexpr const char* kFast = "sampler=timer\nsample_hz=4000\nsample_clock=wall\n";
constexpr const char* kCpu = "sampler=timer\nsample_hz=250\n";

std::string stack_text(const Sample& sample) {
  std::string text;
  for (const auto& frame : sample.frames) text += " < " + frame.function;
  return text;
}

void expect_shares(const SampledRun& run, double points) {
  EXPECT_NEAR(run.share("heavy", true), 0.7, points);
  EXPECT_NEAR(run.share("medium", true), 0.2, points);
  EXPECT_NEAR(run.share("light", true), 0.1, points);
}

class Shares : public testing::TestWithParam<const char*> {};

TEST_P(Shares, KnownOnesWithinTwoPoints) {
  SampledRun run(kFast);
  ASSERT_EQ(run.run({program(GetParam()), "6000"}), 0);
  ASSERT_GT(run.samples().size(), 2500u);
  expect_shares(run, 0.02);
  EXPECT_GT(run.share("main", true), 0.99);
  EXPECT_GT(run.share("outer", true), 0.99);
  for (const Sample& sample : run.samples())
    EXPECT_FALSE(sample.has("[truncated]")) << "not to its end: " << stack_text(sample);
}

TEST_P(Shares, CpuTimeAddsUp) {
  SampledRun run(kCpu);
  rusage before{}, after{};
  getrusage(RUSAGE_CHILDREN, &before);
  ASSERT_EQ(run.run({program(GetParam()), "8000", "threads"}), 0);
  getrusage(RUSAGE_CHILDREN, &after);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  const double cpu =
      seconds(after.ru_utime) - seconds(before.ru_utime) + seconds(after.ru_stime) - seconds(before.ru_stime);
  std::map<int64_t, double> by_thread;
  int64_t longest = 0;
  size_t in_threads = 0;
  for (const Sample& sample : run.samples()) {
    by_thread[sample.tid] += static_cast<double>(sample.duration) * 1e-9;
    longest = std::max(longest, sample.duration);
    in_threads += sample.has("in_thread");
  }
  std::string detail;
  for (const auto& [tid, time] : by_thread) detail += fmt::format(" {}: {:.3f}", tid, time);
  EXPECT_NEAR(run.seconds() / cpu, 1.0, 0.05)
      << "cpu " << cpu << ", longest sample " << longest << " ns, threads" << detail;
  EXPECT_GT(in_threads, run.samples().size() * 95 / 100);
  std::set<int64_t> tids;
  for (const auto& [tid, time] : by_thread) tids.insert(tid);
  EXPECT_GE(tids.size(), 4u);
  EXPECT_NEAR(run.share("heavy", true, true), 0.7, 0.12);  // some hundred samples
}

TEST_P(Shares, AlternateStacksAndCoroutines) {
  SampledRun run(kFast);
  ASSERT_EQ(run.run({program(GetParam()), "5000", "altstack"}), 0);
  expect_shares(run, 0.025);
  EXPECT_GT(run.share("outer", true), 0.99);
  EXPECT_NEAR(run.share("coroutine", true), 0.5, 0.06);
}

INSTANTIATE_TEST_SUITE_P(Builds, Shares, testing::Values("shares_fp", "shares_nofp"),
                         [](const auto& info) { return std::string(info.param).substr(7); });

TEST(Stacks, DeepOnesFollowFramePointersAndSayWhereTheyAreCut) {
  for (const char* build : {"shares_fp", "shares_nofp"}) {
    SampledRun run("sampler=timer\nsample_hz=2000\nsample_clock=wall\nsample_stack=4096\n");
    ASSERT_EQ(run.run({program(build), "2000", "deep"}), 0);
    expect_shares(run, 0.05);
    EXPECT_GT(run.share("deeper", true), 0.98);
    EXPECT_GT(run.share("[truncated]", true), 0.98);
    size_t most = 0;
    for (const Sample& sample : run.samples()) {
      most = std::max(most, sample.frames.size());
      if (sample.has("[truncated]")) {
        EXPECT_EQ(sample.frames.back().kind, event::FrameKind::kTruncated);
      }
    }
    // 4 KiB hold some tens of frames; the chain of frame pointers goes 128 further.
    EXPECT_GT(most, std::string(build) == "shares_fp" ? 140u : 20u);
  }
}

// Code without frame pointers uses their register for anything: a sample must not follow it out of the stack.
TEST(Stacks, AnyValueInTheFramePointersRegister) {
  SampledRun run(kFast);
  ASSERT_EQ(run.run({program("lives"), "register"}), 0);
  EXPECT_GT(run.share("any_register"), 0.9);
}

TEST(Stacks, StrippedProgramsKeepModuleAndDepth) {
  SampledRun run(kFast);
  ASSERT_EQ(run.run({program("shares_stripped"), "2000"}), 0);
  size_t whole = 0;
  for (const Sample& sample : run.samples()) {
    size_t own = 0, libc = 0;  // by module: without its debug symbols libc does not name what calls main
    for (const Frame& frame : sample.frames) {
      libc += frame.module.ends_with("/libc.so.6");
      own += frame.module == program("shares_stripped");
      if (frame.module == program("shares_stripped")) {
        EXPECT_EQ(frame.function, "");
      }
    }
    whole += own >= 4 && libc != 0;
  }
  EXPECT_GT(whole, run.samples().size() * 95 / 100);
}

TEST(Stacks, CodeMadeAtRunTime) {
  SampledRun run(kFast);
  ASSERT_EQ(run.run({program("lives"), "jit"}), 0);
  EXPECT_GT(run.share("made_at_run_time"), 0.9);
  EXPECT_GT(run.share("calls_jit", true), 0.9);
  EXPECT_GT(run.share("main", true), 0.9);
}

TEST(Lives, ForkedChildrenAreSampled) {
  SampledRun run(kCpu);
  ASSERT_EQ(run.run({program("lives"), "fork"}), 0);
  std::map<std::string, std::set<int64_t>> processes;
  for (const Sample& sample : run.samples())
    for (const char* function : {"in_parent", "in_child"})
      if (sample.has(function)) processes[function].insert(sample.process);
  ASSERT_EQ(processes["in_parent"].size(), 1u);
  ASSERT_EQ(processes["in_child"].size(), 1u);
  EXPECT_NE(processes["in_parent"], processes["in_child"]);
}

TEST(Lives, ExecInTheMiddle) {
  SampledRun run(kFast);
  ASSERT_EQ(run.run({program("lives"), "exec"}), 0);
  EXPECT_GT(run.share("in_parent", true), 0.2);
  EXPECT_GT(run.share("after_exec", true), 0.2);
}

TEST(Lives, FiveHundredThreadsAndChurn) {
  for (const char* mode : {"many", "churn"}) {
    SampledRun run(kCpu, 256 << 20);
    ASSERT_EQ(run.run({program("lives"), mode}), 0) << mode;
    EXPECT_GT(run.samples().size(), 20u) << mode;
    // With churn a thread may end while its last sample finds no block; and five hundred threads that start at once
    // find only the part of the pool that a busy machine has backed by then. Lost samples are counted.
    EXPECT_LE(run.dropped() * 100, run.samples().size()) << mode;
    EXPECT_GT(run.share("work", true), 0.6) << mode;
  }
}

TEST(Lives, ThreadsThatNobodyAnnouncedAreFound) {
  SampledRun run(kCpu);
  ASSERT_EQ(run.run({program("lives"), "raw"}), 0);
  EXPECT_GT(run.share("in_raw_thread", true), 0.02);
}

TEST(Signals, OfTheProgramStayItsOwn) {
  for (const char* config : {kCpu, kFast}) {
    SampledRun run(config);
    EXPECT_EQ(run.run({program("sampled_signals")}), 0);
    // The thread that blocks all signals is sampled all the same.
    EXPECT_GT(run.share("blocks_everything", true), 0.1);
  }
}

TEST(Signals, SleepersSleepOnAndThreadsKeepTheirNames) {
  SampledRun run(kCpu);
  EXPECT_EQ(run.run({program("lives"), "sleep"}), 0);
  EXPECT_GT(run.share("names_itself", true), 0.8);
  bool named = false;
  for (int64_t row = 1; row < run.trace().rows(event::Table::kThread); ++row)
    named = named || run.trace().text(event::Table::kThread, row, event::column::Thread::name) == "busy one";
  EXPECT_TRUE(named);
}

TEST(Sampler, OffMeansOff) {
  for (const char* config : {"", "sampler=off\n"}) {
    SampledRun run(config);
    EXPECT_EQ(run.run({program("sampled_signals")}), 0);
    EXPECT_TRUE(run.samples().empty());
  }
}

TEST(Sampler, SaysWhenThereAreNoTimers) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_SIGPENDING, &none);
    SampledRun run(kCpu);
    const int status = run.run({program("lives"), "fork"});
    bool said = false;
    for (const std::string& note : run.notes()) said = said || note.find("no timer") != std::string::npos;
    // No stack, and yet all of the time.
    bool stacks = false;
    for (const Sample& sample : run.samples())
      stacks = stacks || !(sample.has("[not sampled]") || sample.has("[before main]"));
    _exit(status == 0 && said && !stacks && run.seconds() > 0.02 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Python

// Every interpreter of this machine that the sampler claims to read, by version.
std::map<std::string, std::string> interpreters() {
  std::vector<std::string> candidates = {"/usr/bin/python3"};
  const char* const home = getenv("HOME");
  glob_t found{};
  const std::string pattern = std::string(home != nullptr ? home : "/root") + "/.pyenv/versions/*/bin/python3";
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i) candidates.emplace_back(found.gl_pathv[i]);
  globfree(&found);
  std::map<std::string, std::string> known;
  for (const std::string& candidate : candidates) {
    std::FILE* const output =
        popen((candidate + " -c 'import sys; print(\"%d.%d.%d\" % sys.version_info[:3])' 2>/dev/null").c_str(), "r");
    char text[32] = {};
    const bool good = output != nullptr && fgets(text, sizeof text, output) != nullptr;
    if (output != nullptr) pclose(output);
    int major = 0, minor = 0;
    if (good && sscanf(text, "%d.%d", &major, &minor) == 2 && major == 3 && minor >= 9 && minor <= 13) {
      text[strcspn(text, "\n")] = '\0';
      known.emplace(text, candidate);
    }
  }
  return known;
}

TEST(Python, LinesAndSharesOfEveryVersion) {
  const auto known = interpreters();
  if (known.empty()) GTEST_SKIP() << "no Python 3.9 to 3.13 here";
  for (const auto& [version, path] : known) {
    SCOPED_TRACE("Python " + version + ", " + path);
    SampledRun run("sampler=timer\nsample_hz=2000\nsample_clock=wall\n");
    ASSERT_EQ(run.run({path, script("shares.py"), "60"}, {"PYTHONDONTWRITEBYTECODE=1"}), 0);
    // Even on a busy machine a late sample covers more time, so nothing is missing.
    int64_t first = INT64_MAX, last = 0;
    for (const Sample& sample : run.samples()) {
      first = std::min(first, sample.time);
      last = std::max(last, sample.time);
    }
    EXPECT_NEAR(run.seconds() / (static_cast<double>(last - first) * 1e-9), 1.0, 0.02);
    double all = 0, heavy = 0, medium = 0, light = 0, lines = 0, wrong = 0, ordered = 0;
    for (const Sample& sample : run.samples()) {
      const std::string medium_name = sample.has("Worker.medium") ? "Worker.medium" : "medium";
      if (!sample.has("outer")) continue;
      ++all;
      heavy += sample.has("heavy");
      medium += sample.has(medium_name);
      light += sample.has("light");
      for (const Frame& frame : sample.frames) {
        if (frame.kind != event::FrameKind::kPython) continue;
        EXPECT_FALSE(frame.function.empty());
        const auto within = [&](int64_t first, int64_t last) {
          (frame.line >= first && frame.line <= last ? lines : wrong) += 1;
        };
        if (frame.function == "heavy") within(6, 10);
        if (frame.function == medium_name) within(14, 18);
        if (frame.function == "light") within(21, 25);
        if (frame.function == "generated") within(28, 30);
      }
      // Callers in their order: <module>, outer, generated, heavy.
      std::vector<std::string> names;
      for (const Frame& frame : sample.frames)
        if (frame.kind == event::FrameKind::kPython) names.push_back(frame.function);
      if (sample.has("heavy") && names.size() >= 4)
        ordered += std::vector<std::string>(names.begin(), names.begin() + 4) ==
                   std::vector<std::string>{"heavy", "generated", "outer", "<module>"};
    }
    ASSERT_GT(all, 300);
    EXPECT_NEAR(heavy / all, 0.7, 0.05);
    EXPECT_NEAR(medium / all, 0.2, 0.05);
    EXPECT_NEAR(light / all, 0.1, 0.04);
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(lines, all);
    EXPECT_GT(ordered, heavy * 0.99);
    // The interpreter's loop itself shows only where no Python frame could be put in its place.
    double loops = 0;
    for (const Sample& sample : run.samples())
      for (const Frame& frame : sample.frames) loops += frame.function.find("EvalFrameDefault") != std::string::npos;
    EXPECT_LT(loops, all * 0.03);
  }
}

TEST(Python, StressOfEveryVersion) {
  const auto known = interpreters();
  if (known.empty()) GTEST_SKIP() << "no Python 3.9 to 3.13 here";
  for (const auto& [version, path] : known) {
    SCOPED_TRACE("Python " + version + ", " + path);
    SampledRun run("sampler=timer\nsample_hz=10000\nsample_clock=wall\n", 256 << 20);
    EXPECT_EQ(run.run({path, script("calls.py"), "400"}, {"PYTHONDONTWRITEBYTECODE=1"}), 0);
    EXPECT_GT(run.samples().size(), 500u);
    double python = 0, nameless = 0;
    for (const Sample& sample : run.samples())
      for (const Frame& frame : sample.frames)
        if (frame.kind == event::FrameKind::kPython) {
          ++python;
          nameless += frame.function.empty();
        }
    EXPECT_GT(python, 300);
    EXPECT_LT(nameless, python * 0.01);
    EXPECT_GT(run.share("fib", true), 0.002);
  }
}

TEST(LeftTime, GoesToTheFirstSampleOfALaterThreadOfTheSameFunction) {
  static capture::sampler::LeftTime left{};
  constexpr uintptr_t kWork = 0x401230, kOther = 0x401280;
  left.add(kWork, 11, 2000);
  left.add(kWork, 12, 2000);
  EXPECT_EQ(left.take(kOther, 0, 10'000), 0u) << "another function's";
  EXPECT_EQ(left.take(kWork, 7000, 10'000), 3000u) << "a sample stands for a period";
  EXPECT_EQ(left.take(kWork, 10'000, 10'000), 500u) << "or takes half of what there is";
  left.add(0, 13, 40);
  std::map<uintptr_t, std::pair<uint32_t, uint64_t>> rest;
  left.take_all([&](uintptr_t routine, uint32_t tid, uint64_t ns) { rest[routine] = {tid, ns}; });
  EXPECT_EQ(rest, (std::map<uintptr_t, std::pair<uint32_t, uint64_t>>{{kWork, {12, 500}}, {0, {13, 40}}}));
  left.take_all([&](uintptr_t, uint32_t, uint64_t) { FAIL(); });
}

TEST(LeftTime, ManyFunctionsLoseNothing) {
  static capture::sampler::LeftTime left{};
  for (uintptr_t routine = 1; routine <= 1000; ++routine) left.add(routine * 64, 1, routine);
  uint64_t all = 0;
  left.take_all([&](uintptr_t, uint32_t, uint64_t ns) { all += ns; });
  EXPECT_EQ(all, 500'500u);
}

TEST(Pace, AThreadGoesOnThreeTimesAsLongAsItsSampleTook) {
  capture::sampler::Pace pace{};
  EXPECT_EQ(pace.take(1000, 1), 1u);
  pace.taken(1000, 1100);
  EXPECT_EQ(pace.take(1200, 1), 0u);
  EXPECT_EQ(pace.take(1399, 2), 0u);
  EXPECT_EQ(pace.take(1400, 1), 4u) << "what was left out is added to the next";
  pace.taken(1400, 1401);
  EXPECT_EQ(pace.take(1404, 1), 1u);
}

TEST(Pace, TimeWithoutSamplesBelongsToTheNextOne) {
  // 57 KB of stack ten thousand times a second: more than a quarter of the time, on most machines.
  SampledRun run("sampler=timer\nsample_hz=10000\nsample_clock=wall\nsample_stack=57344\n", 256 << 20);
  ASSERT_EQ(run.run({program("shares_fp"), "150", "deep"}), 0);
  ASSERT_GT(run.samples().size(), 100u);
  const auto [first, last] = std::minmax_element(run.samples().begin(), run.samples().end(),
                                                 [](const Sample& a, const Sample& b) { return a.time < b.time; });
  const double wall = static_cast<double>(last->time - first->time) * 1e-9;
  EXPECT_NEAR(run.seconds(), wall, 0.02 * wall + 0.01);
}

TEST(Python, ForkedWorkersAreSampled) {
  const auto known = interpreters();
  if (known.empty()) GTEST_SKIP() << "no Python 3.9 to 3.13 here";
  SampledRun run(kCpu);
  const std::string code = "import multiprocessing as m\n"
                           "def busy(n):\n"
                           "  total = 0\n"
                           "  for i in range(n): total += i\n"
                           "  return total\n"
                           "if __name__ == '__main__':\n"
                           "  with m.get_context('fork').Pool(3) as p: print(sum(p.map(busy, [3000000] * 3)))\n";
  EXPECT_EQ(run.run({known.begin()->second, "-c", code}), 0);
  std::set<int64_t> processes;
  for (const Sample& sample : run.samples())
    if (sample.has("busy")) processes.insert(sample.process);
  EXPECT_GE(processes.size(), 2u);
}

// The examples of the interpreter's own tables: one function, compiled by three versions.
TEST(PythonLines, OfEveryTableFormat) {
  using decode::ProcessSamples;
  const std::vector<uint8_t> ranges = {0x08, 0x02, 0x0c, 0x01, 0x06, 0x02, 0x02, 0x01, 0x08, 0xff, 0x04, 0x02};
  const auto line10 = [&](int64_t offset) { return ProcessSamples::python_line(0x30a, 1, ranges, offset); };
  EXPECT_EQ(line10(-1), 1);
  EXPECT_EQ(line10(0), 3);
  EXPECT_EQ(line10(6), 3);
  EXPECT_EQ(line10(8), 4);
  EXPECT_EQ(line10(18), 4);
  EXPECT_EQ(line10(20), 6);
  EXPECT_EQ(line10(26), 7);
  EXPECT_EQ(line10(28), 6);
  EXPECT_EQ(line10(36), 8);
  const std::vector<uint8_t> lnotab = {0x00, 0x02, 0x08, 0x01, 0x0c, 0x02, 0x06, 0x01, 0x02, 0xff, 0x08, 0x02};
  const auto line9 = [&](int64_t offset) { return ProcessSamples::python_line(0x309, 1, lnotab, offset); };
  EXPECT_EQ(line9(0), 3);
  EXPECT_EQ(line9(8), 4);
  EXPECT_EQ(line9(20), 6);
  EXPECT_EQ(line9(26), 7);
  EXPECT_EQ(line9(28), 6);
  EXPECT_EQ(line9(36), 8);
  const std::vector<uint8_t> locations = {0x80, 0x00, 0xe0, 0x08, 0x09, 0x88, 0x41, 0x89, 0x05, 0x80,
                                          0x41, 0xdc, 0x0d, 0x12, 0x90, 0x31, 0x8b, 0x58, 0xf2, 0x00,
                                          0x03, 0x05, 0x12, 0x88, 0x01, 0xe0, 0x08, 0x09, 0x8c, 0x51,
                                          0x88, 0x71, 0xd8, 0x0f, 0x10, 0xf3, 0x03, 0x01, 0x0e, 0x12};
  const auto line12 = [&](int64_t offset) { return ProcessSamples::python_line(0x30c, 1, locations, offset); };
  EXPECT_EQ(line12(-2), 1);
  EXPECT_EQ(line12(0), 1);
  EXPECT_EQ(line12(2), 3);
  EXPECT_EQ(line12(10), 3);
  EXPECT_EQ(line12(12), 4);
  EXPECT_EQ(line12(20), 4);
  EXPECT_EQ(line12(40), 6);
  EXPECT_EQ(line12(52), 6);
  EXPECT_EQ(line12(54), 7);
  EXPECT_EQ(line12(56), 6);
  // Damaged tables end somewhere.
  for (size_t cut = 0; cut < locations.size(); ++cut)
    ProcessSamples::python_line(0x30c, 1, std::span(locations).first(cut), 1000);
  const std::vector<uint8_t> all_ones(64, 0xff);
  ProcessSamples::python_line(0x30c, 1, all_ones, 1 << 20);
}

}  // namespace
}  // namespace tacho::test
