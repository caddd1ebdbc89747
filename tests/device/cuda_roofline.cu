// Kernels whose FLOPs and bytes are known, for checking the points of the roofline: cuda_roofline [N]
// Launches each kernel N times (default 3) and prints a line a kernel: name, FLOPs, bytes at DRAM, bytes at L1 (0: not
// known), and the median of its times in ms by CUDA events.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr long kItems = 1L << 28;
constexpr int kSteps = 64, kHalfSteps = 256, kProduct = 4096, kTile = 32;

__global__ void vcopy_kernel(const float* from, float* to) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  to[i] = from[i];
}
template <typename T>
__device__ void fma_steps(const T* from, T* to) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  T value = from[i];
#pragma unroll 16
  for (int k = 0; k < kSteps; ++k) value = value * static_cast<T>(0.75) + static_cast<T>(0.25);
  to[i] = value;
}
__global__ void fma32_kernel(const float* from, float* to) { fma_steps(from, to); }
__global__ void fma64_kernel(const double* from, double* to) { fma_steps(from, to); }
__global__ void half_kernel(const __half2* from, __half2* to) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  __half2 value = from[i];
  const __half2 factor = __float2half2_rn(0.75f), summand = __float2half2_rn(0.25f);
#pragma unroll 16
  for (int k = 0; k < kHalfSteps; ++k) value = __hfma2(value, factor, summand);
  to[i] = value;
}
// One FMA of a pair of halves an element: as rare as the assembler's constants.
__global__ void half_axpy_kernel(const __half2* from, __half2* to) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  to[i] = __hfma2(from[i], __float2half2_rn(0.75f), to[i]);
}
__global__ void convert_kernel(const __half* from, float* to) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  to[i] = __half2float(from[i]);
}
// Integers and addresses only, with constants that the assembler may load through the half-precision unit.
__global__ void index_kernel(const int* from, int* to, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int at = i;
  for (int k = 0; k < 8; ++k) at = (from[at % n] & 0xFFFF) + 7 * i;
  if (i < n) to[i] = at;
}
__global__ void gemm_kernel(const float* a, const float* b, float* c, int n) {
  __shared__ float x[kTile][kTile], y[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int tile = 0; tile < n / kTile; ++tile) {
    x[threadIdx.y][threadIdx.x] = a[row * n + tile * kTile + threadIdx.x];
    y[threadIdx.y][threadIdx.x] = b[(tile * kTile + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += x[threadIdx.y][k] * y[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

static void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  std::exit(1);
}

template <typename Launch>
void measure(const char* name, int times, double flops, double dram, double l1, const Launch& launch) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  std::vector<float> all;
  for (int i = 0; i < times; ++i) {
    check(cudaEventRecord(begin), "record");
    launch();
    check(cudaGetLastError(), name);
    check(cudaEventRecord(end), "record");
    check(cudaEventSynchronize(end), name);
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "time");
    all.push_back(ms);
  }
  std::sort(all.begin(), all.end());
  std::printf("%s %.0f %.0f %.0f %.6f\n", name, flops, dram, l1, all[all.size() / 2]);
}

int main(int argc, char** argv) {
  const int times = argc > 1 ? std::atoi(argv[1]) : 3;
  void *from = nullptr, *to = nullptr;
  check(cudaMalloc(&from, kItems * 4), "memory");
  check(cudaMalloc(&to, kItems * 4), "memory");
  check(cudaMemset(from, 0, kItems * 4), "memset");
  check(cudaMemset(to, 0, kItems * 4), "memset");
  const int group = 256;
  const double bytes = 8.0 * kItems;
  const auto blocks = [&](long items) { return static_cast<unsigned>(items / group); };
  measure("vcopy_kernel", times, 0, bytes, bytes,
          [&] { vcopy_kernel<<<blocks(kItems), group>>>(static_cast<float*>(from), static_cast<float*>(to)); });
  measure("fma32_kernel", times, 2.0 * kSteps * kItems, bytes, bytes,
          [&] { fma32_kernel<<<blocks(kItems), group>>>(static_cast<float*>(from), static_cast<float*>(to)); });
  measure("fma64_kernel", times, kSteps * static_cast<double>(kItems), bytes, bytes,
          [&] { fma64_kernel<<<blocks(kItems / 2), group>>>(static_cast<double*>(from), static_cast<double*>(to)); });
  measure("half_kernel", times, 4.0 * kHalfSteps * kItems, bytes, bytes,
          [&] { half_kernel<<<blocks(kItems), group>>>(static_cast<__half2*>(from), static_cast<__half2*>(to)); });
  measure("half_axpy_kernel", times, 4.0 * kItems, 1.5 * bytes, 1.5 * bytes,
          [&] { half_axpy_kernel<<<blocks(kItems), group>>>(static_cast<__half2*>(from), static_cast<__half2*>(to)); });
  measure("convert_kernel", times, 0, 6.0 * kItems, 6.0 * kItems,
          [&] { convert_kernel<<<blocks(kItems), group>>>(static_cast<__half*>(from), static_cast<float*>(to)); });
  measure("index_kernel", times, 0, 0, 0,
          [&] { index_kernel<<<4096, group>>>(static_cast<int*>(from), static_cast<int*>(to), 1 << 20); });
  const double n = kProduct;
  measure("gemm_kernel", times, 2 * n * n * n, 0, (2 * n * n * n / kTile + n * n) * 4, [&] {
    float* const a = static_cast<float*>(from);
    gemm_kernel<<<dim3(kProduct / kTile, kProduct / kTile), dim3(kTile, kTile)>>>(a, a + kProduct * kProduct, static_cast<float*>(to),
                                                                               kProduct);
  });
  return 0;
}
