// More launches than a queue holds, from several threads, with events between them. storm [LAUNCHES per thread]
#include <thread>
#include <vector>

#include "bed.h"

__host__ __device__ void one_item(uint32_t at, uint32_t* out) {
  if (at == 0) ++*out;
}
BED_KERNEL(one, (uint32_t * out), (out))

int main(int argc, char** argv) {
  const int launches = argc > 1 ? atoi(argv[1]) : 5000;
  constexpr int kThreads = 4;
  uint32_t* counts[kThreads];
  std::vector<std::thread> threads;
  for (uint32_t*& count : counts) {
    HIP(hipHostMalloc(&count, sizeof *count));
    *count = 0;
  }
  float longest = 0;
  for (int number = 0; number < kThreads; ++number)
    threads.emplace_back([&, number] {
      hipStream_t stream;
      hipEvent_t before, after;
      HIP(hipStreamCreate(&stream));
      HIP(hipEventCreate(&before));
      HIP(hipEventCreate(&after));
      HIP(hipEventRecord(before, stream));
      for (int i = 0; i < launches; ++i) {
        one<<<1, 64, 0, stream>>>(counts[number]);
        if (i % 1000 == 999) HIP(hipEventRecord(after, stream));
      }
      HIP(hipEventRecord(after, stream));
      HIP(hipEventSynchronize(after));
      float ms = 0;
      HIP(hipEventElapsedTime(&ms, before, after));
      if (number == 0) longest = ms;
    });
  for (std::thread& thread : threads) thread.join();
  int wrong = longest <= 0;
  for (const uint32_t* count : counts) wrong += *count != static_cast<uint32_t>(launches);
  printf("kernels %d\nwrong %d\n", kThreads * launches, wrong);
  return wrong;
}
