/* Preloaded into tacho: a user whose disk quota (QUOTA_BYTES) is used up by its positioned writes, after which they fail
 * with EDQUOT. Kernels without quota support can be tested so. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static long long used;

static ssize_t limited(const char* function, int file, const void* bytes, size_t size, off64_t offset) {
  const char* const quota = getenv("QUOTA_BYTES");
  if (quota != NULL && __atomic_add_fetch(&used, (long long)size, __ATOMIC_RELAXED) > atoll(quota)) {
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
