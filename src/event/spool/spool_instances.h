// Records of the spool (event/spool/spool.h) where a dispatch has a value for every unit that counts: each die (XCC),
// shader
// engine, channel. `<process>.instances` holds InstanceDefinitions and InstanceRecords, a unit's definition before its
// first value; `<process>.missing` has a line "GPU COUNTER REASON" for each counter that a GPU cannot count, once;
// `<process>.once` a line "INDEX REASON" (RanOnce) for each launch that was to run once a pass, and was broken off.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::spool {

inline constexpr uint32_t kDefinitionMagic = 0x34735443;  // "CTs4"
inline constexpr uint32_t kInstanceMagic = 0x35735443;    // "CTs5"

/// The levels of the hardware that a unit's position names.
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
  uint64_t id;                    ///< as in the values
  uint32_t counter;               ///< index among the config's counters
  int16_t position[kDimensions];  ///< by Dimension; -1 = not a dimension of the counter
};
static_assert(sizeof(InstanceDefinition) == 32 && offsetof(InstanceDefinition, position) == 20);

struct InstanceValue {
  uint64_t id;
  double value;
};

/// Why a launch ran once although launches are to be run again for each pass: only its first pass was measured.
enum class RanOnce : uint32_t {
  kNo,          ///< it ran once for each pass, or was not to
  kCollective,  ///< it waits for other processes or GPUs
  kGraph,       ///< it is part of a graph
  kOwn,         ///< the runtime launched it, for a copy or a fill
  kOther,  ///< it came by a call that tacho does not repeat: with launch attributes, by a runtime that is linked statically
  kUnknown,    ///< its arguments are unknown
  kCallsHost,  ///< it may print, assert or use the device's heap
  kShared,     ///< its arguments name memory of other processes, of graphics, or memory that tacho did not see
  kMapped,     ///< the program has mapped memory itself (virtual memory, stream-ordered pools)
  kPageable,   ///< kernels can write all of the process's memory
  kBusy,       ///< the GPU did not become idle before it
  kWaits,      ///< it did not end on its own
  kNoRoom,     ///< neither the GPU nor the host had room for a copy of the memory
  kFailed,     ///< memory could not be copied, or the launch failed
};
inline constexpr uint32_t kRanOnceReasons = 14;

/// A dispatch with its values, in one pass.
//
//    0      4      8      16   20   24   28    32     40     48   56       68            80   84       88    92     96
//   +------+------+------+----+----+----+-----+------+------+----+--------+-------------+----+--------+-----+------+
//   | magic| bytes| index| pid| tid| gpu| pass| queue| start| end| grid[3]| workgroup[3]| lds| scratch| vgpr| accum|
//   +------+------+------+----+----+----+-----+------+------+----+--------+-------------+----+--------+-----+------+
//    96    100       104         108     112    116      120
//   +-----+---------+-----------+-------+------+--------+--------------------------------------------+---------------------+
//   | sgpr| selected| name_bytes| values| once | 0      | mangled name, filled up to a multiple of 8 | values x (id, value)|
//   +-----+---------+-----------+-------+------+--------+--------------------------------------------+---------------------+
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
  uint32_t selected;  ///< 0: left out by the filter, without values
  uint32_t name_bytes, values;
  uint32_t once, reserved;  ///< RanOnce
};
static_assert(sizeof(InstanceRecord) == 120 && offsetof(InstanceRecord, lds) == 80);

}  // namespace tacho::spool
