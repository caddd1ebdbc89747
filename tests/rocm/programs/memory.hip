// Memory in the ways in which HIP gives it (stream-ordered pools need more of the driver than the bed has). Prints "KIND BYTES" for each piece, and "failed 1" for one that is refused.
#include "bed.h"

int main(int argc, char** argv) {
  void *plain = nullptr, *host = nullptr, *pitched = nullptr, *managed = nullptr, *fine = nullptr;
  HIP(hipMalloc(&plain, 3'000'000));
  printf("device 3000000\n");
  HIP(hipHostMalloc(&host, 123'456));
  printf("pinned 123456\n");
  size_t pitch = 0;
  HIP(hipMallocPitch(&pitched, &pitch, 1000, 300));
  printf("device %zu\n", pitch * 300);
  hipPitchedPtr cube;
  HIP(hipMalloc3D(&cube, make_hipExtent(1000, 20, 30)));
  printf("device %zu\n", cube.pitch * 20 * 30);
  HIP(hipMallocManaged(&managed, 65'536));
  printf("managed 65536\n");
  HIP(hipExtMallocWithFlags(&fine, 8192, hipDeviceMallocFinegrained));
  printf("device 8192\n");
  void* refused = nullptr;
  printf("failed %d\n", hipMalloc(&refused, 1ull << 60) != hipSuccess);
  (void)hipGetLastError();
  if (argc > 1 && strcmp(argv[1], "reset") == 0) {
    HIP(hipDeviceReset());
    return 0;
  }
  HIP(hipFree(plain));
  HIP(hipHostFree(host));
  HIP(hipFree(pitched));
  HIP(hipFree(cube.ptr));
  HIP(hipFree(managed));
  HIP(hipFree(fine));
  return 0;
}
