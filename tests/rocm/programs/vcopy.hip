// The program of the profiling commands in the users' documents: copies a vector, checks it. vcopy [-n SIZE] [-b BLOCK]
#include "bed.h"

__host__ __device__ void vecCopy_item(uint32_t at, double* to, const double* from, uint32_t size) {
  if (at < size) to[at] = from[at];
}
BED_KERNEL(vecCopy, (double* to, const double* from, uint32_t size), (to, from, size))

__global__ void touch(double* data) {
  data[threadIdx.x] += 1;
}

int main(int argc, char** argv) {
  uint32_t size = 1 << 20, block = 256;
  for (int at = 1; at + 1 < argc; ++at) {
    if (strcmp(argv[at], "-n") == 0) size = static_cast<uint32_t>(atoi(argv[at + 1]));
    if (strcmp(argv[at], "-b") == 0) block = static_cast<uint32_t>(atoi(argv[at + 1]));
  }
  const int repeats = getenv("REPEATS") != nullptr ? atoi(getenv("REPEATS")) : 2;
  double *from = nullptr, *to = nullptr, *host = nullptr;
  const size_t bytes = size * sizeof(double);
  HIP(hipMalloc(&from, bytes));
  HIP(hipMalloc(&to, bytes));
  HIP(hipHostMalloc(&host, bytes));
  for (uint32_t i = 0; i < size; ++i) host[i] = i * 0.5;
  hipStream_t streams[2];
  for (hipStream_t& stream : streams) HIP(hipStreamCreate(&stream));
  HIP(hipMemcpyAsync(from, host, bytes, hipMemcpyHostToDevice, streams[0]));
  HIP(hipStreamSynchronize(streams[0]));
  for (int i = 0; i < repeats; ++i) {
    vecCopy<<<(size + block - 1) / block, block, 0, streams[0]>>>(to, from, size);
    touch<<<3, 100, 0, streams[1]>>>(from);  // a part of a wave, and fewer groups than dies
  }
  HIP(hipDeviceSynchronize());
  memset(host, 0, bytes);
  HIP(hipMemcpyAsync(host, to, bytes, hipMemcpyDeviceToHost, streams[0]));
  HIP(hipStreamSynchronize(streams[0]));
  int wrong = 0;
  for (uint32_t i = 0; i < size; ++i) wrong += host[i] != i * 0.5;
  printf("wrong %d\n", wrong);
  if (getenv("FAILS") != nullptr) return 3;
  return wrong != 0;
}
