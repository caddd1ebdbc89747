// The cpu device with more passes than its software events need, as a machine with hardware events has them: spread
// over launches, one run of the program for each, a crash on the way, runs that differ.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "../workload/folders.h"
#include "counter/provider.h"
#include "metric/catalog/builtin/builtin.h"

namespace tacho::counter {
namespace {

class Listener : public Observer {
 public:
  void run_begins(std::span<const size_t>, size_t, size_t) override { ++runs; }
  void note(std::string_view) override {}
  void warn(std::string_view sentence) override { warnings += std::string(sentence) + "\n"; }
  void target_output(int, std::string_view) override {}
  void progress(uint64_t, uint64_t) override {}
  Status pass_done(const PassResult& result) override {
    passes[result.pass] = result;
    return {};
  }

  int runs = 0;
  std::string warnings;
  std::map<size_t, PassResult> passes;
};

class CpuPasses : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (provider->devices(why).empty()) GTEST_SKIP() << why;
    plan.passes = {{"pmc_perf_0", {"CPU_TASK_CLOCK", "CPU_WALL_TIME"}, ""},
                   {"pmc_perf_1", {"CPU_MINOR_FAULTS"}, ""},
                   {"pmc_perf_2", {"CPU_CONTEXT_SWITCHES"}, ""}};
    request.folder = folder.path();
    patterns = std::string(std::getenv("TACHO_BUILD")) + "/tests/targets/opencl_patterns";
  }
  Outcome collect(std::vector<std::string> command) {
    request.command = std::move(command);
    const auto outcome =
        provider->collect(*provider->device_for(*metric::built_in_architecture("cpu")), plan, request, listener);
    EXPECT_TRUE(outcome) << outcome.error().message;
    return outcome ? *outcome : Outcome{};
  }
  // A program that knows how often it was started before.
  std::string script(const std::string& text) {
    folder.write("run.sh", "#!/bin/sh\ncd " + folder.path() +
                               "\nn=$(cat count 2>/dev/null || echo 0)\necho $((n + 1)) > count\n" + text + "\n");
    chmod((folder.path() + "/run.sh").c_str(), 0755);
    return folder.path() + "/run.sh";
  }
  static std::vector<bool> measured(const PassResult& pass) {
    std::vector<bool> there;
    for (size_t row = 0; row < pass.dispatches.size(); ++row)
      there.push_back(!std::isnan(pass.values[row * pass.counters.size()]));
    return there;
  }

  const Provider* const provider = provider_of("cpu");
  tacho::testing::Folder folder;
  Listener listener;
  CollectRequest request;
  PassPlan plan;
  std::string patterns;
};

TEST_F(CpuPasses, SpreadOverTheLaunchesOfAKernel) {
  request.multiplex = Multiplex::kKernel;
  const Outcome outcome = collect({patterns, "copy,strided,copy,copy,copy,strided"});
  EXPECT_EQ(listener.runs, 1);
  EXPECT_EQ(outcome.measured, 6U);
  ASSERT_EQ(listener.passes.size(), 3U);
  // Launch i of a kernel reads pass i mod 3: copy is launched at 0, 2, 3 and 4, strided at 1 and 5.
  EXPECT_EQ(measured(listener.passes[0]), (std::vector<bool>{true, true, false, false, true, false}));
  EXPECT_EQ(measured(listener.passes[1]), (std::vector<bool>{false, false, true, false, false, true}));
  EXPECT_EQ(measured(listener.passes[2]), (std::vector<bool>{false, false, false, true, false, false}));
  EXPECT_EQ(listener.warnings,
            "strided: 2 dispatches of the 3 that all counters need; metrics are lost that need CPU_CONTEXT_SWITCHES\n");
}

TEST_F(CpuPasses, SpreadOverLaunchesOfEqualShape) {
  request.multiplex = Multiplex::kLaunchParams;
  collect({script(patterns + " copy,copy,copy 1024 64\n" + patterns + " copy 1024 32")});
  ASSERT_EQ(listener.passes.size(), 3U);
  EXPECT_EQ(measured(listener.passes[0]), (std::vector<bool>{true, false, false, true}));
  EXPECT_EQ(listener.warnings,
            "copy (grid 1024x1x1, workgroup 32x1x1, local memory 0): 1 dispatches of the 3 that all counters need; "
            "metrics are lost that need CPU_MINOR_FAULTS, CPU_CONTEXT_SWITCHES\n");
}

TEST_F(CpuPasses, OneRunEach) {
  const Outcome outcome = collect({patterns, "copy,strided"});
  EXPECT_EQ(listener.runs, 3);
  EXPECT_EQ(outcome.runs, 3U);
  ASSERT_EQ(listener.passes.size(), 3U);
  for (const auto& [number, pass] : listener.passes)
    EXPECT_EQ(measured(pass), (std::vector<bool>{true, true})) << number;
  EXPECT_EQ(listener.warnings, "");
}

TEST_F(CpuPasses, ACrashInTheThirdRunKeepsTheOthers) {
  const Outcome outcome = collect({script(patterns + " copy\n[ $n = 2 ] && kill -SEGV $$\nexit 0")});
  EXPECT_EQ(outcome.exit_code, 128 + SIGSEGV);
  EXPECT_EQ(outcome.signal, SIGSEGV);
  EXPECT_NE(listener.warnings.find("ended with code 139; what it had finished is kept"), std::string::npos)
      << listener.warnings;
  ASSERT_EQ(listener.passes.size(), 3U) << "what the run that crashed had finished is kept, too";
  for (const auto& [number, pass] : listener.passes) EXPECT_EQ(measured(pass), std::vector<bool>{true}) << number;
}

TEST_F(CpuPasses, ACrashInTheSecondRunEndsTheProfile) {
  const Outcome outcome = collect({script("[ $n = 1 ] && exit 7\nexec " + patterns + " copy")});
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_EQ(listener.runs, 2);
  ASSERT_EQ(listener.passes.size(), 1U);
  EXPECT_NE(listener.warnings.find("ended with code 7 in run 2 of 3: what it had finished is kept"), std::string::npos)
      << listener.warnings;
  // That is the whole story: it launched nothing because it ended.
  EXPECT_EQ(listener.warnings.find("other kernels"), std::string::npos) << listener.warnings;
  EXPECT_EQ(listener.warnings.find("opened no OpenCL device"), std::string::npos) << listener.warnings;
}

TEST_F(CpuPasses, RunsThatLaunchOtherKernels) {
  collect({script("if [ $n = 1 ]; then exec " + patterns + " copy,broadcast; fi\nexec " + patterns + " copy,strided")});
  EXPECT_NE(
      listener.warnings.find("run 2 launched other kernels than the one before: dispatch 1 was strided, now broadcast"),
      std::string::npos)
      << listener.warnings;
}

}  // namespace
}  // namespace tacho::counter
