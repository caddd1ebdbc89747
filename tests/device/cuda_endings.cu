// CUDA programs that are hard on a profiler, one a mode: cuda_endings MODE [N [THREADS]]
//   nosync     launches N kernels and returns from main without waiting
//   fastexit   the same, then _exit
//   kill       launches for ever (to be killed)
//   reset      cudaDeviceReset between two rounds of N kernels
//   forkafter  uses CUDA, forks, the child exits; the parent goes on
//   forkbefore forks twice before using CUDA; every child launches N kernels
//   threads    16 threads (or as many as the third argument says) launch N kernels each on their default stream
//   region     N kernels, cudaProfilerStart, N kernels, cudaProfilerStop, N kernels
//   graph      N launches of a graph of 100 kernels and one copy
//   devices    N kernels and a peer copy on every device
//   copies     N copies of every kind with known sizes
//   managed    touches managed memory on both sides
// Prints "MODE ok" and what it did.
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

__global__ void spin(long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}
__global__ void add_one(float* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] += 1.0f;
}

static void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "cuda_endings: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

static void launch(long n, long cycles = 1000) {
  for (long i = 0; i < n; ++i) spin<<<1, 32>>>(cycles);
  check(cudaGetLastError(), "launch");
}

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const long n = argc > 2 ? std::atol(argv[2]) : 1000;
  if (mode == "nosync" || mode == "fastexit") {
    launch(n, 20000);
    std::printf("%s ok %ld\n", mode.c_str(), n);
    std::fflush(stdout);
    if (mode == "fastexit") _exit(7);
    return 0;
  }
  if (mode == "kill") {
    std::printf("kill running\n");
    std::fflush(stdout);
    for (;;) launch(1000);
  }
  if (mode == "reset") {
    launch(n);
    check(cudaDeviceSynchronize(), "synchronize");
    check(cudaDeviceReset(), "reset");
    launch(n);
    check(cudaDeviceSynchronize(), "synchronize");
  } else if (mode == "forkafter") {
    launch(n);
    check(cudaDeviceSynchronize(), "synchronize");
    for (int i = 0; i < 3; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        if (i == 0) _exit(3);
        if (i == 1) std::exit(4);
        execlp("true", "true", static_cast<char*>(nullptr));
        _exit(5);
      }
      int status = 0;
      waitpid(child, &status, 0);
      if (!WIFEXITED(status) || WEXITSTATUS(status) != (i == 0 ? 3 : i == 1 ? 4 : 0)) {
        std::fprintf(stderr, "cuda_endings: child %d ended with status %x\n", i, status);
        return 1;
      }
    }
    launch(n);
    check(cudaDeviceSynchronize(), "synchronize");
  } else if (mode == "forkbefore") {
    std::vector<pid_t> children;
    for (int i = 0; i < 2; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        launch(n);
        check(cudaDeviceSynchronize(), "synchronize");
        std::exit(0);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      if (status != 0) return 1;
    }
  } else if (mode == "threads") {
    check(cudaFree(nullptr), "start");
    std::vector<std::thread> threads;
    const int count = argc > 3 ? std::atoi(argv[3]) : 16;
    for (int t = 0; t < count; ++t)
      threads.emplace_back([n] {
        launch(n);
        check(cudaStreamSynchronize(nullptr), "synchronize");
      });
    for (auto& thread : threads) thread.join();
  } else if (mode == "region") {
    launch(n);
    check(cudaDeviceSynchronize(), "synchronize");
    check(cudaProfilerStart(), "start");
    launch(n);
    check(cudaDeviceSynchronize(), "synchronize");
    check(cudaProfilerStop(), "stop");
    launch(n);
    check(cudaDeviceSynchronize(), "synchronize");
  } else if (mode == "graph") {
    cudaStream_t stream;
    check(cudaStreamCreate(&stream), "stream");
    float* values = nullptr;
    float host[256] = {};
    check(cudaMalloc(&values, sizeof host), "malloc");
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    for (int i = 0; i < 99; ++i) add_one<<<1, 256, 0, stream>>>(values, 256);
    spin<<<1, 32, 0, stream>>>(100);
    check(cudaMemcpyAsync(host, values, sizeof host, cudaMemcpyDeviceToHost, stream), "copy");
    check(cudaStreamEndCapture(stream, &graph), "capture");
    check(cudaGraphInstantiate(&executable, graph, 0), "instantiate");
    for (long i = 0; i < n; ++i) check(cudaGraphLaunch(executable, stream), "graph launch");
    check(cudaStreamSynchronize(stream), "synchronize");
  } else if (mode == "devices") {
    int count = 0;
    check(cudaGetDeviceCount(&count), "count");
    std::vector<void*> memory(count);
    for (int d = 0; d < count; ++d) {
      check(cudaSetDevice(d), "device");
      check(cudaMalloc(&memory[d], 1 << 20), "malloc");
      launch(n);
    }
    for (int d = 1; d < count; ++d) {
      int direct = 0;
      check(cudaDeviceCanAccessPeer(&direct, d, 0), "peer access");
      check(cudaSetDevice(d), "device");
      if (direct != 0) check(cudaDeviceEnablePeerAccess(0, 0), "peer access");
      std::printf("%d-0 %s, ", d, direct != 0 ? "direct" : "through the host");
    }
    for (int d = 1; d < count; ++d) check(cudaMemcpyPeer(memory[d], d, memory[0], 0, 1 << 20), "peer copy");
    for (int d = 0; d < count; ++d) {
      check(cudaSetDevice(d), "device");
      check(cudaDeviceSynchronize(), "synchronize");
    }
    std::printf("%d devices ", count);
  } else if (mode == "copies") {
    void *device = nullptr, *other = nullptr, *pinned = nullptr;
    check(cudaMalloc(&device, 1 << 20), "malloc");
    check(cudaMalloc(&other, 1 << 20), "malloc");
    check(cudaMallocHost(&pinned, 1 << 20), "malloc");
    std::vector<char> pageable(1 << 20);
    for (long i = 0; i < n; ++i) {
      check(cudaMemcpy(device, pageable.data(), 1000, cudaMemcpyHostToDevice), "copy");
      check(cudaMemcpyAsync(pinned, device, 2000, cudaMemcpyDeviceToHost), "copy");
      check(cudaMemcpy(other, device, 3000, cudaMemcpyDeviceToDevice), "copy");
      check(cudaMemsetAsync(other, 0x5a, 4000), "memset");
    }
    check(cudaDeviceSynchronize(), "synchronize");
  } else if (mode == "managed") {
    float* values = nullptr;
    check(cudaMallocManaged(&values, 1 << 20), "managed");
    for (int i = 0; i < 1000; ++i) values[i] = static_cast<float>(i);
    add_one<<<4, 256>>>(values, 1000);
    check(cudaDeviceSynchronize(), "synchronize");
    if (values[999] != 1000.0f) return 1;
  } else {
    std::fprintf(stderr, "usage: cuda_endings MODE [N]\n");
    return 2;
  }
  std::printf("%s ok %ld\n", mode.c_str(), n);
  return 0;
}
