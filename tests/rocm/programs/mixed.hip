// A little of everything that a trace shows, with results that are checked: kernels on three streams, asynchronous
// copies of pinned memory, a graph, threads. Prints its launches, for the test to compare. mixed [ROUNDS]
#include <thread>
#include <vector>

#include "bed.h"

__host__ __device__ void scale_item(uint32_t at, float* out, const float* in, float factor, uint32_t size) {
  if (at < size) out[at] = in[at] * factor + static_cast<float>(at % 7);
}
BED_KERNEL(scale, (float* out, const float* in, float factor, uint32_t size), (out, in, factor, size))

__host__ __device__ void add_item(uint32_t at, float* out, const float* other, uint32_t size) {
  if (at < size) out[at] += other[at];
}
BED_KERNEL(add, (float* out, const float* other, uint32_t size), (out, other, size))

__global__ void reverse(float* data, int n) {  // LDS and a barrier: no host version
  __shared__ float part[256];
  part[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = part[255 - threadIdx.x] * static_cast<float>(n);
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 30;
  constexpr uint32_t kSize = 1 << 18;
  constexpr size_t kBytes = kSize * sizeof(float);
  int devices = 0;
  HIP(hipGetDeviceCount(&devices));
  hipDeviceProp_t properties;
  HIP(hipGetDeviceProperties(&properties, 0));
  int kernels = 0, copies = 0;
  float *in = nullptr, *out = nullptr, *host = nullptr, *scratch = nullptr;
  HIP(hipMalloc(&in, kBytes));
  HIP(hipMalloc(&out, kBytes));
  HIP(hipMalloc(&scratch, kBytes));
  HIP(hipHostMalloc(&host, kBytes));
  for (uint32_t i = 0; i < kSize; ++i) host[i] = static_cast<float>(i);
  hipStream_t streams[3];
  for (hipStream_t& stream : streams) HIP(hipStreamCreate(&stream));
  HIP(hipMemcpyAsync(in, host, kBytes, hipMemcpyHostToDevice, streams[0]));
  ++copies;
  HIP(hipStreamSynchronize(streams[0]));
  scale<<<kSize / 256, 256, 0, streams[0]>>>(out, in, 2.0f, kSize);
  ++kernels;
  for (int i = 0; i < rounds; ++i) {
    add<<<kSize / 256, 256, 0, streams[0]>>>(out, in, kSize);
    reverse<<<1, 256, 512, streams[1 + i % 2]>>>(scratch, i);
    kernels += 2;
  }
  HIP(hipDeviceSynchronize());
  memset(host, 0, kBytes);
  HIP(hipMemcpyAsync(host, out, kBytes, hipMemcpyDeviceToHost, streams[0]));
  ++copies;
  HIP(hipStreamSynchronize(streams[0]));
  int wrong = 0;
  for (uint32_t i = 0; i < kSize; ++i)
    wrong += host[i] != static_cast<float>(i) * static_cast<float>(2 + rounds) + static_cast<float>(i % 7);

  hipGraph_t graph;
  hipGraphExec_t ready;
  HIP(hipStreamBeginCapture(streams[1], hipStreamCaptureModeGlobal));
  for (int i = 0; i < 4; ++i) reverse<<<1, 256, 0, streams[1]>>>(scratch, i);
  HIP(hipStreamEndCapture(streams[1], &graph));
  HIP(hipGraphInstantiate(&ready, graph, nullptr, nullptr, 0));
  for (int i = 0; i < 3; ++i) HIP(hipGraphLaunch(ready, streams[1]));
  kernels += 12;
  HIP(hipStreamSynchronize(streams[1]));

  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number)
    threads.emplace_back([&] {
      HIP(hipSetDevice(0));
      for (int i = 0; i < rounds; ++i) reverse<<<1, 256>>>(scratch, i);
      HIP(hipDeviceSynchronize());
    });
  for (std::thread& thread : threads) thread.join();
  kernels += 4 * rounds;
  for (hipStream_t stream : streams) HIP(hipStreamDestroy(stream));
  printf("devices %d\narchitecture %s\nkernels %d\ncopies %d\ncopied %zu\nwrong %d\n", devices,
         properties.gcnArchName, kernels, copies, copies * kBytes, wrong);
  return wrong != 0;
}
