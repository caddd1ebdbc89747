// The pool's memory, byte for byte. Targets write it and tacho's drainer reads it, in one shared mapping:
//
//   0                header_bytes        data_offset             data_offset + max_blocks * block_size
//   +----------------+-------------------+---------+---------+ ... +
//   | PoolHeader     | state[max_blocks] | block 0 | block 1 |     |
//   +----------------+-------------------+---------+---------+ ... +
//
// Blocks 0 to populated_blocks - 1 are backed by memory.
//
// A block is 64 KiB: a BlockHeader of 64 bytes, then its payload. Its state word changes
//
//   free -> open   by a target, compare-and-swap
//   open -> full   by the target
//   full -> free   by the drainer, which also frees open blocks of ended threads
//
// The thread that owns an open block publishes records with a release store of BlockHeader::committed. An extent is a
// run of blocks with one header, for vendors' buffers that are larger than a block.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "event/schema.h"

namespace tacho::tape {

inline constexpr uint32_t kBlockSize = 64 * 1024;
/// Beside the pool's file: a named pipe, into which a process that may not open the pool writes its pid (4 bytes).
inline constexpr const char* kRefusedEnding = ".refused";
inline constexpr uint32_t kPoolVersion = 6;
inline constexpr char kPoolMagic[8] = {'T', 'A', 'C', 'H', 'O', 'P', 'L', '1'};
inline constexpr size_t kConfigBytes = 16 * 1024;
inline constexpr uint32_t kMaxProcessSlots = 1u << 20;

enum class BlockState : uint32_t {
  kFree = 0,
  kOpen = 1,  // owned by a thread of a target, `committed` bytes are valid
  kFull = 2,  // complete, waiting for the drainer
  kTail = 3,  // second and further blocks of an extent
  kKept = 4,  // definitions, drained, kept for recovery while their process may still refer to them
};

enum class BlockKind : uint32_t {
  kRecords = 1,      // records.h, one writing thread
  kDefinitions = 2,  // records.h, definitions of one process, in order
  kShared = 3,       // records.h, many writers: a record is valid once its header's size is not 0; a pad ends it
  kProgress = 4,     // a CommandCounts, open as long as its process lives
  // Buffers as a vendor's library completed them; src/decode/block_decoders.def names their decoders.
  kCupti = 16,        // CUPTI activity records; vendor_version = cuptiGetVersion()
  kRocprofiler = 17,  // records of AMD's rocprofiler-sdk (vendor/amd/sdk.h); vendor_version = its version
};
/// True if blocks of the kind hold a vendor's buffer, which the drainer hands on whole.
constexpr bool is_vendors(BlockKind kind) {
  return static_cast<uint32_t>(kind) >= 16;
}

struct BlockHeader {
  std::atomic<uint32_t> committed;  // valid bytes after the header
  BlockKind kind;
  uint32_t process_slot;
  uint32_t thread_index;  // of the process, from 1; 0 = not a thread's block
  uint32_t pid;           // in the target's pid namespace
  uint32_t tid;
  uint32_t vendor_version;
  uint32_t blocks;    // length of the extent, >= 1
  uint64_t sequence;  // order in which blocks were opened, over the whole pool
  uint64_t opened;    // host time
  uint32_t drained;   // bytes that the drainer has taken; it writes this
  uint32_t aux;       // the kind's own (CUPTI stream id ...)
  uint64_t aux64;     // the kind's own (CUPTI context ...); records.h: inode of the pid's namespace, 0 = unknown
};
static_assert(sizeof(BlockHeader) == 64);
inline constexpr uint32_t kBlockPayload = kBlockSize - sizeof(BlockHeader);

/// The commands that a process has issued to its devices, from which tacho computes how many a killed process lost.
/// Every thread of the process updates it; tacho reads it when the process has ended.
struct CommandCounts {
  std::atomic<uint64_t> ended;     // 1: the process ended normally and itself counted the commands in flight
  std::atomic<uint64_t> filtered;  // launches that the user's filter excluded
  std::atomic<uint64_t> issued[event::kFactTables];  // commands that should become rows, by table
};

/// The sources that targets record. --start-paused, --delay, --duration, triggers and tacho_pause() change them during
/// the run.
namespace source_bit {
inline constexpr uint64_t kApi = 1, kDispatch = 2, kCopy = 4, kAllocation = 8, kMarker = 16, kSync = 32, kSample = 64,
                          kOverhead = 128, kCounter = 256;
/// Not a source: PoolHeader::enabled has this bit while recording is on, so that a run whose only source still waits is
/// not mistaken for a paused one.
inline constexpr uint64_t kRecording = 0x8000;
inline constexpr uint64_t kAll = 0xffff;
}  // namespace source_bit

/// What keeps recording closed (gate.h).
namespace gate {
inline constexpr uint32_t kTime = 1;        // before --delay, after --duration, between collection periods
inline constexpr uint32_t kTrigger = 2;     // before --start-trigger, after --stop-trigger
inline constexpr uint32_t kProgram = 4;     // tacho_pause() and its like; --start-paused
inline constexpr uint32_t kSampleTime = 8;  // call stacks alone: outside their own delay and duration
}  // namespace gate

/// A change of PoolHeader::enabled, for those who see events of the run later than they happen.
struct GateChange {
  std::atomic<uint64_t> number;   // from 1; stored last, 0 while the change is written
  std::atomic<uint64_t> ticks;    // host ticks
  std::atomic<uint64_t> sources;  // from then on
};
inline constexpr uint64_t kGateChanges = 256;

struct PoolHeader {
  char magic[8];
  uint64_t schema_hash;
  uint32_t version;
  uint32_t block_size;
  uint32_t max_blocks;
  uint32_t data_offset;
  uint32_t launcher_pid;
  uint32_t flush_period_ms;
  uint32_t filters;           // of system calls (seccomp) that tacho itself runs under, and so does whatever it starts
  uint32_t ignores_program;   // 1: the program's own pauses do not count (runs that only measure its times)
  uint64_t sources;           // source_bit of each source traced when not paused
  uint64_t start_launch;      // recording starts with this launch of the run (from 1); 0 = no such trigger
  uint64_t stop_launch;       // recording stops before this launch
  ClockTuple first_clocks;    // sampled by tacho when it made the pool
  ClockTuple last_clocks;     // sampled at the drainer's last pass; recovery converts times from the two
  char config[kConfigBytes];  // event::Configuration as text, 0-terminated
  char output[4096];          // the trace file being written, for recovery, 0-terminated

