// The target's side of `tacho watch --keep`: records of single operations in a ring (event/watch_ring.h). A record is
// written without a lock or a system call, and overwrites the oldest one.
#pragma once

#include <x86gprintrin.h>

#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "event/schema.h"
#include "event/watch_ring.h"

namespace tacho::capture::watch {

using event::WatchRecordKind;

/// nullptr when nothing is kept. Set before the program's own code runs.
extern event::WatchRing* g_ring;

/// Maps the ring beside the table of that path, if there is one. `process`: this process's place in the table.
void open_ring(const char* table);
void use_ring_as(uint16_t process);

/// The number of a function by name and version ("cuMemAlloc", "_v2"), from 1; 0 when there is no ring or no place.
uint16_t call_number(event::Domain domain, const char* name, const char* version);
#define TACHO_KEPT_CALL(domain, name, version)                                           \
  ([] {                                                                                  \
    static constinit std::atomic<uint16_t> kept{0};                                      \
    uint16_t found = kept.load(std::memory_order_relaxed);                               \
    if (__builtin_expect(found == 0 && ::tacho::capture::watch::g_ring != nullptr, 0)) { \
      found = ::tacho::capture::watch::call_number(domain, name, version);               \
      kept.store(found, std::memory_order_relaxed);                                      \
    }                                                                                    \
    return found;                                                                        \
  }())

/// What a queue, stream or context belongs to. Call it once for each that the runtime gives out.
struct KeptObject {
  const void* handle;
  uint32_t device = 0;  ///< the runtime's number
  uint64_t memory = 0;  ///< bytes; 0 = not told
  event::Domain domain = event::Domain::kUnknown;
  event::DeviceKind kind = event::DeviceKind::kUnknown;
  std::string_view name, vendor;
};
void keep_object(const KeptObject& object);

/// The host's clock as records have it. Only when there is a ring.
inline uint64_t ring_ticks() {
  return g_ring->header.tsc != 0 ? __rdtsc() : static_cast<uint64_t>(raw_now());
}

struct KeptFacts {
  WatchRecordKind kind = WatchRecordKind::kWork;
  uint16_t call = 0;
  uint32_t row = event::kWatchNoRow;
  uint64_t object = 0, amount = 0, context = 0;
  int result = 0;
  uint8_t flags = 0;
};

/// A call of the runtime that is kept. Make it before the call.
class KeptCall {
 public:
  KeptCall() : start_(g_ring != nullptr ? ring_ticks() : 0) {}
  /// After the call. The record's ticket; 0 when nothing is kept.
  uint64_t end(const KeptFacts& facts) const { return start_ == 0 || g_ring == nullptr ? 0 : write(facts); }
  bool kept() const { return start_ != 0; }

 private:
  uint64_t write(const KeptFacts& facts) const;
  uint64_t start_;
};

/// The work of the record `of` began at `start`, CLOCK_MONOTONIC_RAW, give or take `half_width` ns, and took `ns`.
void keep_times(uint64_t of, int64_t start, uint64_t ns, uint64_t half_width);

/// A marker of the program's; its text may be empty for kPop.
void keep_marker(WatchRecordKind kind, std::string_view text);

}  // namespace tacho::capture::watch
