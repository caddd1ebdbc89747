// Records of the spool (event/spool/spool.h) where the counter data are images of a vendor's library, which tacho
// evaluates.
// The target reads `counter.config`, the library's configuration image; it writes `<process>.<n>.<device>.image`,
// counter data with the ranges of several launches on one GPU, and appends one CounterRecord for each range of that
// image to `<process>.records`. At its end it appends one for each kernel with the number of launches that were not
// measured (index ~0). An image gets its name when it is complete; its records follow.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::spool {

inline constexpr uint32_t kCounterRecordMagic = 0x32735443;  // "CTs2"
inline constexpr uint32_t kNotMeasured = 0xffffffff;

/// A launch.
//
//    0      4      8      16   20   24       28      32     40     48       60        72      76     80
//   +------+------+------+----+----+--------+-------+------+------+--------+---------+-------+------+----------+
//   | magic| bytes| index| pid| tid| process| device| queue| start| grid[3]| block[3]| shared| local| registers|
//   +------+------+------+----+----+--------+-------+------+------+--------+---------+-------+------+----------+
//    84     88     92        96       100         104
//   +------+------+---------+--------+-----------+--------------------------------------------+
//   | image| range| selected| samples| name_bytes| mangled name, filled up to a multiple of 8 |
//   +------+------+---------+--------+-----------+--------------------------------------------+
struct CounterRecord {
  uint32_t magic, bytes;  ///< of the whole record
  uint64_t index;         ///< over all dispatches of all processes, from 0
  uint32_t pid, tid;
  uint32_t process;    ///< running number of the process among those that attached
  uint32_t device;     ///< the runtime's ordinal
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
  uint32_t samples;    ///< launches that the range combines; of a record without range, the launches behind it
  uint32_t name_bytes;
};
static_assert(sizeof(CounterRecord) == 104 && offsetof(CounterRecord, grid) == 48);

}  // namespace tacho::spool
