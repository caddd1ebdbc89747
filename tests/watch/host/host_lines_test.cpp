// Where threads spend processor time, as the kernel's samples have it.
#include "watch/host/host_lines.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace tacho::watch {
namespace {

std::atomic<uint64_t> g_turns{0};

[[gnu::noinline]] void spin_for_the_sampler() {
  for (;;) g_turns.fetch_add(1, std::memory_order_relaxed);
}

HostLines wait_for_samples(const HostSampler& sampler, uint64_t wanted) {
  HostLines lines;
  for (int i = 0; i < 600 && lines.samples < wanted && lines.problem.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    lines = sampler.latest();
  }
  return lines;
}

// In a process of its own: in this one the sampler would see itself.
TEST(HostSampler, NamesTheFunctionThatSpinsInThreadsThatComeLater) {
  const pid_t child = fork();
  if (child == 0) {
    usleep(500'000);
    std::thread(spin_for_the_sampler).join();
  }
  HostSampler sampler([&] { return std::vector<uint32_t>{static_cast<uint32_t>(child)}; });
  const HostLines lines = wait_for_samples(sampler, 60);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (!lines.problem.empty()) GTEST_SKIP() << lines.problem;
  ASSERT_GE(lines.samples, 60U);
  ASSERT_FALSE(lines.lines.empty());
  EXPECT_LE(lines.lines.size(), HostSampler::kMostLines);
  double share = 0, all = 0;
  for (const HostLine& line : lines.lines) {
    all += line.share;
    if (line.function.find("spin_for_the_sampler") != std::string::npos) share += line.share;
    EXPECT_FALSE(line.module.empty());
  }
  EXPECT_GT(share, 0.7);
  EXPECT_LE(all, 1.0001);
  EXPECT_GT(lines.processors, 0.02);  // other programs may have most of this machine's processors
  EXPECT_LT(lines.processors, 3);
}

TEST(HostSampler, ProcessesThatAreNoneOrEndChangeNothing) {
  const pid_t child = fork();
  if (child == 0) {
    usleep(1'200'000);
    _exit(0);
  }
  std::atomic<int> looks{0};
  HostSampler sampler([&] {
    ++looks;
    return std::vector<uint32_t>{0, UINT32_MAX, 4'000'000'000, static_cast<uint32_t>(child)};
  });
  while (looks < 3) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  waitpid(child, nullptr, 0);
  while (looks < 4) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const HostLines lines = sampler.latest();
  EXPECT_LE(lines.samples, 5U);  // the child sleeps
}

TEST(HostSampler, LeavesFilesToTacho) {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 100; ++i) threads.emplace_back([] { pause(); });
    pause();
  }
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{100, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  std::atomic<int> looks{0};
  HostLines lines;
  std::vector<int> own;
  {
    HostSampler sampler([&] { return ++looks, std::vector<uint32_t>{static_cast<uint32_t>(child)}; });
    while (looks < 4) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    lines = sampler.latest();
    for (int file; own.size() < 32 && (file = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) own.push_back(file);
  }
  for (const int file : own) close(file);
  setrlimit(RLIMIT_NOFILE, &before);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (lines.problem.find("perf_event") != std::string::npos) GTEST_SKIP() << lines.problem;
  EXPECT_EQ(own.size(), 32U);
  EXPECT_NE(lines.problem.find("ulimit -n"), std::string::npos) << lines.problem;
}

}  // namespace
}  // namespace tacho::watch
