/* An OpenCL driver that is broken: asked for its platforms it does what BAD_ICD says: abort (the default), segv or exit. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static int break_down(void) {
  const char* const way = getenv("BAD_ICD");
  if (way != NULL && strcmp(way, "segv") == 0) raise(SIGSEGV);
  if (way != NULL && strcmp(way, "exit") == 0) exit(0);
  abort();
}

int clIcdGetPlatformIDsKHR(unsigned wanted, void** platforms, unsigned* count) {
  (void)wanted, (void)platforms, (void)count;
  return break_down();
}
int clGetPlatformInfo(void* platform, unsigned what, size_t size, void* value, size_t* needed) {
  (void)platform, (void)what, (void)size, (void)value, (void)needed;
  return break_down();
}
void* clGetExtensionFunctionAddress(const char* name) {
  return strcmp(name, "clIcdGetPlatformIDsKHR") == 0 ? (void*)clIcdGetPlatformIDsKHR : NULL;
}
