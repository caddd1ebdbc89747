// A plain launch, then a cooperative one: HIP asks HSA for its cooperative queue.
#include <hip/hip_runtime.h>

#include <cstdio>

__global__ void plain(float* x) { x[threadIdx.x] += 1; }
__global__ void together(float* x) { x[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

int main() {
  float* x = nullptr;
  if (hipMalloc(&x, 1 << 20) != hipSuccess) return 1;
  plain<<<1, 64>>>(x);
  void* arguments[] = {&x};
  const hipError_t launched =
      hipLaunchCooperativeKernel(reinterpret_cast<void*>(together), dim3(16), dim3(64), arguments, 0, nullptr);
  const hipError_t done = hipDeviceSynchronize();
  std::printf("%d %d\n", launched, done);
  return hipFree(x) != hipSuccess;
}
