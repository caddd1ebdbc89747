// Faults that the rules for NVIDIA GPUs look for, each beside its mend, for findings.py: NAME_fault and NAME_mended do the same
// work on the same data. cuda_findings NAME... launches each of them ten times; "saxpy" launches one of 4 Mi floats 51 times.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kItems = 1 << 24;
constexpr int kTile = 32;

void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  fprintf(stderr, "cuda_findings: %s: %s\n", what, cudaGetErrorString(code));
  exit(1);
}

}  // namespace

__global__ void loads_fault(const float* in, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[(static_cast<size_t>(i) * 32 + (i >> 19)) & (kItems - 1)];
}
__global__ void loads_mended(const float* in, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i];
}
__global__ void conflicts_fault(const float* in, float* out) {
  __shared__ float tile[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  float sum = in[blockIdx.x * 1024 + y * kTile + x];
  for (int k = 0; k < 64; ++k) {
    tile[y][x] = sum;
    __syncthreads();
    sum += tile[x][(y + k) & 31];
    __syncthreads();
  }
  out[blockIdx.x * 1024 + y * kTile + x] = sum;
}
__global__ void conflicts_mended(const float* in, float* out) {
  __shared__ float tile[kTile][kTile + 1];
  const int x = threadIdx.x, y = threadIdx.y;
  float sum = in[blockIdx.x * 1024 + y * kTile + x];
  for (int k = 0; k < 64; ++k) {
    tile[y][x] = sum;
    __syncthreads();
    sum += tile[x][(y + k) & 31];
    __syncthreads();
  }
  out[blockIdx.x * 1024 + y * kTile + x] = sum;
}
__device__ float work(float x, float a, float b) {
#pragma unroll 16
  for (int k = 0; k < 512; ++k) x = fmaf(x, a, b);
  return x;
}
__global__ void divergence_fault(const float* in, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if ((threadIdx.x & 1) == 0)
    out[i] = work(in[i], 1.01f, 0.5f);
  else
    out[i] = work(in[i], 0.99f, 0.25f) + sqrtf(fabsf(in[i]));
}
__global__ void divergence_mended(const float* in, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if ((threadIdx.x & 32) == 0)
    out[i] = work(in[i], 1.01f, 0.5f);
  else
    out[i] = work(in[i], 0.99f, 0.25f) + sqrtf(fabsf(in[i]));
}
// The same elements by 16 blocks, and by as many as there are.
__global__ void grid_fault(const float* in, float* out) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < kItems / 4; i += gridDim.x * blockDim.x) out[i] = work(in[i], 1.01f, 0.5f);
}
__global__ void grid_mended(const float* in, float* out) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < kItems / 4; i += gridDim.x * blockDim.x) out[i] = work(in[i], 1.01f, 0.5f);
}
__global__ void spills_fault(const float* in, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float a[64];
  for (int k = 0; k < 64; ++k) a[k] = in[(i + k) & (kItems - 1)];
  float sum = 0;
  const int start = static_cast<int>(in[i]);
  for (int k = 0; k < 256; ++k) sum += a[(start + k * 7) & 63];
  out[i] = sum;
}
// As many additions, of elements that registers hold.
__global__ void spills_mended(const float* in, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float a[64];
#pragma unroll
  for (int k = 0; k < 64; ++k) a[k] = in[(i + k) & (kItems - 1)];
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 256; ++k) sum += a[(k * 7) & 63];
  out[i] = sum;
}
// Sums of 32 groups, which lie in four sectors of one slice of the L2.
__global__ void atomics_fault(const float* in, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&reinterpret_cast<unsigned*>(out)[i & 31], static_cast<unsigned>(in[i]) + 1);
}
__global__ void atomics_mended(const float* in, float* out) {
  __shared__ unsigned sums[256];
  unsigned sum = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < kItems; i += gridDim.x * blockDim.x)
    sum += static_cast<unsigned>(in[i]) + 1;
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  for (unsigned k = 32; k < 256; k += 32) sum += sums[threadIdx.x + k];
  atomicAdd(&reinterpret_cast<unsigned*>(out)[threadIdx.x], sum);
}
__global__ void host_fault(const float* in, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] * 2;
}
__global__ void host_mended(const float* in, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] * 2;
}
__global__ void stream_fault(const float4* in, float4* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i];
}
__global__ void saxpy(int n, float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

int main(int argc, char** argv) {
  float *in = nullptr, *out = nullptr, *host = nullptr;
  const size_t bytes = size_t{kItems} * 4 * sizeof(float);
  check(cudaMalloc(&in, bytes), "cudaMalloc");
  check(cudaMalloc(&out, bytes), "cudaMalloc");
  check(cudaMemset(in, 0, bytes), "cudaMemset");
  check(cudaMemset(out, 0, bytes), "cudaMemset");
  check(cudaMallocHost(&host, kItems * sizeof(float)), "cudaMallocHost");
  memset(host, 0, kItems * sizeof(float));
  for (int a = 1; a < argc; ++a) {
    const char* name = argv[a];
    const int times = strcmp(name, "saxpy") == 0 ? 51 : 10;
    const auto is = [&](const char* other) { return strcmp(name, other) == 0; };
    for (int t = 0; t < times; ++t) {
      if (is("loads_fault")) loads_fault<<<kItems / 256, 256>>>(in, out);
      else if (is("loads_mended")) loads_mended<<<kItems / 256, 256>>>(in, out);
      else if (is("conflicts_fault")) conflicts_fault<<<kItems / 1024, dim3(32, 32)>>>(in, out);
      else if (is("conflicts_mended")) conflicts_mended<<<kItems / 1024, dim3(32, 32)>>>(in, out);
      else if (is("divergence_fault")) divergence_fault<<<kItems / 256, 256>>>(in, out);
      else if (is("divergence_mended")) divergence_mended<<<kItems / 256, 256>>>(in, out);
      else if (is("grid_fault")) grid_fault<<<16, 256>>>(in, out);
      else if (is("grid_mended")) grid_mended<<<kItems / 4 / 256, 256>>>(in, out);
      else if (is("spills_fault")) spills_fault<<<kItems / 4 / 64, 64>>>(in, out);
      else if (is("spills_mended")) spills_mended<<<kItems / 4 / 64, 64>>>(in, out);
      else if (is("atomics_fault")) atomics_fault<<<kItems / 256, 256>>>(in, out);
      else if (is("atomics_mended")) atomics_mended<<<1056, 256>>>(in, out);
      else if (is("host_fault")) host_fault<<<kItems / 256, 256>>>(host, out);
      else if (is("host_mended")) host_mended<<<kItems / 256, 256>>>(in, out);
      else if (is("stream_fault")) stream_fault<<<kItems / 256, 256>>>(reinterpret_cast<float4*>(in), reinterpret_cast<float4*>(out));
      else if (is("saxpy")) saxpy<<<(1 << 22) / 256, 256>>>(1 << 22, 2.0f, in, out);
      else {
        fprintf(stderr, "cuda_findings: no kernel %s\n", name);
        return 2;
      }
    }
    check(cudaDeviceSynchronize(), name);
  }
  return 0;
}