  // changing, each group on its own cache line
  alignas(64) std::atomic<uint64_t> enabled;  // source_bit now; 0 = paused. Follows `closed`.
  std::atomic<uint32_t> closing;              // 1: tacho is about to finish; flush vendor buffers, and let go (futex)
  std::atomic<uint32_t> guests;     // processes that were running when tacho attached and have not let go (futex)
  std::atomic<uint32_t> closed;     // gates that are closed
  std::atomic<uint32_t> ever_open;  // 1: recording was on at some time
  std::atomic<uint64_t> changed;    // changes of `enabled`, the last kGateChanges of them in `changes`
  alignas(64) std::atomic<uint32_t> populated_blocks;
  std::atomic<uint32_t> hint;        // no free block below it, as far as known; writers take the lowest
  std::atomic<int32_t> free_blocks;  // of the populated ones
  std::atomic<uint32_t> next_slot;   // next process slot
  std::atomic<uint64_t> sequence;
  std::atomic<uint64_t> launches;  // dispatches launched, over all processes (triggers, checks)
  // Records dropped for lack of room, by table; the last counts those of unknown tables.
  alignas(64) std::atomic<uint64_t> dropped[static_cast<size_t>(event::Table::kFactEnd) + 1];
  alignas(64) std::atomic<uint64_t> trigger_start, trigger_stop;  // counted by targets when a trigger fires
  // A writer that takes a block and leaves fewer free ones than a mark wakes the thread that sleeps on its word
  // (sleep.h).
  alignas(64) std::atomic<int32_t> drain_below, grow_below;
  std::atomic<uint32_t> drainer_sleeps, grower_sleeps;
  std::atomic<uint32_t> wanted_blocks;  // want_blocks(): requested by a source that knows its needs
  std::atomic<uint32_t> growable;       // 1 while more blocks can come: a thread grows the pool, and there is room
  alignas(64) GateChange changes[kGateChanges];
};

inline constexpr size_t kHeaderBytes = (sizeof(PoolHeader) + 4095) / 4096 * 4096;

}  // namespace tacho::tape
