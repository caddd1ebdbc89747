// Times its own launches, for bench/rocm.py: launches [COUNT]. Few are in flight at a time, so that no queue is ever full.
#include <chrono>

#include "bed.h"

__host__ __device__ void small_item(uint32_t at, uint32_t* out) {
  if (at == 0) ++*out;
}
BED_KERNEL(small, (uint32_t * out), (out))

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 20000;
  uint32_t* out = nullptr;
  HIP(hipHostMalloc(&out, sizeof *out));
  *out = 0;
  const auto launch = [&](int number) {
    for (int i = 0; i < number; ++i) {
      small<<<1, 64>>>(out);
      if (i % 64 == 63) HIP(hipStreamSynchronize(nullptr));
    }
    HIP(hipStreamSynchronize(nullptr));
  };
  launch(256);
  const auto begin = std::chrono::steady_clock::now();
  launch(count);
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
  printf("each %.4f us\nwrong %d\n", taken.count() / count, *out != static_cast<uint32_t>(count + 256));
  return *out != static_cast<uint32_t>(count + 256);
}
