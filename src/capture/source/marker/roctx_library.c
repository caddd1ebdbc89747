/* Stand-ins for libroctx64.so and librocprofiler-sdk-roctx.so, for programs that dlopen them or are linked to
 * them on a machine without ROCm: the launcher puts their folder into the library path. Every function passes
 * on to the one of libtacho.so (TACHO_LIBRARY); without it the functions do nothing and return what ROCTx
 * returns without a tool. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static void* find(const char* name) {
  const char* path = getenv("TACHO_LIBRARY");
  if (path == NULL || path[0] != '/' || getauxval(AT_SECURE) != 0) return NULL;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return library != NULL ? dlsym(library, name) : NULL;
}

/* Looks `name` up once; `searched` keeps a miss from being looked up again. Races find the same. */
#define PASS_ON(type, name, parameters, arguments)    \
  static type(*volatile function) parameters;         \
  static volatile int searched;                       \
  if (!searched) {                                    \
    void* at = find(#name);                           \
    type(*found) parameters;                          \
    memcpy(&found, &at, sizeof found);                \
    function = found;                                 \
    __atomic_store_n(&searched, 1, __ATOMIC_RELEASE); \
  }                                                   \
  if (function != NULL) return function arguments

static __thread int level;
static uint64_t last_range;

EXPORT uint32_t roctx_version_major(void) {
  return 4;
}
EXPORT uint32_t roctx_version_minor(void) {
  return 1;
}
EXPORT void roctxMarkA(const char* message) {
  PASS_ON(void, roctxMarkA, (const char*), (message));
}
EXPORT int roctxRangePushA(const char* message) {
  PASS_ON(int, roctxRangePushA, (const char*), (message));
  return level++;
}
EXPORT int roctxRangePop(void) {
  PASS_ON(int, roctxRangePop, (void), ());
  return level == 0 ? -1 : --level;
}
EXPORT uint64_t roctxRangeStartA(const char* message) {
  PASS_ON(uint64_t, roctxRangeStartA, (const char*), (message));
  return __atomic_add_fetch(&last_range, 1, __ATOMIC_RELAXED);
}
EXPORT void roctxRangeStop(uint64_t range) {
  PASS_ON(void, roctxRangeStop, (uint64_t), (range));
}
EXPORT int roctxProfilerPause(uint64_t tid) {
  PASS_ON(int, roctxProfilerPause, (uint64_t), (tid));
  return 0;
}
EXPORT int roctxProfilerResume(uint64_t tid) {
  PASS_ON(int, roctxProfilerResume, (uint64_t), (tid));
  return 0;
}
EXPORT int roctxGetThreadId(uint64_t* tid) {
  PASS_ON(int, roctxGetThreadId, (uint64_t*), (tid));
  if (tid == NULL) return -1;
  *tid = (uint64_t)syscall(SYS_gettid);
  return 0;
}
EXPORT int roctxNameOsThread(const char* name) {
  PASS_ON(int, roctxNameOsThread, (const char*), (name));
  return 0;
}
EXPORT int roctxNameHsaAgent(const char* name, const void* agent) {
  PASS_ON(int, roctxNameHsaAgent, (const char*, const void*), (name, agent));
  return 0;
}
EXPORT int roctxNameHipDevice(const char* name, int device) {
  PASS_ON(int, roctxNameHipDevice, (const char*, int), (name, device));
  return 0;
}
EXPORT int roctxNameHipStream(const char* name, const void* stream) {
  PASS_ON(int, roctxNameHipStream, (const char*, const void*), (name, stream));
  return 0;
}
