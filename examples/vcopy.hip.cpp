// vcopy for HIP: copies a vector of doubles on the GPU, -i times, and checks the result.
//   vcopy_hip [-n elements] [-b block size] [-i iterations] [-d device]
#include <hip/hip_runtime.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr size_t kWave = 64;  // threads in a wave

void check(const char* what, hipError_t code) {
  if (code == hipSuccess) return;
  fprintf(stderr, "vcopy_hip: %s: %s\n", what, hipGetErrorString(code));
  exit(1);
}

}  // namespace

__global__ void vecCopy(double* from, double* to, double* spare, int n, int stride) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * stride;
  static_cast<void>(spare);
  if (i < n) to[i] = from[i];
}

int main(int argc, char** argv) {
  long elements = 1 << 20, block = 256, iterations = 1, device = 0;
  for (int option; (option = getopt(argc, argv, "n:b:i:d:h")) != -1;) {
    char* end = nullptr;
    long* const value = option == 'n'   ? &elements
                        : option == 'b' ? &block
                        : option == 'i' ? &iterations
                        : option == 'd' ? &device
                                        : nullptr;
    if (value == nullptr || (*value = strtol(optarg, &end, 10), *end != '\0' || *value < 0)) {
      fprintf(stderr, "usage: vcopy_hip [-n elements] [-b block size] [-i iterations] [-d device]\n");
      return option == 'h' ? 0 : 1;
    }
  }
  if (elements < 1 || elements > (1L << 30) || block < 1 || block > 1024 || iterations < 1) {
    fprintf(stderr, "vcopy_hip: -n must be 1 to 2^30, -b 1 to 1024, -i at least 1\n");
    return 1;
  }
  const size_t count = static_cast<size_t>(elements), bytes = count * sizeof(double);
  const unsigned groups = static_cast<unsigned>((elements + block - 1) / block);

  check("choosing the device", hipSetDevice(static_cast<int>(device)));
  printf("vcopy testing on GCD %ld\n", device);
  std::vector<double> from(count), to(count);
  for (size_t i = 0; i < count; ++i) from[i] = static_cast<double>(i % 1000) * 0.5;
  printf("Finished allocating vectors on the CPU\n");

  double *device_from = nullptr, *device_to = nullptr;
  check("allocating", hipMalloc(reinterpret_cast<void**>(&device_from), bytes));
  check("allocating", hipMalloc(reinterpret_cast<void**>(&device_to), bytes));
  printf("Finished allocating vectors on the GPU\n");

  check("copying to the GPU", hipMemcpy(device_from, from.data(), bytes, hipMemcpyHostToDevice));
  check("copying to the GPU", hipMemcpy(device_to, to.data(), bytes, hipMemcpyHostToDevice));
  printf("Finished copying vectors to the GPU\n");

  printf("sw thinks it moved %f KB per wave\n", 2.0 * kWave * sizeof(double) / 1024.0);
  printf("Total threads: %ld, Grid Size: %u block Size:%ld, Wavefronts:%zu:\n", elements, groups, block,
         static_cast<size_t>(groups) * static_cast<size_t>(block) / kWave);
  printf("Launching the  kernel on the GPU\n");
  for (long i = 0; i < iterations; ++i)
    vecCopy<<<groups, static_cast<unsigned>(block)>>>(device_from, device_to, nullptr, static_cast<int>(elements), 1);
  check("launching", hipGetLastError());
  check("running", hipDeviceSynchronize());
  printf("Finished executing kernel\n");

  check("copying from the GPU", hipMemcpy(to.data(), device_to, bytes, hipMemcpyDeviceToHost));
  printf("Finished copying the output vector from the GPU to the CPU\n");
  const bool right = memcmp(from.data(), to.data(), bytes) == 0;
  printf("Releasing GPU memory\n");
  check("freeing", hipFree(device_from));
  check("freeing", hipFree(device_to));
  printf("Releasing CPU memory\n");
  if (!right) fprintf(stderr, "vcopy_hip: the copy differs from the original\n");
  return right ? 0 : 1;
}
