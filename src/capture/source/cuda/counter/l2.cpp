// One command of the kernel driver's resource manager (l2.h, vendor/nvidia/resource_manager.h); its layout is that of
// the driver's open sources (ctrl2080fb.h).
#include "capture/source/cuda/counter/l2.h"

#include <string.h>

namespace tacho::capture::counter {
namespace {

struct Flush {
  uint64_t addresses[500];
  uint32_t address_count, alignment;
  uint64_t block_bytes;
  uint32_t flags;
};
static_assert(sizeof(Flush) == 4024);

constexpr uint32_t kFlush = 0x2080130e;
constexpr uint32_t kWriteBack = 1u << 2, kInvalidate = 1u << 3, kWholeCache = 1u << 4;  // of video memory

}  // namespace

bool empty_l2(const vendor::rm::Gpu& gpu) {
  static Flush s_flush;  // large for a stack; callers take turns
  memset(&s_flush, 0, sizeof s_flush);
  s_flush.flags = kWriteBack | kInvalidate | kWholeCache;
  return vendor::rm::control(gpu, kFlush, s_flush);
}

}  // namespace tacho::capture::counter
