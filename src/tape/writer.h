// The writing side of the pool, for code inside a target. Hot path: reserve() a record in the thread's own block, fill
// it, commit(). It takes no lock, makes no system call and allocates nothing. Without an attached pool each call is one
// predictable branch.
//
//   if (auto* record = tape::begin<event::ApiRecord>(event::RecordKind::kApi, event::Table::kApi)) {
//     record->start = start; ...
//     tape::commit();
//   }
//
// All of it is safe in signal handlers (a nested record on the same thread is published with the outer one), after
// fork() and raw clone() (the child notices that the block is not its own and opens another), and when threads end
// without notice.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "event/configuration.h"
#include "event/records.h"
#include "event/schema.h"
#include "tape/layout.h"

namespace tacho::tape {

/// Per-thread state: one cache line, initial-exec TLS, no constructor, no destructor.
struct ThreadState {
  uint64_t generation;        // of the process image in which the thread has its identity; 0 = none yet
  std::byte* cursor;          // next record goes here; null when the thread has no block
  std::byte* limit;           // end of the block; null when the thread has no block, or while it changes
  BlockHeader* block;         // null when the thread has none
  uint32_t thread_index;      // from 1, unique in the process
  uint32_t depth;             // records being written right now (> 1 inside a signal handler)
  uint64_t next_correlation;  // thread_index << 40 | count
  uint64_t open_correlation;  // innermost open API call, 0 = none
  uint16_t hidden;            // > 0: calls are tacho's own and must not be recorded
  uint16_t inner;             // > 0: in a hooked call, whose inner calls belong to the runtime
  uint32_t tid;               // kernel thread id, set together with `generation`
};
static_assert(sizeof(ThreadState) == 64);
/// ThreadState::hidden of a thread of which nothing may be recorded any more: not even the time may be read there.
inline constexpr uint16_t kHiddenForGood = 0x8000;

extern thread_local constinit ThreadState t_state __attribute__((tls_model("initial-exec")));

namespace writer_internal {
/// Points into a MADV_WIPEONFORK page, so that a child (also of a raw clone) reads 0, which never equals a
/// ThreadState::generation in use.
extern std::atomic<std::atomic<uint64_t>*> g_generation;
extern std::atomic<PoolHeader*> g_pool;
/// The last part of attach(), for a pool already mapped at `at`. False, with a line on stderr, when the pool is
/// unusable.
bool attach_mapped(void* at, size_t size);
std::byte* reserve_slow(uint32_t size, event::Table table);
void commit_again();

inline uint64_t generation() {
  return g_generation.load(std::memory_order_acquire)->load(std::memory_order_relaxed);
}
/// value += change in one instruction: a signal handler of this thread comes before or after it, never between.
template <typename T>
inline T add_unbroken(T& value, uint64_t change) {
#if defined(__x86_64__)
  static_assert(sizeof(T) == sizeof(uint64_t));
  auto before = change;
  asm volatile("xaddq %0, %1" : "+r"(before), "+m"(value) : : "memory", "cc");
  return std::bit_cast<T>(before);
#else
  return std::bit_cast<T>(__atomic_fetch_add(reinterpret_cast<uint64_t*>(&value), change, __ATOMIC_RELAXED));
#endif
}
}  // namespace writer_internal

/// Attaches this process to the pool named by TACHO_POOL, once. False when there is none or it is unusable; then one
/// line on stderr says why. Cheap after the first call. Call from any thread at any time, but not in signal handlers.
bool attach();
/// For a process that already runs: attaches to the pool at `path`, the first time or after park(). nullptr, or why
/// not: the end of a sentence that begins with the process. From one thread at a time.
const char* attach_late(const char* path);
/// How often attach_late() has attached the process. What sources remember of texts, numbers and settings holds for one
/// of these times only.
uint32_t late_session();
/// True once the process has been attached to while it ran.
inline bool attached_late() {
  return late_session() != 0;
}
/// After attach_late(): the tacho that made the pool runs no more.
bool tacho_is_gone();
/// In a child that was forked while tacho was attached, which is not recorded: lets its mapping of the pool go, so that
/// the pool's memory does not live as long as the child. Makes only system calls that a signal handler may make.
void park_in_child();
/// Lets the pool of attach_late() go. Its memory reads as zeros afterwards: every source is off, no record finds room.
/// Threads that still write records do no harm.
void park();
/// Says that libtacho.so is in this process through LD_PRELOAD; before attach().
void set_preloaded();
/// True once attached. One load.
inline bool attached() {
  return writer_internal::g_pool.load(std::memory_order_relaxed) != nullptr;
}
/// True if any of `bits` (source_bit) is recorded now.
inline bool enabled(uint64_t bits) {
  const PoolHeader* pool = writer_internal::g_pool.load(std::memory_order_acquire);
  return __builtin_expect(pool != nullptr, 0) && (pool->enabled.load(std::memory_order_relaxed) & bits) != 0;
}
PoolHeader* pool();
/// Bytes of the pool that this process maps.
size_t pool_bytes();
/// The run's configuration for targets; the defaults before attach().
const event::ConfigurationView& configuration();

/// Returns space for `size` bytes (a multiple of 8, at most kBlockPayload) in this thread's block. When there is none
/// it counts one dropped row of `table` and returns nullptr. Call commit() after every non-null result.
inline std::byte* reserve(uint32_t size, event::Table table) {
  ThreadState& state = t_state;
  state.depth = state.depth + 1;  // from here on a signal handler's records nest in this one
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (__builtin_expect(state.generation == writer_internal::generation(), 1)) {
    std::byte* const at = writer_internal::add_unbroken(state.cursor, size);
    if (__builtin_expect(state.limit - at >= static_cast<ptrdiff_t>(size), 1)) return at;
    state.cursor = at;
  }
  return writer_internal::reserve_slow(size, table);
}

/// Publishes the record of the last reserve().
inline void commit() {
  ThreadState& state = t_state;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (__builtin_expect(state.depth == 1, 1)) {
    std::byte* const end = state.cursor;
    state.block->committed.store(static_cast<uint32_t>(end - reinterpret_cast<std::byte*>(state.block + 1)),
                                 std::memory_order_release);
    state.depth = 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // Publish the record of a handler that nested in this one after `end` was read.
    if (__builtin_expect(state.cursor != end, 0)) writer_internal::commit_again();
  } else {
    state.depth = state.depth - 1;
  }
}

/// reserve() with the header filled in; `extra` bytes follow the fixed part and are rounded up to 8.
template <typename Record>
Record* begin(event::RecordKind kind, event::Table table, uint32_t value = 0, uint8_t flags = 0, uint32_t extra = 0) {
  const uint32_t size = (static_cast<uint32_t>(sizeof(Record)) + extra + 7) & ~7u;
  std::byte* const at = reserve(size, table);
  if (at == nullptr) return nullptr;
  auto* record = reinterpret_cast<Record*>(at);
  record->header = {kind, flags, static_cast<uint16_t>(size), value};
  return record;
}

/// A correlation id for a call that starts on this thread: unique in the process, consecutive per thread; 0 only when
/// not attached.
uint64_t correlation_slow();
inline uint64_t next_correlation() {
  ThreadState& state = t_state;
  if (__builtin_expect(state.generation == writer_internal::generation() && state.generation != 0, 1))
    return writer_internal::add_unbroken(state.next_correlation, 1) + 1;
  return correlation_slow();
}

/// Counts rows that the calling source could not record.
void count_dropped(event::Table table, uint64_t rows = 1);

// Definitions: rare, under a lock that a forked child never inherits locked

inline constexpr uint32_t kLongestText = 60'000;
/// Number (from 1) of `text` in this process; the same text gives the same number. 0 when not attached, out of memory
/// or called from a signal handler that interrupted a definition. Truncates text to kLongestText bytes. Takes no lock
/// and makes no system call when the text is already known.
uint32_t intern(std::string_view text);
/// Writes a definition record; set its size field, at most kBlockPayload. False if there is no room, or in a signal
/// handler that interrupted a definition of the same thread.
bool define(const event::RecordHeader* record);
/// Next number (from 1) for queues, devices, kernels of this process.
uint32_t next_queue();
uint32_t next_device();
uint32_t next_kernel();
/// Defines a property of a definition (table kQueue -> event::Table::kTrack ...) or, with object 0, of the process.
void define_property(event::Table table, uint32_t object, std::string_view key, std::string_view text);
/// Records that a source now sees the calls of an API.
void define_attached(event::Domain api);
/// Give the decoder of `blocks` the name `text` of `number` in them, or a fact about them.
void define_name(BlockKind blocks, event::NameSpace space, uint64_t number, std::string_view text);
void define_fact(BlockKind blocks, event::BlockFact fact, uint64_t number, std::string_view text = {});
/// Adds a sentence for the user to the trace.
void note(event::NoteSeverity severity, std::string_view text);
/// Adds to table loss.
void loss(event::Table table, event::LossReason reason, uint64_t count);

// Extents: whole blocks for vendor buffers

/// Opens `blocks` adjacent blocks as one extent. nullptr, without counting a drop, when the pool has none. The payload
/// starts after the BlockHeader and is 64-byte aligned.
BlockHeader* open_extent(BlockKind kind, uint32_t blocks, uint32_t vendor_version);
/// This process's CommandCounts, zeroed, in its own block, which stays open until the process ends; nullptr when the
/// pool has no room. Call once per process.
CommandCounts* open_progress();
/// True while tacho can back more blocks.
bool can_grow();
/// Asks tacho to back `blocks` blocks in total soon: for sources whose threads will take many at once.
void want_blocks(uint32_t blocks);
/// Wakes tacho, then waits at most `ns` until more than `seen` blocks are backed (PoolHeader::populated_blocks). Only
/// for callers that may wait: vendors' callbacks that ask for memory.
void wait_for_growth(uint32_t seen, int64_t ns);
/// Publishes the first `bytes` of the payload and hands the extent to the drainer.
void close_extent(BlockHeader* extent, uint32_t bytes);
/// Returns an unused extent to the pool.
void discard_extent(BlockHeader* extent);
inline std::byte* payload(BlockHeader* block) {
  return reinterpret_cast<std::byte*>(block) + sizeof(BlockHeader);
}

/// Returns space in a block that many threads (and signal handlers) share: for rare records of threads that should not
/// own 64 KiB. The record becomes visible when publish_shared() stores its size. nullptr = no space, counted as
/// dropped.
std::byte* reserve_shared(uint32_t size, event::Table table);
void publish_shared(std::byte* record, event::RecordHeader header);

/// Closes the calling thread's block, so that tacho drains and frees it at once. For a flush and the end of a thread. A
/// thread that goes on recording gets another block.
void flush_thread();
/// This thread's index in the process (from 1), 0 when not attached. Gives the thread an identity if it has none.
uint32_t thread_index();
/// This process image's generation, which changes in a forked child; 0 when not attached.
uint64_t process_generation();
/// Reads the configuration of the pool that TACHO_POOL names without attaching to it; its texts lie in `memory`. False
/// when there is no pool. Allocates nothing and keeps no descriptor open.
bool peek_configuration(std::span<char, kConfigBytes> memory, event::ConfigurationView& out);

}  // namespace tacho::tape
