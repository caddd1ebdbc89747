// The functions that the preloaded library interposes (driver.h). /dev/kfd and the render nodes exist as empty files on
// the bed; opening one gives a descriptor of the memory file, so that mmap needs no hook.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "driver.h"

namespace {

constexpr int kMostDescriptors = 65536;
std::atomic<uint8_t> g_ours[kMostDescriptors];  // 1 = of the driver, 2 + n = of render node 128 + n

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

int open_ours(uint8_t what) {
  const int descriptor = kfd::memory().descriptor();
  if (descriptor >= 0 && descriptor < kMostDescriptors) g_ours[descriptor] = what;
  return descriptor;
}
// 0 when the path is none of ours.
uint8_t device_of(const char* path) {
  if (path == nullptr) return 0;
  if (strcmp(path, "/dev/kfd") == 0) return 1;
  unsigned minor = 0;
  if (sscanf(path, "/dev/dri/renderD%u", &minor) == 1 && minor >= 128 && minor < 136)
    return static_cast<uint8_t>(2 + minor - 128);
  return 0;
}

using Open = int (*)(const char*, int, ...);
int open_as(const char* name, const char* path, int flags, unsigned mode) {
  if (const uint8_t device = device_of(path); device != 0) {
    const int refused = kfd::fault::refuses_open();
    if (refused == 0) return open_ours(device);
    errno = refused;
    return -1;
  }
  return next<Open>(name)(path, flags, mode);
}

// libdrm's struct amdgpu_gpu_info, of which the runtime reads the beginning and the counter's frequency.
struct GpuInfo {
  uint32_t asic_id, chip_rev, chip_external_rev, family_id;
  uint64_t ids_flags, max_engine_clk, max_memory_clk;
  uint32_t num_shader_engines, num_shader_arrays_per_engine, avail_quad_shader_pipes, max_quad_shader_pipes;
  uint32_t cache_entries_per_quad_pipe, num_hw_gfx_contexts, rb_pipes, enabled_rb_pipes_mask;
  uint32_t gpu_counter_freq;  // kHz
};

}  // namespace

extern "C" {
#define TACHO_EXPORT __attribute__((visibility("default")))

TACHO_EXPORT int open(const char* path, int flags, ...) {
  va_list values;
  va_start(values, flags);
  const unsigned mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(values, unsigned) : 0;
  va_end(values);
  return open_as("open", path, flags, mode);
}
TACHO_EXPORT int open64(const char* path, int flags, ...) {
  va_list values;
  va_start(values, flags);
  const unsigned mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(values, unsigned) : 0;
  va_end(values);
  return open_as("open64", path, flags, mode);
}
TACHO_EXPORT int access(const char* path, int mode) noexcept {
  const int refused = device_of(path) != 0 ? kfd::fault::refuses_open() : 0;
  if (refused == ENOENT || (refused != 0 && mode != F_OK)) {
    errno = refused;
    return -1;
  }
  return next<int (*)(const char*, int)>("access")(path, mode);
}
TACHO_EXPORT int close(int descriptor) {
  if (descriptor >= 0 && descriptor < kMostDescriptors) g_ours[descriptor] = 0;
  return next<int (*)(int)>("close")(descriptor);
}
TACHO_EXPORT int ioctl(int descriptor, unsigned long request, ...) noexcept {
  va_list values;
  va_start(values, request);
  void* const argument = va_arg(values, void*);
  va_end(values);
  if (descriptor >= 0 && descriptor < kMostDescriptors && g_ours[descriptor] != 0) {
    if (_IOC_TYPE(request) == 'K') return kfd::call(_IOC_NR(request), argument);
    errno = ENOTTY;
    return -1;
  }
  return next<int (*)(int, unsigned long, void*)>("ioctl")(descriptor, request, argument);
}

// libdrm: a device handle is the number of its render node plus one.
TACHO_EXPORT int amdgpu_device_initialize(int descriptor, uint32_t* major, uint32_t* minor, void** device) {
  if (descriptor < 0 || descriptor >= kMostDescriptors || g_ours[descriptor] < 2) return -EINVAL;
  *major = 3;
  *minor = 57;
  *device = reinterpret_cast<void*>(static_cast<uintptr_t>(g_ours[descriptor] - 1));
  return 0;
}
TACHO_EXPORT int amdgpu_device_deinitialize(void*) {
  return 0;
}
TACHO_EXPORT int amdgpu_device_get_fd(void* device) {
  return open_ours(static_cast<uint8_t>(reinterpret_cast<uintptr_t>(device) + 1));  // the caller closes it
}
TACHO_EXPORT const char* amdgpu_get_marketing_name(void*) {
  return "AMD Instinct (imitated by tacho's test bed)";
}
TACHO_EXPORT int amdgpu_query_gpu_info(void*, GpuInfo* info) {
  memset(info, 0, sizeof *info);
  info->asic_id = 0x74a1;
  info->family_id = 141;
  info->max_engine_clk = 2'100'000;
  info->max_memory_clk = 1'300'000;
  info->num_shader_engines = 32;
  info->num_shader_arrays_per_engine = 1;
  info->gpu_counter_freq = kfd::kGpuClockHz / 1000;
  return 0;
}
}
