// What the CUPTI half of counter collection in a target hands to tacho, in the folder of event/spool.h. The target
// reads `counter.config` (CUPTI's config image) and the lines of `config`; it writes `<process>.<n>.<device>.image`, a
// counter data image with the ranges of several launches on one GPU, and appends to `<process>.records` one CounterRecord a range of that
// image, and at its end one for each kernel with the number of launches that were not measured (index ~0). An image is
// named when it is complete, its records follow.
#pragma once

#include <cstdint>

namespace tacho::spool {

inline constexpr uint32_t kCounterRecordMagic = 0x32735443;  // "CTs2"
inline constexpr uint32_t kNotMeasured = 0xffffffff;

/// Then `name_bytes` bytes of the kernel's mangled name, filled up to a multiple of 8.
struct CounterRecord {
  uint32_t magic, bytes;  ///< of the whole record
  uint64_t index;         ///< over all dispatches of all processes, from 0
  uint32_t pid, tid;
  uint32_t process;    ///< running number of the process among those that attached
  uint32_t device;     ///< CUDA ordinal
  uint64_t queue;      ///< stream handle
  int64_t start;       ///< ns, CLOCK_BOOTTIME, when the launching call began
  uint32_t grid[3];    ///< blocks
  uint32_t block[3];   ///< threads
  uint32_t shared;     ///< bytes a block, static and dynamic
  uint32_t local;      ///< bytes a thread
  uint32_t registers;  ///< a thread
  uint32_t image;      ///< number of the image among those of the device, kNotMeasured = there is none
  uint32_t range;      ///< in the image
  uint32_t selected;   ///< 0: the filter left it out
  uint32_t samples;  ///< launches that the range combines; of a record without range, launches it stands for
  uint32_t name_bytes;
};
static_assert(sizeof(CounterRecord) % 8 == 0);

}  // namespace tacho::spool
