// The processor's version of the OpenCL example's kernel, for LD_PRELOAD: examples/vcopy checks its results.
#include "bed.h"

static void copy_item(uint32_t at, const double* from, double* to, int n) {
  if (static_cast<int>(at) < n) to[at] = from[at];
}

extern "C" __attribute__((visibility("default"))) void bed_vecCopy(const bed::Dispatch* packet, const void* block) {
  bed::run(packet, block, copy_item);
}
