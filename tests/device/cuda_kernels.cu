// Kernels whose counters are compared with another profiler's: cuda_kernels MODE [N]
//   all    each kernel N times: copy, matrix product, reduction, atomics, divergent branches
//   loop   N launches of the reduction; prints the milliseconds they took
//   steady N launches of a triad over 600 MB, which no cache holds; prints the milliseconds
//   mixed  N rounds of three kernels in an order that repeats
//   empty  N empty kernels
//   storm  N empty kernels and one copy at the end; prints the milliseconds of the empty ones
//   gemm   N matrix products
//   memory N launches that add to device memory, a variable of the module, pinned and managed memory, which the host
//          changes as well; prints what they hold at the end
//   graph  N launches of a graph of three kernels, after launches of its own
//   gpus   N rounds of a copy and a reduction on every GPU in turn, then prints what each holds
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

constexpr int kWidth = 512, kItems = 1 << 22;

__global__ void copy_kernel(const float* from, float* to, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}
__global__ void fill_kernel(float* to, int n, float value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = value;
}
__global__ void gemm_kernel(const float* a, const float* b, float* c, int n) {
  __shared__ float x[16][16], y[16][16];
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int tile = 0; tile < n / 16; ++tile) {
    x[threadIdx.y][threadIdx.x] = a[row * n + tile * 16 + threadIdx.x];
    y[threadIdx.y][threadIdx.x] = b[(tile * 16 + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += x[threadIdx.y][k] * y[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
__global__ void reduce_kernel(const float* from, float* to, int n) {
  __shared__ float part[256];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += from[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) to[blockIdx.x] = part[0];
}
__global__ void atomics_kernel(int* bins, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[(i * 7) % 1024], 1);
}
__global__ void divergent_kernel(float* to, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = static_cast<float>(i);
  for (int k = 0; k < (threadIdx.x % 32) * 4; ++k) value = value * 1.0001f + 0.5f;
  if (i < n) to[i] = value;
}
__global__ void triad_kernel(const float4* a, const float4* b, float4* c, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float4 x = a[i], y = b[i];
    c[i] = make_float4(x.x + 2 * y.x, x.y + 2 * y.y, x.z + 2 * y.z, x.w + 2 * y.w);
  }
}
__global__ void empty_kernel() {}
__device__ unsigned total;
__global__ void adding_kernel(unsigned* sum, unsigned value) {
  atomicAdd(sum, value);
  atomicAdd(&total, value);
}

static float *x, *y, *z;
static int* bins;

static void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "cuda_kernels: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}
static void launch(int kind) {
  const dim3 tiles(kWidth / 16, kWidth / 16), tile(16, 16);
  switch (kind) {
    case 0:
      return copy_kernel<<<kItems / 256, 256>>>(x, y, kItems);
    case 1:
      return gemm_kernel<<<tiles, tile>>>(x, y, z, kWidth);
    case 2:
      return reduce_kernel<<<264, 256>>>(x, z, kItems);
    case 3:
      return atomics_kernel<<<kItems / 256, 256>>>(bins, kItems);
    case 4:
      return divergent_kernel<<<kItems / 256, 256>>>(z, kItems);
    default:
      return empty_kernel<<<1, 32>>>();
  }
}

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const int n = argc > 2 ? std::atoi(argv[2]) : 1;
  check(cudaMalloc(&x, kItems * sizeof(float)), "malloc");
  check(cudaMalloc(&y, kItems * sizeof(float)), "malloc");
  check(cudaMalloc(&z, kItems * sizeof(float)), "malloc");
  check(cudaMalloc(&bins, 1024 * sizeof(int)), "malloc");
  check(cudaMemset(x, 0, kItems * sizeof(float)), "memset");
  check(cudaMemset(y, 0, kItems * sizeof(float)), "memset");
  check(cudaDeviceSynchronize(), "start");
  const auto begin = std::chrono::steady_clock::now();
  if (mode == "all") {
    for (int i = 0; i < n; ++i)
      for (int kind = 0; kind < 5; ++kind) launch(kind);
  } else if (mode == "loop") {
    for (int i = 0; i < n; ++i) launch(2);
  } else if (mode == "steady") {
    constexpr int kLarge = 50'000'000 / 4;
    float4* large[3];
    for (float4*& each : large) {
      check(cudaMalloc(&each, kLarge * sizeof(float4)), "malloc");
      check(cudaMemset(each, 0, kLarge * sizeof(float4)), "memset");
    }
    for (int i = 0; i < n; ++i) triad_kernel<<<132 * 8, 256>>>(large[0], large[1], large[2], kLarge);
  } else if (mode == "mixed") {
    for (int i = 0; i < n; ++i)
      for (const int kind : {0, 2, 2, 4}) launch(kind);
  } else if (mode == "gemm") {
    for (int i = 0; i < n; ++i) launch(1);
  } else if (mode == "memory") {
    unsigned *device, *pinned, *managed, sum = 0, all = 0;
    check(cudaMalloc(&device, 4), "malloc");
    check(cudaMemset(device, 0, 4), "memset");
    check(cudaMallocHost(&pinned, 4), "pinned");
    check(cudaMallocManaged(&managed, 4), "managed");
    *pinned = *managed = 0;
    for (int i = 0; i < n; ++i) {
      for (unsigned* const to : {device, pinned, managed}) adding_kernel<<<2, 64>>>(to, static_cast<unsigned>(i));
      check(cudaDeviceSynchronize(), "run");
      *pinned += 3;
      *managed += 5;
      if (i % 4 == 3) check(cudaMemcpy(&sum, device, 4, cudaMemcpyDeviceToHost), "copy");
    }
    check(cudaMemcpy(&sum, device, 4, cudaMemcpyDeviceToHost), "copy");
    check(cudaMemcpyFromSymbol(&all, total, 4), "copy");
    std::printf("sums %u %u %u %u\n", sum, all, *pinned, *managed);
  } else if (mode == "graph") {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    check(cudaStreamCreate(&stream), "stream");
    launch(0);
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    copy_kernel<<<kItems / 256, 256, 0, stream>>>(x, y, kItems);
    reduce_kernel<<<264, 256, 0, stream>>>(x, z, kItems);
    copy_kernel<<<kItems / 256, 256, 0, stream>>>(y, z, kItems);
    check(cudaStreamEndCapture(stream, &graph), "capture");
    check(cudaGraphInstantiate(&ready, graph, 0), "graph");
    for (int i = 0; i < n; ++i) {
      check(cudaGraphLaunch(ready, stream), "graph");
      launch(4);
    }
  } else if (mode == "gpus") {
    int count = 0;
    check(cudaGetDeviceCount(&count), "count");
    float *from[16] = {}, *to[16] = {};
    count = count > 16 ? 16 : count;
    for (int d = 0; d < count; ++d) {
      check(cudaSetDevice(d), "device");
      check(cudaMalloc(&from[d], kItems * sizeof(float)), "malloc");
      check(cudaMalloc(&to[d], kItems * sizeof(float)), "malloc");
      fill_kernel<<<kItems / 256, 256>>>(from[d], kItems, static_cast<float>(d + 1));
    }
    for (int i = 0; i < n; ++i)
      for (int d = 0; d < count; ++d) {
        check(cudaSetDevice(d), "device");
        copy_kernel<<<kItems / 256, 256>>>(from[d], to[d], kItems);
        reduce_kernel<<<264, 256>>>(to[d], from[d], kItems);
      }
    for (int d = 0; d < count; ++d) {
      float sum = 0;
      check(cudaMemcpy(&sum, from[d], sizeof sum, cudaMemcpyDeviceToHost), "copy");
      std::printf("GPU %d: %.0f\n", d, sum);
    }
  } else if (mode == "empty") {
    for (int i = 0; i < n; ++i) launch(5);
  } else if (mode == "storm") {
    for (int i = 0; i < n; ++i) launch(5);
  } else {
    std::fprintf(stderr, "usage: cuda_kernels all|loop|steady|mixed|empty|storm|gemm|memory|graph|gpus [N]\n");
    return 2;
  }
  check(cudaDeviceSynchronize(), "run");
  std::printf("%s %d: %.3f ms\n", mode.c_str(), n,
              std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  if (mode == "storm") launch(0);
  check(cudaDeviceSynchronize(), "end");
  return 0;
}
