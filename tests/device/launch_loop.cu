// launch_loop CORE: a program whose speed is the host's, for attach_speed.py. On that processor it launches 256 kernels of a few nanoseconds
// each, waits for them, and counts to a number, again and again. Prints "ready" when it does so, and at SIGTERM a line for each round: its begin
// (CLOCK_MONOTONIC_RAW), the time of the launches and that of the counting in nanoseconds (what the processor's clock does, it does to both); then
// "right", or what is wrong. At SIGUSR1 it counts the instructions of 25 single launches, in user mode and by single steps, and prints at its end
// a line "instructions N" with the middle of each such time.
#include <cuda_runtime.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kLaunches = 256;
volatile sig_atomic_t g_end = 0, g_counts = 0;
volatile int64_t g_steps = 0;
volatile unsigned g_counted = 0;

__global__ void count(unsigned* sum) {
  *sum += 1;
}

int64_t now() {
  timespec at{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &at);
  return int64_t{at.tv_sec} * 1'000'000'000 + at.tv_nsec;
}

// The processor stops after each instruction of a launch (the trap flag), and the signal's handler counts it.
int64_t instructions_of_a_launch(unsigned* sum, cudaStream_t stream) {
  std::vector<int64_t> counts;
  for (int i = 0; i < 25; ++i) {
    g_steps = 0;
    asm volatile("lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::
                     : "memory", "cc");
    count<<<1, 1, 0, stream>>>(sum);
    asm volatile("lea -128(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::
                     : "memory", "cc");
    counts.push_back(int64_t{g_steps});
    cudaStreamSynchronize(stream);
  }
  std::nth_element(counts.begin(), counts.begin() + 12, counts.end());
  return counts[12];
}

struct Round {
  int64_t begin, launches, counting;
};

}  // namespace

int main(int argc, char** argv) {
  unsigned* sum = nullptr;
  cudaStream_t stream = nullptr;
  if (argc < 2 || cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
      cudaMalloc(&sum, sizeof *sum) != cudaSuccess || cudaMemset(sum, 0, sizeof *sum) != cudaSuccess) {
    printf("no GPU, or no processor was named\n");
    return 2;
  }
  cpu_set_t core;  // this thread alone: those of the driver and of tacho go elsewhere
  CPU_ZERO(&core);
  CPU_SET(atoi(argv[1]), &core);
  if (sched_setaffinity(0, sizeof core, &core) != 0) {
    printf("processor %s cannot be had\n", argv[1]);
    return 2;
  }
  signal(SIGTERM, [](int) { g_end = 1; });
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  signal(SIGUSR1, [](int) { g_counts = 1; });
  signal(SIGTRAP, [](int) { g_steps = g_steps + 1; });
  std::vector<int64_t> instructions;
  std::vector<Round> rounds;
  rounds.reserve(1 << 18);
  while (g_end == 0) {
    if (rounds.size() == 100) {
      printf("ready\n");
      fflush(stdout);
    }
    const int64_t begin = now();
    for (int i = 0; i < kLaunches; ++i) count<<<1, 1, 0, stream>>>(sum);
    const int64_t launched = now();
    if (cudaStreamSynchronize(stream) != cudaSuccess) break;
    const int64_t counts = now();
    for (int i = 0; i < 100'000; ++i) g_counted = g_counted + 1;
    rounds.push_back({begin, launched - begin, now() - counts});
    if (g_counts != 0) {
      g_counts = 0;
      instructions.push_back(instructions_of_a_launch(sum, stream));
    }
  }
  unsigned is = 0;
  const cudaError_t result = cudaMemcpy(&is, sum, sizeof is, cudaMemcpyDeviceToHost);
  for (const Round& round : rounds)
    printf("%lld %lld %lld\n", static_cast<long long>(round.begin), static_cast<long long>(round.launches),
           static_cast<long long>(round.counting));
  for (const int64_t number : instructions) printf("instructions %lld\n", static_cast<long long>(number));
  const bool right =
      result == cudaSuccess && is == static_cast<unsigned>(rounds.size() * kLaunches + instructions.size() * 25);
  printf("%s\n", right ? "right" : cudaGetErrorString(result));
  return right ? 0 : 1;
}
