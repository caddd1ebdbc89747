/* Preloaded into tacho: a user whose disk quota (QUOTA_BYTES) is used up by its positioned writes, after which they fail
 * with EDQUOT. The pool lies in memory and does not count. Kernels without quota support can be tested so. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static long long used;

static int is_pool(int file) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size <= 0) return 0;
  path[size] = '\0';
  return strstr(path, ".pool") != NULL;
}

static ssize_t limited(const char* function, int file, const void* bytes, size_t size, off64_t offset) {
  const char* const quota = getenv("QUOTA_BYTES");
  if (quota != NULL && !is_pool(file) && __atomic_add_fetch(&used, (long long)size, __ATOMIC_RELAXED) > atoll(quota)) {
    errno = EDQUOT;
    return -1;
  }
  ssize_t (*const next)(int, const void*, size_t, off64_t) =
      (ssize_t(*)(int, const void*, size_t, off64_t))dlsym(RTLD_NEXT, function);
  return next(file, bytes, size, offset);
}

ssize_t pwrite(int file, const void* bytes, size_t size, off_t offset) {
  return limited("pwrite", file, bytes, size, offset);
}
ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t offset) {
  return limited("pwrite64", file, bytes, size, offset);
}
