// Records of the spool (event/spool/spool.h) of a run that samples the program counter: `<process>.reasons`, a name of
// a
// stall reason a line, by index; `<process>.samples`, SampleRecords; and `<crc>.cubin`, the modules that were loaded.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::spool {

inline constexpr uint32_t kSampleMagic = 0x33735443;  // "CTs3"
inline constexpr uint32_t kNoSamples = 0xfffffffe;    // of a PcSampleRecord that only reports losses

/// Samples at one instruction.
//
//    0      4      8      16      24        28       32          36      40     48       56
//   +------+------+------+-------+---------+--------+-----------+-------+------+--------+---------------------+
//   | magic| bytes| cubin| offset| function| reasons| name_bytes| unused| total| dropped| reasons x (2 words) |
//   +------+------+------+-------+---------+--------+-----------+-------+------+--------+---------------------+
//   | mangled name, filled up to a multiple of 8 |
//   +--------------------------------------------+
//
// A reason is its index and its number of samples.
struct PcSampleRecord {
  uint32_t magic, bytes;  ///< of the whole record
  uint64_t cubin;         ///< crc of the module
  uint64_t offset;        ///< of the instruction in the function
  uint32_t function;      ///< index in the module
  uint32_t reasons, name_bytes, unused;
  uint64_t total, dropped;  ///< samples of the hardware with this flush, where `function` is kNoSamples
};
static_assert(sizeof(PcSampleRecord) == 56 && offsetof(PcSampleRecord, total) == 40);

}  // namespace tacho::spool
