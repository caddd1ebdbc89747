/* Another library that stands in for the driver, as layers for virtual GPUs do: it counts launches of the program, and passes
 * them on. It gets into the program's way by its symbols and, built with DLSYM, by a dlsym of its own. HOOK_FINDS says how it
 * finds the driver's own functions: "handle" (dlsym with the driver's handle), "next" (RTLD_NEXT), or, with DLSYM always, by libc's
 * dlsym. At the end it prints its count on standard error. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef int (*Launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                      void**);
typedef int (*Address)(const char*, void**, int, unsigned long long, int*);

static long g_launches;
#ifdef DLSYM
static void* (*libc_dlsym(void))(void*, const char*) {
  return (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
}
#endif
static void* driver_function(const char* name) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
#ifdef DLSYM
  return libc_dlsym()(library, name);
#else
  const char* const way = getenv("HOOK_FINDS");
  return dlsym(way != NULL && strcmp(way, "next") == 0 ? RTLD_NEXT : library, name);
#endif
}

EXPORT int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void* stream, void** params, void** extra) {
  static Launch next;
  if (next == NULL) next = (Launch)driver_function("cuLaunchKernel");
  __sync_fetch_and_add(&g_launches, 1);
  return next(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}
EXPORT int cuGetProcAddress_v2(const char* symbol, void** found, int version, unsigned long long flags, int* status) {
  static Address next;
  if (next == NULL) next = (Address)driver_function("cuGetProcAddress_v2");
  const int result = next(symbol, found, version, flags, status);
  if (result == 0 && strcmp(symbol, "cuLaunchKernel") == 0) *found = (void*)cuLaunchKernel;
  if (result == 0 && strcmp(symbol, "cuGetProcAddress") == 0) *found = (void*)cuGetProcAddress_v2;
  return result;
}
#ifdef DLSYM
EXPORT void* dlsym(void* handle, const char* name) {
  void* const found = libc_dlsym()(handle, name);
  if (found == NULL || handle == RTLD_NEXT || handle == RTLD_DEFAULT) return found;
  if (strcmp(name, "cuLaunchKernel") == 0) return (void*)cuLaunchKernel;
  if (strcmp(name, "cuGetProcAddress_v2") == 0) return (void*)cuGetProcAddress_v2;
  return found;
}
#endif
__attribute__((destructor)) static void report(void) {
  if (g_launches > 0) fprintf(stderr, "interposer: %ld launches\n", g_launches);
}
