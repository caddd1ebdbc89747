// What a launch takes a program that has its own use for the caches: before each launch it changes so many KiB of its
// memory. `watch_launch LAUNCHES KIB` prints the median of the ns that cuLaunchKernel took, on the stand-in driver or a
// real one. bench/watch_launch.py runs it without anything, under tacho watch, and with --keep.
#include <dlfcn.h>
#include <x86intrin.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/clock.h"

namespace {

using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                       void**);

// Nothing before it is still under way, and nothing after it has begun.
uint64_t ticks() {
  _mm_lfence();
  const uint64_t now = __rdtsc();
  _mm_lfence();
  return now;
}

}  // namespace

int main(int argc, char** argv) {
  const long count = argc > 1 ? std::atol(argv[1]) : 100'000;
  const auto bytes = static_cast<size_t>(argc > 2 ? std::atol(argv[2]) : 256) << 10;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr || count <= 0) return 1;
  const auto launch = reinterpret_cast<Launch>(dlsym(library, "cuLaunchKernel"));
  const auto function = reinterpret_cast<int (*)(void**, void*, const char*)>(dlsym(library, "cuModuleGetFunction"));
  const auto wait = reinterpret_cast<int (*)(void*)>(dlsym(library, "cuStreamSynchronize"));
  void* kernel = nullptr;
  function(&kernel, nullptr, "tiny_1000");
  std::vector<unsigned char> memory(bytes, 1);
  std::vector<uint64_t> took(static_cast<size_t>(count));
  const int64_t begin = tacho::raw_now();
  const uint64_t first = ticks();
  for (size_t i = 0; i < took.size(); ++i) {
    for (size_t at = 0; at < bytes; at += 64) ++memory[at];
    const uint64_t from = ticks();
    launch(kernel, 16, 1, 1, 256, 1, 1, 0, nullptr, nullptr, nullptr);
    took[i] = ticks() - from;
    if (i % 1000 == 999) wait(nullptr);
  }
  const double each = static_cast<double>(tacho::raw_now() - begin) / static_cast<double>(ticks() - first);
  std::nth_element(took.begin(), took.begin() + static_cast<ptrdiff_t>(took.size() / 2), took.end());
  std::printf("%.1f ns a launch\n", static_cast<double>(took[took.size() / 2]) * each);
  return 0;
}
