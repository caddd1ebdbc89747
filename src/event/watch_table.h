// The table of `tacho watch`: sums that watched programs keep in memory shared with tacho (libtacho-watch.so writes,
// src/watch reads). Its size is fixed. Any process may change any word of it at any time, so that a program that is
// killed leaves the table readable, and tacho reads it without stopping anybody.
//
//   TACHO_WATCH=/dev/shm/tacho-watch-<random>, mode 0600
//   ┌───────────────┬────────────────────┬──────────────────────────────────────────────┐
//   │ header, 4 KiB │ 256 processes × 128│ 2048 rows below 3 KiB; row 0: other kernels  │ and 8192 parts of graphs
//   └───────────────┴────────────────────┴──────────────────────────────────────────────┘
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tacho::event {

inline constexpr const char* kWatchVariable = "TACHO_WATCH";
inline constexpr const char* kWatchLibrary = "libtacho-watch.so";
/// Its function in which the thread begins that tacho starts in a program that runs (tape/attach_block.h).
inline constexpr const char* kWatchEntry = "tacho_watch_enter";
inline constexpr uint64_t kWatchMagic = 0x3768637461776f74;  // "towatch7"
inline constexpr uint32_t kWatchRows = 2048;
inline constexpr uint32_t kWatchProcesses = 256;
/// A kernel's launches are told apart by their shape until it has so many of them; the rest share a row.
inline constexpr uint32_t kWatchShapes = 8;
/// Names of kernels that get rows of their own; launches of others are in row 0.
inline constexpr uint32_t kWatchNames = 1024;
inline constexpr uint32_t kWatchNameBytes = 1000;
/// 1 of 2^level operations is timed, level from 0.
inline constexpr uint32_t kWatchLevels = 16;

// Buckets of durations: four an octave from 64 ns to 2^38 ns (275 s). Bucket 0 takes what is shorter, the last one what
// is longer.
inline constexpr uint32_t kWatchFirstOctave = 6, kWatchOctaves = 32;
inline constexpr uint32_t kWatchBuckets = kWatchOctaves * 4 + 2;

/// The bucket of a duration in ns.
inline uint32_t watch_bucket(uint64_t ns) {
  if (ns < (uint64_t{1} << kWatchFirstOctave)) return 0;
  const auto octave = static_cast<uint32_t>(63 - __builtin_clzll(ns));
  if (octave >= kWatchFirstOctave + kWatchOctaves) return kWatchBuckets - 1;
  return 1 + (octave - kWatchFirstOctave) * 4 + static_cast<uint32_t>(ns >> (octave - 2) & 3);
}
/// The first duration, ns, that no longer belongs to the bucket; UINT64_MAX for the last one.
inline uint64_t watch_bucket_end(uint32_t bucket) {
  if (bucket == kWatchBuckets - 1) return UINT64_MAX;
  if (bucket == 0) return uint64_t{1} << kWatchFirstOctave;
  const uint32_t octave = kWatchFirstOctave + (bucket - 1) / 4, quarter = (bucket - 1) % 4;
  return (uint64_t{1} << octave) + (quarter + 1) * (uint64_t{1} << (octave - 2));
}

enum class WatchKind : uint32_t {
  kNone,
  kKernel,      ///< launches of a kernel, of one shape or of all further ones
  kGraph,       ///< launches of a graph, or of a command buffer, as a whole
  kCopy,        ///< copies of one direction, with bytes
  kFill,        ///< fills, with bytes
  kWait,        ///< calls in which the program waits for its device
  kAllocation,  ///< allocations of device memory, with bytes
};

/// What is known of operations during which 1 of 2^level was to be timed. Rates differ, so their sums stay apart.
struct WatchLevel {
  std::atomic<uint64_t> count;  ///< operations; those since WatchRow::level_from are not in it yet
  std::atomic<uint64_t> timed;  ///< of them timed
  std::atomic<uint64_t> time;   ///< their sum, ns
  std::atomic<double> squares;  ///< the sum of their squares, ns²
  /// Of others only a bound is known: the time that was taken contains one in which the device had nothing to do.
  std::atomic<uint64_t> bounded, bound_time;  ///< how many, and the sum of their bounds, ns
};

enum class WatchTiming : uint32_t {
  kNever,  ///< operations are only counted
  kOn,
  kFirst,  ///< for a moment only the first kWatchFirst operations of a row are timed, to see what timing costs
};
inline constexpr uint64_t kWatchFirst = 64;  ///< operations of a row that are all timed

/// A row is found by its key. It is written once, and from then on only its sums change.
struct WatchRow {
  enum State : uint32_t { kFree, kTaken, kReady };

  std::atomic<uint32_t> state;
  uint64_t key;        ///< hash of kind, whole name and shape; 0 in row 0
  uint32_t grid[3];    ///< work-items or threads in all; all 0: launches of any other shape, or no kernel
  uint32_t group[3];   ///< of a work-group or block; all 0: the runtime chose, or as above
  uint32_t name_size;  ///< bytes of the whole name; more than kWatchNameBytes where it was cut
  uint32_t domain;     ///< event::Domain
  char name[kWatchNameBytes];

  alignas(64) std::atomic<uint64_t> count;  ///< operations in all
  std::atomic<uint64_t> next;               ///< the number of the operation that is timed next
  std::atomic<uint64_t> bytes;
  std::atomic<uint64_t> level_from;  ///< operations when `level` was chosen
  std::atomic<uint64_t> owed;        ///< operations for which none was timed: the next one stands for them, too
  std::atomic<uint32_t> level;
  WatchKind kind;                                       ///< here, since each operation reads it
  alignas(64) std::atomic<uint64_t> shortest, longest;  ///< timed, ns plus 1; 0: none was timed
  std::atomic<uint64_t> stood_time;  ///< timed, ns, each for as many operations as it stands for: an estimate of all
  WatchLevel levels[kWatchLevels];
  std::atomic<uint64_t> buckets[kWatchBuckets];  ///< operations for which the timed ones stand: an estimate of all
};

/// As a domain of a process: a runtime that is watched only in programs that tacho starts, while this one ran before.
inline constexpr uint32_t kWatchUnseen = 31;

/// What a graph launches each time. Graphs with the same parts share a row.
struct WatchPart {
  std::atomic<uint32_t> graph;   ///< its row; 0: not filled yet
  std::atomic<uint32_t> kernel;  ///< the kernel's row, or kWatchOtherNodes
  std::atomic<uint32_t> nodes;   ///< so many of them
};
inline constexpr uint32_t kWatchGraphs = 256;             ///< rows of graphs
inline constexpr uint32_t kWatchParts = 8192;             ///< of all graphs
inline constexpr uint32_t kWatchOtherNodes = UINT32_MAX;  ///< copies, fills, calls of the host, and what has no rows

inline constexpr uint32_t kWatchGone = 2;

/// One program that has libtacho-watch.so.
struct WatchProcess {
  std::atomic<uint32_t> pid;       ///< 0: free
  std::atomic<uint32_t> domains;   ///< 1 << event::Domain of the runtimes that are watched, and kWatchUnseen
  std::atomic<uint32_t> ended;     ///< 1: in order; kWatchGone: tacho finds it no more
  char name[16];                   ///< as the kernel knows it
  std::atomic<uint32_t> forks;     ///< children since tacho came to it while it ran: they are not watched
  std::atomic<uint64_t> launches;  ///< of kernels and graphs, but for own_launches
  std::atomic<uint64_t> bytes;     ///< copied
  std::atomic<uint64_t> time;      ///< on devices, timed, ns, each for as many operations as it stands for: an estimate
  std::atomic<uint32_t>
      untimed;  ///< queues that were made without profiling before tacho came: nothing in them is timed
  std::atomic<uint32_t> closed_words;  ///< pointers to functions that are watched which tacho may not change
  /// Where it has its event::WatchPatches, in its memory; 0: nowhere.
  alignas(64) std::atomic<uint64_t> patches;
  std::atomic<uint64_t> own_launches;      ///< those of its first thread that launches: it alone writes here
  std::atomic<uint32_t> foreign_markers;   ///< 1: another tool takes what it sets through NVTX
  std::atomic<uint32_t> watched_children;  ///< that came while it was watched, and are watched as well; set by tacho
  std::atomic<uint32_t> unseen_queues;     ///< queues in which nothing is counted
};

struct WatchHeader {
  uint64_t magic;
  uint32_t size;                 ///< of the whole table, bytes
  std::atomic<uint32_t> closed;  ///< 1: tacho has gone, so nobody reads
  std::atomic<uint32_t> guests;  ///< programs that ran before tacho came to them, and that it has not left

  // Set by tacho
  std::atomic<WatchTiming> timing;
  std::atomic<uint32_t> least_level;  ///< at most 1 of 2^least_level is timed once a row has its first ones
  /// While watch_timing_time() is at this, ns, only the first kWatchFirst operations of a row are timed.
  std::atomic<uint64_t> timing_limit;
  std::atomic<uint32_t> patches;  ///< 1: programs ask for patches of the functions that are watched

  // Counted by programs
  alignas(64) std::atomic<uint64_t> failed;  ///< operations that the runtime refused, counted nowhere else
  std::atomic<uint64_t> lost_rows;           ///< operations whose row was not found in time: counted nowhere else
  std::atomic<uint64_t> lost_times;          ///< operations that were to be timed and were not
  std::atomic<uint64_t> pending;             ///< operations that are to be timed and have not ended yet
  std::atomic<uint64_t> refused_processes;   ///< that found no room in the list of processes
  /// Events around an operation take time themselves, which times no longer contain: the median of what two events in a
  /// row took, by how much it varies (half the distance of the quartiles), ns, and 1 << event::Domain of such times.
  std::atomic<uint64_t> floor, floor_spread, floor_domains;
  /// What a device takes from an event to a kernel and back, on top of that, ns: at least and at most, and 1 <<
  /// event::Domain of the kernels and graphs whose times no longer contain the middle of it. For operations of
  /// beside_long_from, ns, and more it may be less and more than that by beside_long_spread.
  std::atomic<uint64_t> beside_low, beside_high, beside_domains, beside_long_from, beside_long_spread;
  std::atomic<uint64_t> waits;                         ///< watch_wait_mark() of the last call that waited
  std::atomic<uint32_t> graphs, parts;                 ///< names of graphs, and parts, that were given out
  std::atomic<uint32_t> made;                          ///< rows that have become ready: a hint to look for them
  alignas(64) std::atomic<uint64_t> counted_measured;  ///< operations that were only counted: 1 of 256 is measured, and
  std::atomic<uint64_t> counted_time;                  ///< the host time that libtacho-watch.so took itself, ns, and
                                                       ///< the clock with it
  std::atomic<uint64_t> prepared;       ///< operations that were prepared for timing, all of them measured
  std::atomic<uint64_t> prepared_time;  ///< host time for that, and for reading the times afterwards, ns
  std::atomic<uint64_t> device_time;    ///< that events took on devices which had work, at most, ns
  std::atomic<uint64_t> skipped;        ///< operations that were to be timed while timing_limit was reached
  /// What the clock takes between two readings with nothing between them, where operations are counted: how often it
  /// was measured, and the sum, ns.
  std::atomic<uint64_t> clock_measured, clock_time;
  std::atomic<uint64_t> once_time;  ///< host time for what comes once, names and what is in graphs, ns
};

/// What timing has taken of hosts and devices, ns.
inline uint64_t watch_timing_time(const WatchHeader& header) {
  return header.prepared_time.load(std::memory_order_relaxed) + header.device_time.load(std::memory_order_relaxed);
}

// How many calls have waited, modulo 2^24, and when the last one came back, us of CLOCK_MONOTONIC, modulo 2^40:
//   63        24 23     0
//   │   time    │ count  │
inline uint64_t watch_wait_mark(uint64_t before, uint64_t now_ns) {
  return now_ns / 1000 << 24 | ((before + 1) & 0xffffff);
}

struct WatchTable {
  WatchHeader header;
  alignas(4096) WatchProcess processes[kWatchProcesses];
  alignas(4096) WatchRow rows[kWatchRows];
  alignas(4096) WatchPart parts[kWatchParts];
};
static_assert(sizeof(WatchHeader) <= 4096 && sizeof(WatchProcess) == 128 && sizeof(WatchRow) <= 3072);
static_assert(std::atomic<double>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);

}  // namespace tacho::event
