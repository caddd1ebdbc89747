// Kernels on every GPU at the same time, of another size on each.
#include <unistd.h>

#include <vector>

#include "bed.h"

__host__ __device__ void fill_item(uint32_t at, uint32_t* out, uint32_t value) {
  out[at] = value;
}
BED_KERNEL(fill, (uint32_t * out, uint32_t value), (out, value))

int main() {
  int gpus = 0, wrong = 0;
  HIP(hipGetDeviceCount(&gpus));
  std::vector<uint32_t*> out(static_cast<size_t>(gpus));
  constexpr uint32_t kItems = 4096;
  const auto each = [&](auto what) {
    for (int gpu = 0; gpu < gpus; ++gpu) {
      HIP(hipSetDevice(gpu));
      what(gpu, kItems * static_cast<uint32_t>(gpu + 1));
    }
  };
  each([&](int gpu, uint32_t items) {
    HIP(hipHostMalloc(&out[static_cast<size_t>(gpu)], items * sizeof(uint32_t)));
  });
  for (int round = 0; round < 3; ++round)
    each([&](int gpu, uint32_t items) {
      fill<<<items / 256, 256>>>(out[static_cast<size_t>(gpu)], static_cast<uint32_t>(100 * gpu + round));
    });
  each([&](int gpu, uint32_t items) {
    HIP(hipDeviceSynchronize());
    for (uint32_t i = 0; i < items; ++i)
      wrong += out[static_cast<size_t>(gpu)][i] != static_cast<uint32_t>(100 * gpu + 2);
  });
  printf("gpus %d\nwrong %d\n", gpus, wrong);
  fflush(stdout);
  usleep(100'000);  // HIP 7.2 dies now and then when exit() comes while its own thread still frees what has ended
  return wrong != 0;
}
