// Many empty kernels on one or several streams: the host's cost of a launch, with and without a profiler.
// launch_storm [-n launches] [-r repeats] [-s streams] [-t threads] [-c] [-g] [-i]
//   -c adds a small copy after every 100th launch, -g launches through a CUDA graph of 100 kernels,
//   -i runs one repeat for every line of standard input and prints its ns per launch at once.
// Prints the fastest and the median repeat in ns per launch.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

__global__ void nothing() {}

static void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "launch_storm: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

int main(int argc, char** argv) {
  long launches = 100000, repeats = 3;
  int streams = 1, threads = 1;
  bool copies = false, graph = false, interactive = false;
  for (int i = 1; i < argc; ++i) {
    auto number = [&] { return i + 1 < argc ? std::atol(argv[++i]) : 0; };
    if (!std::strcmp(argv[i], "-n")) launches = number();
    else if (!std::strcmp(argv[i], "-r")) repeats = number();
    else if (!std::strcmp(argv[i], "-s")) streams = static_cast<int>(number());
    else if (!std::strcmp(argv[i], "-t")) threads = static_cast<int>(number());
    else if (!std::strcmp(argv[i], "-c")) copies = true;
    else if (!std::strcmp(argv[i], "-g")) graph = true;
    else if (!std::strcmp(argv[i], "-i")) interactive = true;
    else { std::fprintf(stderr, "usage: launch_storm [-n launches] [-r repeats] [-s streams] [-t threads] [-c] [-g] [-i]\n"); return 2; }
  }
  if (interactive) threads = 1;
  if (launches < 1 || repeats < 1 || streams < 1 || threads < 1) return 2;
  check(cudaFree(nullptr), "no usable CUDA device");
  auto work = [&](std::vector<double>* times) {
    std::vector<cudaStream_t> stream(streams);
    for (auto& s : stream) check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreate");
    void *device = nullptr, *host = nullptr;
    check(cudaMalloc(&device, 4096), "cudaMalloc");
    check(cudaMallocHost(&host, 4096), "cudaMallocHost");
    cudaGraphExec_t executable = nullptr;
    if (graph) {
      cudaGraph_t captured = nullptr;
      check(cudaStreamBeginCapture(stream[0], cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
      for (int i = 0; i < 100; ++i) nothing<<<1, 1, 0, stream[0]>>>();
      check(cudaStreamEndCapture(stream[0], &captured), "cudaStreamEndCapture");
      check(cudaGraphInstantiate(&executable, captured, 0), "cudaGraphInstantiate");
      cudaGraphDestroy(captured);
    }
    for (int i = 0; i < 2000; ++i) nothing<<<1, 1, 0, stream[i % streams]>>>();
    check(cudaDeviceSynchronize(), "warm-up");
    char line[64];
    for (long r = 0; interactive ? std::fgets(line, sizeof line, stdin) != nullptr : r < repeats; ++r) {
      const auto begin = std::chrono::steady_clock::now();
      if (graph) {
        for (long i = 0; i < launches / 100; ++i) check(cudaGraphLaunch(executable, stream[0]), "cudaGraphLaunch");
      } else {
        for (long i = 0; i < launches; ++i) {
          nothing<<<1, 1, 0, stream[i % streams]>>>();
          if (copies && i % 100 == 0) cudaMemcpyAsync(device, host, 4096, cudaMemcpyHostToDevice, stream[i % streams]);
        }
      }
      const auto end = std::chrono::steady_clock::now();
      check(cudaDeviceSynchronize(), "launches");
      const double ns = std::chrono::duration<double, std::nano>(end - begin).count() / static_cast<double>(launches);
      if (times) times->push_back(ns);
      if (interactive) std::printf("%.1f\n", ns), std::fflush(stdout);
    }
  };
  std::vector<double> times;
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back([&] { work(nullptr); });
  work(&times);
  for (auto& thread : others) thread.join();
  if (times.empty()) return 0;
  std::sort(times.begin(), times.end());
  std::printf("launch_storm: %ld launches, %d thread(s), %d stream(s): best %.0f median %.0f ns per launch\n", launches, threads,
              streams, times.front(), times[times.size() / 2]);
  return 0;
}
