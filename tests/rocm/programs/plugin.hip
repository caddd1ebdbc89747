// A library that uses HIP, for loader.hip: it comes into the process after the start. Its kernels are launched through functions
// that HIP hands out (hipGetProcAddress), too.
#include "bed.h"

__global__ void plugged(int* out) {
  *out = 1;
}

extern "C" __attribute__((visibility("default"))) int run_plugin() {
  int* memory = nullptr;
  HIP(hipMalloc(&memory, sizeof *memory));
  for (int i = 0; i < 4; ++i) plugged<<<1, 64>>>(memory);
  HIP(hipDeviceSynchronize());
  using Synchronize = hipError_t (*)();
  Synchronize synchronize = nullptr;
  HIP(hipGetProcAddress("hipDeviceSynchronize", reinterpret_cast<void**>(&synchronize), HIP_VERSION, 0, nullptr));
  HIP(synchronize());
  HIP(hipFree(memory));
  return 0;
}
