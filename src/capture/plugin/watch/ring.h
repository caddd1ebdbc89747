// The target's side of `tacho watch --keep`: records of single operations in a ring (event/watch_ring.h). A record is
// written without a lock or a system call, and overwrites the oldest one.
#pragma once

#include <x86gprintrin.h>

#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "capture/room/lines.h"
#include "event/schema.h"
#include "event/watch_ring.h"

namespace tacho::capture::watch {

using event::WatchRecordKind;

extern constinit std::atomic<uint32_t> g_stay;  // sums.h

/// A ring as this process has mapped it. Where one was, there is memory for as long as the process lives: a call that
/// is still on its way when tacho leaves writes into pages that nobody reads.
struct OwnRing {
  event::WatchRing* at = nullptr;  ///< nullptr: nothing is kept
  uint64_t last = 0;               ///< its records - 1
  bool tsc = false;                ///< as WatchRingHeader::tsc
};
/// The ring in one word, since it lies on a page: 0 while nothing is kept. In a program that tacho starts it is set
/// before the program's own code runs.
///   63               7       6        5                   0
///   │ address / 128  │ tsc   │ records, as power of two   │
extern constinit std::atomic<uint64_t> g_ring;
inline OwnRing ring_of(uint64_t word) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the low bits of an address on a page are free
  return {reinterpret_cast<event::WatchRing*>(word & ~uint64_t{127}), (uint64_t{1} << (word & 63)) - 1,
          (word & 64) != 0};
}
inline OwnRing kept_ring() {
  return ring_of(g_ring.load(std::memory_order_acquire));
}
inline bool keeps() {
  return g_ring.load(std::memory_order_relaxed) != 0;
}
/// About where the next record will be: the last ticket of this process, more or less.
extern constinit std::atomic<uint64_t> g_last_ticket;

/// Maps the ring beside the table of that path, if there is one. `process`: this process's place in the table.
void open_ring(const char* table);
void use_ring_as(uint16_t process);
/// tacho leaves.
void close_ring();

/// The number of a name that records refer to, which a place in the code looks up once in each stay.
class CallNumber {
 public:
  /// Of a function by name and version ("cuMemAlloc", "_v2"), from 1; 0 when there is no ring or no place.
  uint16_t find(event::Domain domain, const char* name, const char* version) {
    if (!keeps()) return 0;
    const uint64_t kept = kept_.load(std::memory_order_relaxed);
    if (__builtin_expect(kept >> 16 == uint64_t{g_stay.load(std::memory_order_relaxed)} + 1, 1))
      return static_cast<uint16_t>(kept);
    return look_up(domain, name, version);
  }

 private:
  uint16_t look_up(event::Domain domain, const char* name, const char* version);
  std::atomic<uint64_t> kept_{0};  // the stay plus 1, and the number
};
#define TACHO_KEPT_CALL(domain, name, version)                 \
  ([] {                                                        \
    static constinit ::tacho::capture::watch::CallNumber kept; \
    return kept.find(domain, name, version);                   \
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

/// The host's clock as records have it.
inline uint64_t ring_ticks(const OwnRing& ring) {
  return ring.tsc ? __rdtsc() : static_cast<uint64_t>(raw_now());
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
  TACHO_RUN_OFTEN KeptCall() : word_(g_ring.load(std::memory_order_acquire)) {
    if (__builtin_expect(word_ == 0, 1)) return;
    const OwnRing ring = ring_of(word_);
    await_line(&ring.at->header.head);
    await_line(&ring.at->records[g_last_ticket.load(std::memory_order_relaxed) & ring.last]);
    stay_ = g_stay.load(std::memory_order_relaxed);
    start_ = ring_ticks(ring);
  }
  /// After the call. The record's ticket; 0 when nothing is kept, or tacho has left meanwhile.
  uint64_t end(const KeptFacts& facts) const { return kept() ? write(facts) : 0; }
  TACHO_RUN_OFTEN bool kept() const {
    return __builtin_expect(word_ != 0, 0) && stay_ == g_stay.load(std::memory_order_relaxed);
  }

 private:
  uint64_t write(const KeptFacts& facts) const;
  const uint64_t word_;  // as g_ring
  uint64_t start_ = 0;
  uint32_t stay_ = 0;
};

/// The work of the record `of` began at `start`, CLOCK_MONOTONIC_RAW, give or take `half_width` ns, and took `ns`.
void keep_times(uint64_t of, int64_t start, uint64_t ns, uint64_t half_width);

/// A marker of the program's. The ticket of its record; 0 when nothing is kept.
struct KeptMarker {
  WatchRecordKind kind = WatchRecordKind::kMark;
  std::string_view text = {};  ///< of kPush, kStart, kMark and kTrigger
  size_t whole = 0;            ///< bytes of the whole text, where `text` is only the first ones
  uint16_t domain = 0;         ///< the number of its domain's name (CallNumber); 0 = none
  uint64_t of = 0;             ///< kStop
};
uint64_t keep_marker(const KeptMarker& marker);

}  // namespace tacho::capture::watch
