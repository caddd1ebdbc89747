// Allocates by CUDA's driver from three lines of its own, for memory.py: 3, 5 and, in the order of a stream, 7 MiB.
// It finds the driver by dlopen, so that it compiles without CUDA's headers.
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

static int (*allocate)(unsigned long long*, size_t);
static int (*allocate_async)(unsigned long long*, size_t, void*);

__attribute__((noinline)) static int plain(unsigned long long* at) {
  return allocate(at, 3 << 20);
}
__attribute__((noinline)) static int large(unsigned long long* at) {
  return allocate(at, 5 << 20);
}
__attribute__((noinline)) static int ordered(unsigned long long* at) {
  return allocate_async(at, 7 << 20, NULL);
}

int main(void) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (driver == NULL) return 77;
  int (*const init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
  int (*const get)(int*, int) = (int (*)(int*, int))dlsym(driver, "cuDeviceGet");
  int (*const retain)(void**, int) = (int (*)(void**, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
  int (*const use)(void*) = (int (*)(void*))dlsym(driver, "cuCtxSetCurrent");
  int (*const wait)(void) = (int (*)(void))dlsym(driver, "cuCtxSynchronize");
  allocate = (int (*)(unsigned long long*, size_t))dlsym(driver, "cuMemAlloc_v2");
  allocate_async = (int (*)(unsigned long long*, size_t, void*))dlsym(driver, "cuMemAllocAsync");
  int device = 0;
  void* context = NULL;
  unsigned long long at[3] = {0, 0, 0};
  if (init(0) != 0 || get(&device, 0) != 0 || retain(&context, device) != 0 || use(context) != 0) return 1;
  const int first = plain(&at[0]), second = large(&at[1]), third = ordered(&at[2]);
  printf("%d %d %d\n", first, second, third);
  return wait();
}
