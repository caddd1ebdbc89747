// Records of the spool (event/spool.h) where a dispatch has a value for every unit that counts: each die (XCC), shader engine,
// channel. `<process>.instances` holds InstanceDefinitions and InstanceRecords, a unit's definition before its first value;
// `<process>.missing` has a line "GPU COUNTER REASON" for each counter that a GPU cannot count, once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::spool {

inline constexpr uint32_t kDefinitionMagic = 0x34735443;  // "CTs4"
inline constexpr uint32_t kInstanceMagic = 0x35735443;    // "CTs5"

/// What counts in a unit.
enum class Dimension : uint8_t { kXcc, kAid, kShaderEngine, kShaderArray, kWorkgroupProcessor, kInstance };
inline constexpr size_t kDimensions = 6;

/// One counter in one unit.
//
//    0      4      8   16       20                  32
//   +------+------+---+--------+-------------------+
//   | magic| bytes| id| counter| position x 6 (i16)|
//   +------+------+---+--------+-------------------+
struct InstanceDefinition {
  uint32_t magic, bytes;
  uint64_t id;                    ///< as the values have it
  uint32_t counter;               ///< index among the config's counters
  int16_t position[kDimensions];  ///< by Dimension; -1 = the counter does not have it
};
static_assert(sizeof(InstanceDefinition) == 32 && offsetof(InstanceDefinition, position) == 20);

struct InstanceValue {
  uint64_t id;
  double value;
};

/// A dispatch with its values.
//
//    0      4      8      16   20   24   28    32     40     48   56       68            80   84       88    92     96
//   +------+------+------+----+----+----+-----+------+------+----+--------+-------------+----+--------+-----+------+
//   | magic| bytes| index| pid| tid| gpu| pass| queue| start| end| grid[3]| workgroup[3]| lds| scratch| vgpr| accum|
//   +------+------+------+----+----+----+-----+------+------+----+--------+-------------+----+--------+-----+------+
//    96    100       104         108      112
//   +-----+---------+-----------+--------+--------------------------------------------+---------------------+
//   | sgpr| selected| name_bytes| values | mangled name, filled up to a multiple of 8 | values x (id, value) |
//   +-----+---------+-----------+--------+--------------------------------------------+---------------------+
struct InstanceRecord {
  uint32_t magic, bytes;  ///< of the whole record
  uint64_t index;         ///< over all dispatches of all processes, from 0
  uint32_t pid, tid;
  uint32_t gpu;   ///< number among the GPUs
  uint32_t pass;  ///< of the config
  uint64_t queue;
  int64_t start, end;              ///< ns, CLOCK_BOOTTIME; 0 = not timed
  uint32_t grid[3], workgroup[3];  ///< work-items
  uint32_t lds, scratch;           ///< bytes of a workgroup, of a work-item
  uint32_t vgpr, accum, sgpr;
  uint32_t selected;  ///< 0: the filter left it out, there are no values
  uint32_t name_bytes, values;
};
static_assert(sizeof(InstanceRecord) == 112 && offsetof(InstanceRecord, lds) == 80);

}  // namespace tacho::spool
