/* A stand-in for NVIDIA's libcuda.so.1, as far as `tacho avail` asks it: FAKE_CUDA_INIT is what cuInit returns,
 * FAKE_CUDA_VERSION the CUDA that the driver supports (13000 when not set), FAKE_CUDA_MAJOR the
 * device's compute capability. It has one device. */
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static int number(const char* name, int fallback) {
  const char* const text = getenv(name);
  return text != NULL ? atoi(text) : fallback;
}

EXPORT int cuInit(unsigned flags) {
  (void)flags;
  return number("FAKE_CUDA_INIT", 0);
}
/* Called within cuDriverGetVersion: by the stand-in for CUPTI, which tells of the call. */
EXPORT void (*fake_driver_version_asked)(void);
EXPORT int cuDriverGetVersion(int* version) {
  if (fake_driver_version_asked != NULL) fake_driver_version_asked();
  *version = number("FAKE_CUDA_VERSION", 13000);
  return 0;
}
EXPORT int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
EXPORT int cuDeviceGet(int* device, int index) {
  *device = index;
  return 0;
}
EXPORT int cuDeviceGetName(char* name, int size, int device) {
  (void)device;
  strncpy(name, "Stand-in GPU", (size_t)size);
  return 0;
}
EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  *bytes = 1 << 30;
  return 0;
}
EXPORT int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  *value = attribute == 75 ? number("FAKE_CUDA_MAJOR", 8) : 8;
  return 0;
}
