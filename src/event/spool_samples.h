// What the PC sampling half in a target hands to tacho, in the folder of event/spool.h: `<process>.reasons`,
// a name of a stall reason a line, by index; `<process>.samples`, PcSampleRecords; and `<crc>.cubin`, the
// modules that were loaded.
#pragma once

#include <cstdint>

namespace tacho::spool {

inline constexpr uint32_t kSampleMagic = 0x33735443;  // "CTs3"
inline constexpr uint32_t kNoSamples = 0xfffffffe;    // of a PcSampleRecord that only tells of losses

/// Then `reasons` pairs of 32-bit words (index of the reason, samples), then `name_bytes` bytes of the
/// function's mangled name, filled up to a multiple of 8.
struct PcSampleRecord {
  uint32_t magic, bytes;  ///< of the whole record
  uint64_t cubin;         ///< its crc
  uint64_t offset;        ///< of the instruction in the function
  uint32_t function;      ///< index in the module
  uint32_t reasons, name_bytes, unused;
  uint64_t total, dropped;  ///< samples of the hardware with this flush, where `function` is kNoSamples
};
static_assert(sizeof(PcSampleRecord) % 8 == 0);

}  // namespace tacho::spool
