// The ring of `tacho watch --keep`: what programs did lately, one record an operation, in memory shared with tacho
// (libtacho-watch.so writes, src/watch/recorder reads). Its size is fixed, and the newest record takes the place of the
// oldest one. It lies beside the table of sums (watch_table.h): a record names its operation by a row of that table.
//
//   /dev/shm/tacho-watch-<random>.ring, mode 0600
//   ┌────────┬──────────────┬─────────────┬──────────────────────────────────┐
//   │ header │ 512 × 64     │ 512 × 128   │ a power of two of records × 64   │
//   │ 4 KiB  │ names        │ objects     │                                  │
//   └────────┴──────────────┴─────────────┴──────────────────────────────────┘
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tacho::event {

/// What the ring's path has behind that of the table.
inline constexpr const char* kWatchRingEnding = ".ring";
inline constexpr uint64_t kWatchRingMagic = 0x3267697274617774;  // "twatrig2"
inline constexpr uint32_t kWatchCalls = 512;
inline constexpr uint32_t kWatchObjects = 512;
inline constexpr uint32_t kWatchNoRow = 0xffffffff;
inline constexpr uint32_t kWatchMarkTextBytes = 24;
/// A marker's text takes up to so many records of kText beside its own.
inline constexpr uint32_t kWatchTextRecords = 4, kWatchTextBytes = 40;

enum class WatchRecordKind : uint8_t {
  kNone,
  kWork,      ///< a call that put work into a stream or queue. object: it; amount: bytes
  kTimes,     ///< when the work of the record `of` ran. start, end: CLOCK_MONOTONIC_RAW, ns; amount: half the width of
              ///< the interval in which `start` lies, ns
  kWait,      ///< a call that waited. object: the stream or queue, if it was for one
  kAllocate,  ///< object: the address or handle; amount: bytes
  kFree,      ///< object: the address or handle
  kCall,      ///< any other call that failed
  kPush,      ///< a range of the program's begins; text[] has the beginning of its name
  kPop,       ///< the newest range of the thread in its domain ends
  kStart,     ///< a range that any thread may end, as kPush; its number is the record's ticket
  kStop,      ///< the range `of` ends
  kMark,      ///< text[] has the beginning of its text
  kText,      ///< further text of the record before it, in start, text and context
  kTrigger,   ///< the program asks for a file; text[] as for kMark
  kCollective,  ///< the process called a collective, or joined a communicator (call = 0). object: the communicator, the
                ///< same number for all its ranks; amount: the collective's number; context: ranks << 32 | rank, 0
                ///< ranks: not told
};

// Flags of kWait and kWork: when the call has returned, the work of its queue or stream, or all of the process, has
// ended. Those of kPush, kStart, kMark and kTrigger: how many records of kText follow.
inline constexpr uint8_t kWatchWaitsForQueue = 1, kWatchWaitsForAll = 2;

/// One record. Times are the host's: ticks of the clock that the header names.
struct WatchRecord {
  std::atomic<uint64_t> ticket;  ///< its number, from 1: stored last; 0 while it is being written
  uint64_t start;
  union {
    struct {
      uint64_t end;
      union {
        uint64_t object;
        uint64_t of;  ///< kTimes, kStop: a ticket
      };
      uint64_t amount;
    };
    char text[kWatchMarkTextBytes];
  };
  uint64_t
      context;   ///< kWork, kAllocate: what the stream or the memory belongs to, 0 = not told; kPush, kStart, kMark,
                 ///< kTrigger: bytes of the whole text
  uint32_t row;  ///< of the table of sums; kWatchNoRow = none
  uint32_t tid;
  uint16_t process;  ///< index in WatchTable::processes
  uint16_t call;     ///< index of its name, from 1; of a marker: of its domain's name, 0 = none
  WatchRecordKind kind;
  uint8_t flags;
  int16_t result;  ///< of the call, as its API defines it
};
static_assert(sizeof(WatchRecord) == 64);

/// The name of an API's function, or of a domain of markers.
struct WatchCall {
  std::atomic<uint32_t> state;  ///< WatchRow::State
  uint32_t domain;              ///< event::Domain
  char name[56];                ///< ends in 0
};

/// What queues, streams and memory belong to: a queue of OpenCL, a context of CUDA. The newest one of a handle counts.
struct WatchObject {
  std::atomic<uint32_t> state;  ///< WatchRow::State
  uint16_t process;             ///< as in WatchRecord
  uint16_t device;              ///< the runtime's number of it
  uint64_t handle;
  uint64_t memory;  ///< of the device, bytes; 0 = not told
  uint32_t domain;
  uint32_t kind;  ///< DeviceKind
  char name[64];  ///< of the device; ends in 0
  char vendor[32];
};
static_assert(sizeof(WatchCall) == 64 && sizeof(WatchObject) == 128);

struct WatchRingHeader {
  uint64_t magic;
  uint64_t size;     ///< of the whole file, bytes
  uint64_t records;  ///< a power of two
  uint32_t tsc;      ///< 1: host times are ticks of the TSC; 0: CLOCK_MONOTONIC_RAW, ns

  alignas(64) std::atomic<uint64_t> head;  ///< records ever written or begun
  alignas(64) std::atomic<uint32_t> calls, objects;
  std::atomic<uint64_t> lost_calls, lost_objects;  ///< that found no place
};

struct WatchRing {
  WatchRingHeader header;
  alignas(4096) WatchCall calls[kWatchCalls];
  WatchObject objects[kWatchObjects];
  WatchRecord records[1];  ///< header.records of them
};

/// Bytes of a ring of so many records.
constexpr size_t watch_ring_bytes(uint64_t records) {
  return offsetof(WatchRing, records) + records * sizeof(WatchRecord);
}

}  // namespace tacho::event
