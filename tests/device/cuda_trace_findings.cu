// Programs with a fault that their trace shows, and the same work without it, for tests/device/trace_findings.py:
//   cuda_trace_findings CASE [mended]      prints the seconds that the loop took
// launches: a kernel of 3 us and 10 us of the host's code for each; mended: the kernels as a graph, launched once a hundred
// waits: a kernel of 1 ms, a wait, 90 us of the host's code; mended: the same code, one wait at the end
// computes: a kernel of 1 ms, a wait, 1 ms of the host's code; mended: two buffers, code beside the kernel
// copies: kernel, blocking copy of 8 MiB from pageable memory; mended: pinned, in a second stream beside the next kernel
// small: two hundred copies of 64 bytes before each kernel; mended: one copy
// streams: small grids alternate between two streams that the default stream orders; mended: streams that it does not order
// grid: a kernel of 8 workgroups; mended: the same work in 8192
// churn: cudaMalloc and cudaFree around each kernel; mended: once
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define CHECK(call)                                                      \
  do {                                                                   \
    if (const cudaError_t code = (call); code != cudaSuccess) {          \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(code)); \
      std::exit(90);                                                     \
    }                                                                    \
  } while (false)

using Clock = std::chrono::steady_clock;

// Runs for this many nanoseconds of the GPU's global timer, whatever its clock.
__global__ void work(long long nanoseconds, int* out) {
  long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - begin < nanoseconds);
  if (nanoseconds < 0) *out = 1;
}

// Rounds of arithmetic, divided over all threads.
__global__ void divided(long long rounds, float* out) {
  const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
  float x = threadIdx.x;
  for (long long i = 0; i < rounds / threads; ++i) x = x * 1.0001f + 0.5f;
  if (x == -1) *out = x;
}

static void spin(int64_t microseconds) {
  const auto until = Clock::now() + std::chrono::microseconds(microseconds);
  while (Clock::now() < until) {
  }
}

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const bool mended = argc > 2 && std::strcmp(argv[2], "mended") == 0;
  constexpr size_t kBytes = 8 << 20;
  int* flag;
  float* value;
  char* device;
  CHECK(cudaMalloc(&flag, 4));
  CHECK(cudaMalloc(&value, 4));
  CHECK(cudaMalloc(&device, 2 * kBytes));
  cudaStream_t one, two;
  const unsigned flags = mended ? cudaStreamNonBlocking : cudaStreamDefault;
  CHECK(cudaStreamCreateWithFlags(&one, flags));
  CHECK(cudaStreamCreateWithFlags(&two, flags));
  std::vector<char> pageable(kBytes, 1);
  char* pinned;
  CHECK(cudaMallocHost(&pinned, kBytes));
  work<<<1, 32, 0, one>>>(1000, flag);
  divided<<<1, 32, 0, one>>>(32, value);
  CHECK(cudaMemcpy(device, pageable.data(), kBytes, cudaMemcpyHostToDevice));
  CHECK(cudaDeviceSynchronize());

  const auto begin = Clock::now();
  if (what == "launches") {
    if (!mended) {
      for (int i = 0; i < 20000; ++i) {
        spin(10);
        work<<<1, 32, 0, one>>>(3000, flag);
      }
    } else {
      cudaGraph_t graph;
      cudaGraphExec_t ready;
      CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
      for (int i = 0; i < 100; ++i) work<<<1, 32, 0, one>>>(3000, flag);
      CHECK(cudaStreamEndCapture(one, &graph));
      CHECK(cudaGraphInstantiate(&ready, graph, 0));
      for (int i = 0; i < 200; ++i) CHECK(cudaGraphLaunch(ready, one));
    }
  } else if (what == "waits" || what == "computes") {
    const int code = what == "waits" ? 90 : 1000;
    for (int i = 0; i < 500; ++i) {
      work<<<1, 32, 0, one>>>(1000000, flag);
      if (!mended) CHECK(cudaStreamSynchronize(one));
      spin(code);
    }
  } else if (what == "copies") {
    for (int i = 0; i < 200; ++i) {
      work<<<1, 32, 0, one>>>(1000000, flag);
      if (!mended) {
        CHECK(cudaMemcpy(device, pageable.data(), kBytes, cudaMemcpyHostToDevice));
      } else {
        CHECK(cudaMemcpyAsync(device, pinned, kBytes, cudaMemcpyHostToDevice, two));
      }
    }
  } else if (what == "small") {
    for (int i = 0; i < 100; ++i) {
      for (int c = 0; c < (mended ? 1 : 200); ++c)
        CHECK(cudaMemcpyAsync(device + 64 * c, pinned + 64 * c, mended ? 64 * 200 : 64,
                              cudaMemcpyHostToDevice, one));
      work<<<1, 32, 0, one>>>(1000000, flag);
    }
  } else if (what == "streams") {
    for (int i = 0; i < 500; ++i) {
      work<<<8, 32, 0, one>>>(500000, flag);
      if (!mended) work<<<1, 32>>>(1000, flag);  // the default stream: waits for both, and they for it
      work<<<8, 32, 0, two>>>(500000, flag);
      if (!mended) work<<<1, 32>>>(1000, flag);
    }
  } else if (what == "grid") {
    for (int i = 0; i < 20; ++i) divided<<<mended ? 8192 : 8, 256, 0, one>>>(2'000'000'000LL, value);
  } else if (what == "churn") {
    char* memory = nullptr;
    if (mended) CHECK(cudaMalloc(&memory, kBytes));
    for (int i = 0; i < 1000; ++i) {
      if (!mended) CHECK(cudaMalloc(&memory, kBytes));
      work<<<1, 32, 0, one>>>(100000, flag);
      if (!mended) CHECK(cudaFree(memory));
    }
  } else {
    std::fprintf(
        stderr,
        "usage: cuda_trace_findings launches|waits|computes|copies|small|streams|grid|churn [mended]\n");
    return 2;
  }
  CHECK(cudaDeviceSynchronize());
  std::printf("%.6f\n", std::chrono::duration<double>(Clock::now() - begin).count());
  return 0;
}
