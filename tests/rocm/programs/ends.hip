// Programs that end in ways that a profiler must bear. ends HOW: fork (parent and child both use the GPU), exec (the child of a
// fork starts this program again), late (does not wait for its kernels), _exit (the same, without exit handlers), reset
// (hipDeviceReset, then the program goes on), waits (twelve kernels one by one; an alarm ends the program if one never does),
// module (a code object is unloaded as soon as its kernels have ended), slow-exit (waits for its kernels; what it registers with
// atexit, after HIP's own and before the first launch, takes four seconds and prints), early-slow-exit (the same, registered before
// anything of HIP)
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "bed.h"

__host__ __device__ void fill_item(uint32_t at, float* out, float value, uint32_t size) {
  if (at < size) out[at] = value;
}
BED_KERNEL(fill, (float* out, float value, uint32_t size), (out, value, size))

static int work(int launches, bool wait) {
  float *out = nullptr, *host = nullptr;
  constexpr uint32_t kSize = 1 << 14;
  HIP(hipMalloc(&out, kSize * sizeof(float)));
  HIP(hipHostMalloc(&host, kSize * sizeof(float)));
  for (int i = 0; i < launches; ++i) fill<<<kSize / 64, 64>>>(out, static_cast<float>(i), kSize);
  if (!wait) return 0;
  HIP(hipDeviceSynchronize());
  return 0;
}

// Twelve kernels, each waited for.
static int one_by_one() {
  float* out = nullptr;
  HIP(hipMalloc(&out, 64 * sizeof(float)));
  alarm(4);
  for (int i = 0; i < 12; ++i) {
    fill<<<1, 64>>>(out, static_cast<float>(i), 64);
    HIP(hipDeviceSynchronize());
  }
  return 0;
}

static void slow_end() {
  sleep(4);
  printf("slow end\n");
}

// The program's own device code once more, as a module that goes away as soon as its kernels have ended.
static int unload() {
  FILE* const file = fopen("ends.hsaco", "rb");
  if (file == nullptr) return 1;
  std::vector<char> image(1 << 20);
  const size_t bytes = fread(image.data(), 1, image.size(), file);
  fclose(file);
  float* out = nullptr;
  HIP(hipMalloc(&out, 64 * sizeof(float)));
  for (int round = 0; round < 3; ++round) {
    hipModule_t module;
    hipFunction_t function;
    if (bytes == 0) return 1;
    HIP(hipModuleLoadData(&module, image.data()));
    HIP(hipModuleGetFunction(&function, module, "fill"));
    float value = 1;
    uint32_t size = 64;
    void* arguments[] = {&out, &value, &size};
    for (int i = 0; i < 4; ++i)
      HIP(hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    HIP(hipDeviceSynchronize());
    HIP(hipModuleUnload(module));
  }
  return 0;
}

int main(int argc, char** argv) {
  const char* const how = argc > 1 ? argv[1] : "";
  const auto is = [&](const char* other) { return strcmp(how, other) == 0; };
  int failed = 0;
  if (is("fork") || is("exec")) {
    const pid_t child = fork();
    if (child == 0) {
      if (is("exec")) execl("/proc/self/exe", argv[0], "child", nullptr);
      return work(7, true);
    }
    failed |= work(5, true);
    int status = 0;
    waitpid(child, &status, 0);
    failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  } else if (is("child")) {
    failed |= work(7, true);
  } else if (is("late") || is("_exit")) {
    failed |= work(12, false);
    if (is("_exit")) _exit(3);
  } else if (is("reset")) {
    failed |= work(4, true);
    HIP(hipDeviceReset());
    failed |= work(3, true);
  } else if (is("slow-exit") || is("early-slow-exit")) {
    if (is("early-slow-exit")) atexit(slow_end);
    float* first = nullptr;
    HIP(hipMalloc(&first, 64));
    if (is("slow-exit")) atexit(slow_end);
    failed |= work(12, true);
    printf("done %d\n", failed);
    return 5;
  } else if (is("waits")) {
    failed |= one_by_one();
  } else if (is("module")) {
    failed |= unload();
  } else {
    fprintf(stderr, "how?\n");
    return 2;
  }
  printf("done %d\n", failed);
  return failed;
}
