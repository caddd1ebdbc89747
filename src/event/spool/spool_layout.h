// A hash by which tacho and a library in a target check that their layouts of the spool (event/spool/spool.h) are
// equal.
#pragma once

#include "event/spool/spool.h"
#include "event/spool/spool_instances.h"
#include "event/spool/spool_ranges.h"
#include "event/spool/spool_samples.h"

namespace tacho::spool {

/// Counts changes of meaning that leave all sizes as they are.
inline constexpr uint64_t kSpoolVersion = 1;

constexpr uint64_t spool_layout() {
  uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const uint64_t part :
       {kSpoolVersion, uint64_t{sizeof(SpoolState)}, uint64_t{offsetof(SpoolState, attached)}, uint64_t{kSpoolMagic},
        uint64_t{sizeof(SpoolRecord)}, uint64_t{offsetof(SpoolRecord, grid)},
        uint64_t{offsetof(SpoolRecord, name_bytes)}, uint64_t{kCounterRecordMagic}, uint64_t{sizeof(CounterRecord)},
        uint64_t{offsetof(CounterRecord, grid)}, uint64_t{offsetof(CounterRecord, image)}, uint64_t{kSampleMagic},
        uint64_t{sizeof(PcSampleRecord)}, uint64_t{offsetof(PcSampleRecord, total)}, uint64_t{kInstanceMagic},
        uint64_t{sizeof(InstanceRecord)}, uint64_t{offsetof(InstanceRecord, lds)},
        uint64_t{sizeof(InstanceDefinition)}})
    hash = (hash ^ part) * 0x100000001b3ULL;
  return hash;
}
inline constexpr uint64_t kSpoolLayout = spool_layout();

}  // namespace tacho::spool
