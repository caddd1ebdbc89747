// The writing side of the pool (writer.h). Runs inside other people's processes: no allocation through malloc, no
// exceptions, no locks that a forked child could inherit, no static constructors.
#include "tape/writer.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "base/job_rank.h"
#include "tape/filter_count.h"
#include "tape/permitted.h"
#include "tape/sleep.h"

namespace tacho::tape {

constinit std::atomic<uint32_t> g_forbidden_calls{0};

thread_local constinit ThreadState t_state __attribute__((tls_model("initial-exec"))) = {};

namespace {

// tacho's settings for this run's targets; set before g_pool is.
constinit event::ConfigurationView g_configuration;

// State that a forked child must find zeroed: lies in a MADV_WIPEONFORK page.
struct WipedOnFork {
  std::atomic<uint64_t> generation;  // process slot + 1; 0 = this image has not registered yet
  std::atomic<uint32_t> lock;        // definitions lock: tid of its holder, 0 = free
  std::atomic<BlockHeader*> shared;  // open block of kind kShared
  BlockHeader* definitions;          // open block of kind kDefinitions
  std::atomic<uint32_t> next_thread;
};

constinit WipedOnFork g_unattached = {};
constinit WipedOnFork* g_wiped = &g_unattached;

// Else: pid << 32 | tid of the thread that is attaching.
enum AttachState : uint64_t { kUntried, kAttached, kFailed };
constinit std::atomic<uint64_t> g_attach_state{kUntried};
constinit uint32_t g_mapped_blocks = 0;
// Of this process image; written under the lock before its generation is.
constinit uint32_t g_slot_of_parent = event::kUnknown32;
constinit uint32_t g_slot = event::kUnknown32;
constinit uint32_t g_pid = 0;
constinit bool g_preloaded = false;

// Of a process that was running when tacho attached (attach_late())
constinit std::atomic<bool> g_parked{false};
constinit uint32_t g_session = 0;  // times that tacho has attached
constinit int g_late_file = -1;    // the pool
struct Mapping {
  void* at;
  size_t bytes;
};
constinit Mapping g_covered[2] = {};  // where the last two pools were
// What definitions have mapped in this session, to be given back in the next: readers take no lock.
constexpr uint32_t kMostKept = 512;
constinit Mapping g_kept[kMostKept] = {};
constinit uint32_t g_kept_count = 0;
void keep(void* at, size_t bytes) {
  if (at != nullptr && g_session != 0 && g_kept_count < kMostKept) g_kept[g_kept_count++] = {at, bytes};
}

// A vendor's library may attach from its constructor, before main and so before set_preloaded().
bool preloaded() {
  if (g_preloaded) return true;
  const char* const libraries = getenv("LD_PRELOAD");
  if (libraries == nullptr) return false;
  // By either of its names (src/launch/library_names.h).
  return strstr(libraries, "libtacho.so") != nullptr || strstr(libraries, "libtacho-lib") != nullptr;
}
constinit uint64_t g_pid_namespace = 0;  // inode, 0 = unknown

// Numbers continue in a forked child, which inherits its parent's definitions.
constinit std::atomic<uint32_t> g_next_string{1}, g_next_queue{1}, g_next_device{1}, g_next_kernel{1};

// Never that of another process image or of another attach. Some keep only 32 bits of it.
uint64_t own_generation() {
  static_assert(kMaxProcessSlots < 1u << 21);
  return uint64_t{g_session} << 21 | (g_slot + 1ULL);
}

// Interned strings: open addressing; texts and table lie in anonymous mappings. Written under the lock, looked up
// without it: an entry is complete once its number is not 0, and a table that was outgrown stays mapped (their sum is
// less than the newest).
struct InternEntry {
  std::atomic<uint32_t> number;  // 0 = empty
  uint32_t length;
  uint64_t hash;
  const char* text;
};
struct InternTable {
  uint32_t capacity;
  uint32_t count;
  uint64_t generation;  // of the process image that it serves
  InternEntry entries[];
};
constinit std::atomic<InternTable*> g_strings{nullptr};
constinit char* g_arena = nullptr;
constinit size_t g_arena_left = 0;

// Where libc keeps a thread's id in what pthread_self() points to; 0 = unknown.
constinit uint32_t g_tid_offset = 0;
void find_tid_offset(uint32_t tid) {
  const auto* const self = reinterpret_cast<const char*>(pthread_self());
  for (uint32_t offset = 16; offset < 1024; offset += 4) {
    uint32_t word;
    memcpy(&word, self + offset, sizeof word);
    if (word == tid) {
      g_tid_offset = offset;
      return;
    }
  }
}

// True if the process had system call filters beyond tacho's own before this code ran. Their rules are unknown, so
// tacho then makes only the calls that the loader has just made itself (openat, read, pread64, close, newfstatat, mmap,
// munmap).
constinit bool g_only_known_calls = false;

// 0 if the program's filter forbids the call and libc does not help.
uint32_t current_tid() {
  if (__builtin_expect(permitted(kCallGettid), 1)) return static_cast<uint32_t>(syscall(SYS_gettid));
  uint32_t tid = 0;
  if (g_tid_offset != 0) memcpy(&tid, reinterpret_cast<const char*>(pthread_self()) + g_tid_offset, sizeof tid);
  return tid;
}

void* map_anonymous(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

void complain(const char* sentence, const char* what) {
  char line[512];
  const int size = snprintf(line, sizeof line, "tacho: %s%s\n", sentence, what);
  if (size > 0) {
    const ssize_t ignored = write(
        STDERR_FILENO, line, static_cast<size_t>(size) < sizeof line ? static_cast<size_t>(size) : sizeof line - 1);
    static_cast<void>(ignored);
  }
}

std::atomic<uint32_t>* states() {
  return reinterpret_cast<std::atomic<uint32_t>*>(reinterpret_cast<char*>(pool()) + kHeaderBytes);
}
BlockHeader* block_at(uint32_t index) {
  PoolHeader* const pool = tape::pool();
  return reinterpret_cast<BlockHeader*>(reinterpret_cast<char*>(pool) + pool->data_offset +
                                        static_cast<size_t>(index) * kBlockSize);
}
uint32_t index_of(const BlockHeader* block) {
  const PoolHeader* const pool = tape::pool();
  return static_cast<uint32_t>(
      (reinterpret_cast<const char*>(block) - reinterpret_cast<const char*>(pool) - pool->data_offset) / kBlockSize);
}
uint32_t usable_blocks() {
  const uint32_t populated = pool()->populated_blocks.load(std::memory_order_acquire);
  return populated < g_mapped_blocks ? populated : g_mapped_blocks;
}

void fill_header(BlockHeader* block, BlockKind kind, uint32_t blocks, uint32_t vendor_version) {
  PoolHeader* const pool = tape::pool();
  std::atomic_ref<BlockKind>(block->kind).store(kind, std::memory_order_relaxed);
  block->process_slot = g_slot;
  block->thread_index = t_state.thread_index;
  // Not getpid(): a vfork'ed child shares this memory, and blocks that it opens still belong to its parent.
  const bool known = t_state.generation == g_wiped->generation.load(std::memory_order_relaxed);
  const uint32_t tid = known ? t_state.tid : current_tid();
  const bool ours = kind == BlockKind::kRecords || kind == BlockKind::kDefinitions || kind == BlockKind::kShared ||
                    kind == BlockKind::kProgress;
  // The drainer looks at these to see whether the writer still lives, before anything is committed: the pid comes last,
  // for while it is 0 the rest means nothing.
  std::atomic_ref<uint32_t>(block->tid).store(tid, std::memory_order_relaxed);
  std::atomic_ref<uint64_t>(block->aux64).store(ours ? g_pid_namespace : 0, std::memory_order_relaxed);
  std::atomic_ref<uint32_t>(block->pid).store(g_pid, std::memory_order_release);
  block->vendor_version = vendor_version;
  block->blocks = blocks;
  // A thread that sees this number counted also sees all that this thread has committed to earlier blocks
  // (Drainer::pass()).
  block->sequence = pool->sequence.fetch_add(1, std::memory_order_release);
  block->opened = host_ticks();
  block->aux = 0;
}

// The block at `index`, just taken. It is read before it is written: see map_pool().
BlockHeader* touch(uint32_t index) {
  BlockHeader* const block = block_at(index);
  static_cast<void>(block->committed.load(std::memory_order_relaxed));
  return block;
}

// Counts blocks as taken, and wakes tacho when few are left.
void count_taken(PoolHeader* pool, uint32_t blocks) {
  const int32_t left = pool->free_blocks.fetch_sub(static_cast<int32_t>(blocks)) - static_cast<int32_t>(blocks);
  if (!permitted(kCallFutex)) return;
  if (left < pool->drain_below.load(std::memory_order_relaxed)) wake_sleeper(pool->drainer_sleeps);
  if (left < pool->grow_below.load(std::memory_order_relaxed)) wake_sleeper(pool->grower_sleeps);
}

// No block below the taken one is free, unless the drainer has lowered the hint meanwhile.
void move_hint(PoolHeader* pool, uint32_t seen, uint32_t next) {
  pool->hint.compare_exchange_strong(seen, next, std::memory_order_relaxed);
}

// The lowest free block: freed blocks are used again before blocks whose pages this process has not touched yet.
BlockHeader* open_block(BlockKind kind) {
  PoolHeader* const pool = tape::pool();
  if (pool->free_blocks.load(std::memory_order_relaxed) <= 0) return nullptr;
  const uint32_t count = usable_blocks();
  if (count == 0) return nullptr;
  const uint32_t hint = pool->hint.load(std::memory_order_relaxed);
  const uint32_t first = hint < count ? hint : 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t index = first + i;
    if (index >= count) index -= count;
    std::atomic<uint32_t>& state = states()[index];
    uint32_t expected = static_cast<uint32_t>(BlockState::kFree);
    if (state.load(std::memory_order_relaxed) != expected) continue;
    if (!state.compare_exchange_strong(expected, static_cast<uint32_t>(BlockState::kOpen), std::memory_order_acq_rel))
      continue;
    move_hint(pool, hint, index + 1);
    count_taken(pool, 1);
    BlockHeader* const block = touch(index);
    fill_header(block, kind, 1, 0);
    return block;
  }
  return nullptr;
}

void mark_full(BlockHeader* block) {
  states()[index_of(block)].store(static_cast<uint32_t>(BlockState::kFull), std::memory_order_release);
}

// The definitions lock. False: this thread already holds it (a signal handler interrupted a definition).
bool lock_definitions() {
  const ThreadState& state = t_state;
  const uint32_t self =
      state.generation != 0 && state.generation == writer_internal::generation() ? state.tid : current_tid();
  if (self == 0) return false;
  for (uint32_t spins = 0;; ++spins) {
    uint32_t holder = 0;
    if (g_wiped->lock.compare_exchange_weak(holder, self, std::memory_order_acquire, std::memory_order_relaxed))
      return true;
    if (holder == self) return false;
    if (spins > 64 && permitted(kCallYield)) sched_yield();
  }
}
void unlock_definitions() {
  g_wiped->lock.store(0, std::memory_order_release);
}

// Under the lock. Copies one definition into the process's definitions block.
bool write_definition(const void* record, uint32_t size, const void* tail = nullptr, uint32_t tail_size = 0) {
  const uint32_t total = (size + tail_size + 7) & ~7u;
  BlockHeader* block = g_wiped->definitions;
  uint32_t used = block != nullptr ? block->committed.load(std::memory_order_relaxed) : 0;
  if (block == nullptr || used + total > kBlockPayload) {
    BlockHeader* const next = open_block(BlockKind::kDefinitions);
    if (next == nullptr) {
      pool()->dropped[event::kFactTables].fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    if (block != nullptr) mark_full(block);
    g_wiped->definitions = block = next;
    used = 0;
  }
  std::byte* const at = payload(block) + used;
  memcpy(at, record, size);
  if (tail_size != 0) memcpy(at + size, tail, tail_size);
  memset(at + size + tail_size, 0, total - size - tail_size);
  block->committed.store(used + total, std::memory_order_release);
  return true;
}

uint64_t hash_text(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL ^ text.size();
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word;
    memcpy(&word, text.data() + i, 8);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29;
  }
  for (; i < text.size(); ++i) hash = (hash ^ static_cast<uint8_t>(text[i])) * 0x100000001b3ULL;
  hash ^= hash >> 32;
  return hash;
}

// Entry of `text`, or the empty one where it would go.
InternEntry& find_entry(InternTable& table, std::string_view text, uint64_t hash) {
  uint32_t at = static_cast<uint32_t>(hash) & (table.capacity - 1);
  for (;; at = (at + 1) & (table.capacity - 1)) {
    InternEntry& entry = table.entries[at];
    if (entry.number.load(std::memory_order_acquire) == 0) return entry;
    if (entry.hash == hash && entry.length == text.size() && memcmp(entry.text, text.data(), text.size()) == 0)
      return entry;
  }
}

void set_entry(InternEntry& entry, uint64_t hash, std::string_view kept, uint32_t number) {
  entry.hash = hash;
  entry.length = static_cast<uint32_t>(kept.size());
  entry.text = kept.data();
  entry.number.store(number, std::memory_order_release);
}

// Under the lock. The table with room for one more, or nullptr.
InternTable* roomy_table() {
  InternTable* const old = g_strings.load(std::memory_order_relaxed);
  if (old != nullptr && old->count * 2 < old->capacity) return old;
  const uint32_t capacity = old == nullptr ? 2048 : old->capacity * 2;
  const size_t bytes = sizeof(InternTable) + capacity * sizeof(InternEntry);
  auto* const fresh = static_cast<InternTable*>(map_anonymous(bytes));
  if (fresh == nullptr) return nullptr;
  keep(fresh, bytes);
  fresh->capacity = capacity;
  fresh->generation = own_generation();
  for (uint32_t i = 0; old != nullptr && i < old->capacity; ++i) {
    const InternEntry& entry = old->entries[i];
    const uint32_t number = entry.number.load(std::memory_order_relaxed);
    if (number == 0) continue;
    const std::string_view text(entry.text, entry.length);
    set_entry(find_entry(*fresh, text, entry.hash), entry.hash, text, number);
    ++fresh->count;
  }
  g_strings.store(fresh, std::memory_order_release);
  return fresh;
}

const char* keep_text(std::string_view text) {
  if (text.size() > g_arena_left) {
    constexpr size_t kChunk = 1 << 20;
    auto* const chunk = static_cast<char*>(map_anonymous(kChunk));
    if (chunk == nullptr) return nullptr;
    keep(chunk, kChunk);
    g_arena = chunk;
    g_arena_left = kChunk;
  }
  char* const at = g_arena;
  memcpy(at, text.data(), text.size());
  g_arena += text.size();
  g_arena_left -= text.size();
  return at;
}

// Under the lock.
uint32_t intern_locked(std::string_view text) {
  if (text.size() > kLongestText) text = {text.data(), kLongestText};
  InternTable* const table = roomy_table();
  if (table == nullptr) return 0;
  const uint64_t hash = hash_text(text);
  InternEntry& entry = find_entry(*table, text, hash);
  if (const uint32_t known = entry.number.load(std::memory_order_relaxed); known != 0) return known;
  const char* const kept = keep_text(text);
  if (kept == nullptr) return 0;
  const uint32_t number = g_next_string.fetch_add(1, std::memory_order_relaxed);
  event::StringRecord record{};
  const uint32_t size = static_cast<uint32_t>((sizeof record + text.size() + 7) & ~size_t{7});
  record.header = {event::RecordKind::kString, 0, static_cast<uint16_t>(size), number};
  record.length = text.size();
  if (!write_definition(&record, sizeof record, text.data(), static_cast<uint32_t>(text.size()))) return 0;
  set_entry(entry, hash, {kept, text.size()}, number);
  ++table->count;
  return number;
}

size_t read_file(const char* path, char* out, size_t capacity) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t size = read(file, out, capacity);
  close(file);
  return size > 0 ? static_cast<size_t>(size) : 0;
}

struct ProcessIds {
  uint32_t pid, parent;
};
ProcessIds process_ids() {
  if (!g_only_known_calls) return {static_cast<uint32_t>(getpid()), static_cast<uint32_t>(getppid())};
  char text[512];  // "PID (NAME) STATE PARENT ..."
  const std::string_view line(text, read_file("/proc/self/stat", text, sizeof text));
  const auto number = [&](size_t at) {
    uint32_t value = 0;
    for (; at < line.size() && line[at] >= '0' && line[at] <= '9'; ++at)
      value = value * 10 + static_cast<uint32_t>(line[at] - '0');
    return value;
  };
  const size_t name_end = line.rfind(')');
  return {number(0), name_end == std::string_view::npos ? 0 : number(name_end + 4)};
}

// The number of the tacho that made a pool, which its name says; 0 = unknown.
unsigned long maker_of(std::string_view pool) {
  constexpr std::string_view kBefore = "/tacho-";
  const size_t at = pool.rfind(kBefore);
  if (pool.empty() || pool[0] != '/' || at == std::string_view::npos) return 0;
  unsigned long pid = 0;
  for (size_t i = at + kBefore.size(); i < pool.size() && pool[i] >= '0' && pool[i] <= '9' && pid < 1u << 30; ++i)
    pid = pid * 10 + static_cast<unsigned long>(pool[i] - '0');
  return pid;
}

// The pool among the open files of its tacho, for whoever comes after its name was removed (an emptied /dev/shm).
int open_removed(unsigned long maker, const char* pool, int flags) {
  constexpr int kMostDescriptors = 256;  // tacho opens it early
  const size_t length = strlen(pool);
  for (int number = 0; number < kMostDescriptors; ++number) {
    char name[64], target[4200];
    snprintf(name, sizeof name, "/proc/%lu/fd/%d", maker, number);
    const ssize_t size = readlink(name, target, sizeof target);
    if (size < 0 && errno != ENOENT) return -1;  // another user's
    constexpr std::string_view kDeleted = " (deleted)";
    if (size == static_cast<ssize_t>(length + kDeleted.size()) && memcmp(target, pool, length) == 0 &&
        memcmp(target + length, kDeleted.data(), kDeleted.size()) == 0)
      return open(name, flags);
  }
  return -1;
}

// Opens the pool by its name, else as tacho sees it: for a child that has another /dev/shm or another root, or comes
// after the name was removed. -1 with errno of the name.
int open_pool(const char* pool, int flags) {
  const int file = open(pool, flags | O_CLOEXEC);
  if (file >= 0 || errno != ENOENT) return file;
  const unsigned long maker = maker_of(pool);
  char name[4200];
  const int size = snprintf(name, sizeof name, "/proc/%lu/root%s", maker, pool);
  int beyond = -1;
  if (maker != 0 && size > 0 && static_cast<size_t>(size) < sizeof name) {
    beyond = open(name, flags | O_CLOEXEC);
    if (beyond < 0 && errno == ENOENT && !g_only_known_calls) beyond = open_removed(maker, pool, flags | O_CLOEXEC);
  }
  if (beyond < 0) errno = ENOENT;
  return beyond;
}

void look_for_filters() {
  const uint32_t filters = filters_of_process();
  const char* const path = getenv("TACHO_POOL");
  if (filters == 0 || path == nullptr || *path == '\0') return;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  uint32_t before = 0;
  const bool known = pread(file, &before, sizeof before, offsetof(PoolHeader, filters)) == sizeof before;
  close(file);
  if (!known || filters <= before) return;
  g_only_known_calls = true;
  g_forbidden_calls.fetch_or(kCallFutex | kCallGettid | kCallName | kCallYield | kCallSample,
                             std::memory_order_relaxed);
  find_tid_offset(process_ids().pid);
}

// Instead of MADV_WIPEONFORK, which the loader does not use.
void wipe_in_child() {
  memset(static_cast<void*>(g_wiped), 0, sizeof *g_wiped);
}

// Cost of one hook without its call: two clock reads and one record, in picoseconds. Before this image's generation is
// set: the fast path then works on any memory, here a scratch record. Nothing is published; depth stays above 0, so
// that a signal handler's record finds no room (and is counted) instead of going to the scratch.
uint32_t measure_hook(double ns_per_tick) {
  ThreadState& state = t_state;
  constexpr int kRounds = 200;
  alignas(64) std::byte scratch[sizeof(event::ApiRecord)];
  const uint32_t depth = state.depth;  // a record of this thread may be what made the process register
  state.depth = depth + 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  state.generation = 0;
  state.block = nullptr;
  state.limit = scratch + sizeof scratch;
  const uint64_t begin = host_ticks();
  for (int i = 0; i < kRounds; ++i) {
    state.cursor = scratch;
    auto* record = reinterpret_cast<event::ApiRecord*>(reserve(sizeof(event::ApiRecord), event::Table::kApi));
    if (record != nullptr) {
      record->start = host_ticks();
      record->correlation = static_cast<uint64_t>(i);
      record->header = {event::RecordKind::kPad, 0, sizeof(event::ApiRecord), 0};
      record->end = host_ticks();
    }
    asm volatile("" : : "r"(scratch) : "memory");
    state.depth = depth + 1;
  }
  const uint64_t end = host_ticks();
  state.limit = nullptr;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  state.cursor = nullptr;
  state.depth = depth;
  return static_cast<uint32_t>(static_cast<double>(end - begin) * ns_per_tick * 1000.0 / kRounds);
}

// An identity in this process image for the calling thread; its block, if any, was another image's. False if its id
// cannot be had.
bool adopt_identity() {
  ThreadState& state = t_state;
  const uint32_t tid = current_tid();
  if (tid == 0) return false;
  state.limit = nullptr;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  state.cursor = nullptr;
  state.block = nullptr;
  state.tid = tid;
  state.thread_index = g_wiped->next_thread.fetch_add(1, std::memory_order_relaxed) + 1;
  state.next_correlation = static_cast<uint64_t>(state.thread_index) << 40;
  state.open_correlation = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  state.generation = g_wiped->generation.load(std::memory_order_relaxed);
  return true;
}

// All records of the thread's block up to its cursor.
void publish(const ThreadState& state) {
  if (state.block != nullptr)
    state.block->committed.store(static_cast<uint32_t>(state.cursor - payload(state.block)), std::memory_order_release);
}

// A fresh block for the calling thread, which has an identity. A signal handler that comes in between finds no room.
bool open_thread_block() {
  ThreadState& state = t_state;
  BlockHeader* const block = open_block(BlockKind::kRecords);
  if (block == nullptr) return false;
  state.limit = nullptr;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // A handler that came in before has left its record behind `committed`.
  publish(state);
  state.block = block;
  state.cursor = payload(block);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  state.limit = payload(block) + kBlockPayload;
  return true;
}

uint64_t pid_namespace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? static_cast<uint64_t>(status.st_ino) : 0;
}

// Under the lock: gives this process image a slot and describes it. Also run in a forked child at its first record.
bool register_process() {
  if (g_parked.load(std::memory_order_acquire)) return false;
  PoolHeader* const pool = tape::pool();
  const uint32_t slot = pool->next_slot.fetch_add(1, std::memory_order_relaxed);
  if (slot >= kMaxProcessSlots) return false;
  g_slot_of_parent = g_slot;
  g_slot = slot;
  const ProcessIds ids = process_ids();
  g_pid = ids.pid;
  g_pid_namespace = pid_namespace();
  g_wiped->definitions = nullptr;
  g_wiped->shared.store(nullptr, std::memory_order_relaxed);
  g_wiped->next_thread.store(0, std::memory_order_relaxed);
  // Another thread of the parent may have been changing these when it forked: start afresh.
  g_strings.store(nullptr, std::memory_order_relaxed);
  g_arena = nullptr;
  g_arena_left = 0;

  const ClockTuple now = sample_clocks();
  double ns_per_tick = 1.0;
  if (host_clock_is_tsc()) {
    ClockTuple later = sample_clocks();
    while (later.raw - now.raw < 20'000) later = sample_clocks();
    ns_per_tick = static_cast<double>(later.raw - now.raw) / static_cast<double>(later.tsc - now.tsc);
  }
  // Not on the stack: a forked child may come here in a signal handler on a small alternate stack. The lock is held.
  static constinit char text[4096] = {};
  event::ProcessRecord record{};
  record.header = {event::RecordKind::kProcess, preloaded() ? event::kFlagPreloaded : uint8_t{0}, sizeof record, 0};
  record.pid = g_pid;
  record.parent_pid = ids.parent;
  record.slot = slot;
  record.parent_slot = g_slot_of_parent;
  const ssize_t size = g_only_known_calls ? 0 : readlink("/proc/self/exe", text, sizeof text);
  std::string_view path(text, size > 0 ? static_cast<size_t>(size) : 0);
  if (g_only_known_calls)
    if (const auto* const started = reinterpret_cast<const char*>(getauxval(AT_EXECFN))) path = started;
  path.remove_prefix(path.rfind('/') + 1);
  record.name = intern_locked(path);
  size_t length = read_file("/proc/self/cmdline", text, sizeof text);
  while (length > 0 && text[length - 1] == '\0') --length;
  for (size_t i = 0; i < length; ++i)
    if (text[i] == '\0') text[i] = ' ';
  record.command = intern_locked({text, length});
  if (g_only_known_calls)
    text[std::max<size_t>(read_file("/proc/sys/kernel/hostname", text, sizeof text), 1) - 1] = '\0';  // its newline
  else if (gethostname(text, sizeof text) != 0)
    text[0] = '\0';
  text[sizeof text - 1] = '\0';
  record.host = intern_locked(text);
  if (const JobRank job = job_rank(); job.known()) {
    const int digits = snprintf(text, sizeof text, "%lld", static_cast<long long>(job.rank));
    record.rank_text = intern_locked({text, static_cast<size_t>(digits)});
  }
  record.clock = static_cast<uint32_t>(host_clock_is_tsc() ? event::HostClock::kTsc : event::HostClock::kMonotonicRaw);
  record.start = host_clock_is_tsc() ? now.tsc : static_cast<uint64_t>(now.raw);
  record.start_raw = static_cast<uint64_t>(now.raw);
  record.ns_per_tick = ns_per_tick;
  record.hook_picoseconds = measure_hook(ns_per_tick);
  const bool written = write_definition(&record, sizeof record);
  g_wiped->generation.store(own_generation(), std::memory_order_release);
  return written;
}

// Gives this process image its slot if it has none. False inside a handler that interrupted a definition, or when the
// pool has no slots left.
bool ensure_registered() {
  if (g_wiped->generation.load(std::memory_order_acquire) != 0) return true;
  if (!permitted(kCallRegister)) return false;
  if (!lock_definitions()) return false;
  const bool registered = g_wiped->generation.load(std::memory_order_relaxed) != 0 || register_process();
  unlock_definitions();
  return registered;
}

// Of a process that has become another user's.
void tell_refused(const char* pool) {
  char name[4200];
  const int size = snprintf(name, sizeof name, "%s%s", pool, kRefusedEnding);
  if (size <= 0 || static_cast<size_t>(size) >= sizeof name) return;
  const int file = open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return;
  const uint32_t pid = process_ids().pid;
  const ssize_t ignored = write(file, &pid, sizeof pid);
  static_cast<void>(ignored);
  close(file);
}

bool try_attach() {
  const char* const path = getenv("TACHO_POOL");
  if (path == nullptr || *path == '\0') return false;
  const int file = open_pool(path, O_RDWR);
  if (file < 0) {
    // The pool ended with its tacho, or this child is another user or in its own container: it runs untraced.
    if (errno == EACCES) tell_refused(path);
    if (errno == EMFILE || errno == ENFILE)
      complain("no file descriptor is left to open the pool, and this process runs untraced (ulimit -n)", "");
    return false;
  }
  struct stat status {};
  if (fstat(file, &status) != 0 || static_cast<size_t>(status.st_size) < kHeaderBytes) {
    close(file);
    return false;
  }
  auto size = static_cast<size_t>(status.st_size);
  void* at = map_pool(file, size);
  if (at == MAP_FAILED) {
    // Address space may be limited: the header and the blocks that exist now will do.
    void* const header = mmap(nullptr, kHeaderBytes, PROT_READ, MAP_SHARED, file, 0);
    if (header != MAP_FAILED) {
      const auto* pool = static_cast<const PoolHeader*>(header);
      size =
          pool->data_offset + static_cast<size_t>(pool->populated_blocks.load(std::memory_order_acquire)) * kBlockSize;
      munmap(header, kHeaderBytes);
      at = map_pool(file, size);
    }
  }
  close(file);
  if (at == MAP_FAILED) {
    complain("cannot map the pool into this process, which runs untraced: address space limit? ", path);
    return false;
  }
  if (writer_internal::attach_mapped(at, size)) return true;
  munmap(at, size);
  return false;
}

}  // namespace

namespace writer_internal {

constinit std::atomic<std::atomic<uint64_t>*> g_generation{&g_unattached.generation};
constinit std::atomic<PoolHeader*> g_pool{nullptr};

bool attach_mapped(void* at, size_t size) {
  auto* const pool = static_cast<PoolHeader*>(at);
  if (memcmp(pool->magic, kPoolMagic, sizeof kPoolMagic) != 0 || pool->version != kPoolVersion ||
      pool->schema_hash != event::schema_hash()) {
    complain("libtacho.so and the tacho that started this program are of different versions; it runs untraced", "");
    return false;
  }
  const std::string_view lines(pool->config, strnlen(pool->config, kConfigBytes));
  if (const std::string_view wrong = event::parse(lines, g_configuration); !wrong.empty()) {
    char line[256];
    snprintf(line, sizeof line, "%.*s", static_cast<int>(wrong.size() < 200 ? wrong.size() : 200), wrong.data());
    complain("libtacho.so does not understand its configuration, and this program runs untraced: ", line);
    return false;
  }
  const bool first = g_wiped == &g_unattached;
  auto* const wiped = first ? static_cast<WipedOnFork*>(map_anonymous(4096)) : g_wiped;
  const bool forks_known = !first               ? true
                           : g_only_known_calls ? pthread_atfork(nullptr, nullptr, wipe_in_child) == 0
                                                : madvise(wiped, 4096, MADV_WIPEONFORK) == 0;
  if (wiped == nullptr || !forks_known) {
    complain("no memory, or a kernel older than 4.14, which cannot tell a forked child; this program runs untraced",
             "");
    return false;
  }
  choose_host_clock();
  if (!g_only_known_calls) find_tid_offset(current_tid());
  g_wiped = wiped;
  g_mapped_blocks = static_cast<uint32_t>((size - pool->data_offset) / kBlockSize);
  g_generation.store(&wiped->generation, std::memory_order_release);
  g_pool.store(pool, std::memory_order_release);
  if (!ensure_registered()) {
    g_pool.store(nullptr, std::memory_order_relaxed);
    complain("no room left in the pool for another process; this one runs untraced", "");
    return false;
  }
  return true;
}

// Entered with depth counted already.
std::byte* reserve_slow(uint32_t size, event::Table table) {
  ThreadState& state = t_state;
  if (g_pool.load(std::memory_order_acquire) != nullptr) {
    if (state.depth == 1 && ensure_registered() && size <= kBlockPayload) {
      const bool known = state.generation == g_wiped->generation.load(std::memory_order_relaxed) || adopt_identity();
      BlockHeader* const old = state.block;
      if (known && open_thread_block()) {
        if (old != nullptr) mark_full(old);
        return add_unbroken(state.cursor, size);
      }
    }
    // No room: the pool is full, or a signal handler interrupted a record that filled the block.
    count_dropped(table);
    if (state.depth == 1 && state.block != nullptr &&
        state.generation == g_wiped->generation.load(std::memory_order_relaxed)) {
      commit_again();  // records of handlers that interrupted this attempt
      return nullptr;
    }
  }
  state.depth = state.depth - 1;
  return nullptr;
}

void commit_again() {
  ThreadState& state = t_state;
  for (;;) {
    state.depth = 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    std::byte* const end = state.cursor;
    publish(state);
    state.depth = 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (state.cursor == end) return;
  }
}

}  // namespace writer_internal

bool attach() {
  uint64_t state = g_attach_state.load(std::memory_order_acquire);
  if (__builtin_expect(state == kAttached || state == kFailed, 1)) return state == kAttached;
  if (state == kUntried) look_for_filters();
  const uint64_t self = static_cast<uint64_t>(process_ids().pid) << 32 | current_tid();
  for (;;) {
    // A child forked while another thread of its parent was attaching has nobody to wait for: it starts afresh.
    const bool orphaned = state != kUntried && state != kAttached && state != kFailed && state >> 32 != self >> 32;
    if ((state == kUntried || orphaned) &&
        g_attach_state.compare_exchange_strong(state, self, std::memory_order_acq_rel)) {
      const bool done = try_attach();
      g_attach_state.store(done ? kAttached : kFailed, std::memory_order_release);
      return done;
    }
    if (state == kAttached || state == kFailed) return state == kAttached;
    if (state == self) return false;  // a handler that interrupted its own thread's attaching: not traced
    sched_yield();
    state = g_attach_state.load(std::memory_order_acquire);
  }
}

const char* attach_late(const char* path) {
  uint64_t state = kUntried;
  const bool again = g_parked.load(std::memory_order_acquire);
  if (!again && !g_attach_state.compare_exchange_strong(state, kAttached, std::memory_order_acq_rel) &&
      state != kFailed)
    return "a tacho records it already";
  const auto refuse = [&](const char* why) {
    if (!again) g_attach_state.store(kFailed, std::memory_order_release);
    return why;
  };
  const int file = open_pool(path, O_RDWR);
  if (file < 0)
    return refuse("it cannot open the pool, which tacho has made where it believed the program would see it");
  struct stat status {};
  const bool sized = fstat(file, &status) == 0 && static_cast<size_t>(status.st_size) >= kHeaderBytes;
  const auto size = sized ? static_cast<size_t>(status.st_size) : 0;
  void* const at = sized ? map_pool(file, size) : MAP_FAILED;
  if (at == MAP_FAILED) {
    close(file);
    return refuse("it has no address space left for the pool; try a smaller --pool-size");
  }
  for (uint32_t i = 0; i < g_kept_count; ++i) munmap(g_kept[i].at, g_kept[i].bytes);
  g_kept_count = 0;
  g_strings.store(nullptr, std::memory_order_release);
  g_arena = nullptr;
  g_arena_left = 0;
  for (std::atomic<uint32_t>* const next : {&g_next_string, &g_next_queue, &g_next_device, &g_next_kernel})
    next->store(1, std::memory_order_relaxed);
  g_slot = g_slot_of_parent = event::kUnknown32;
  g_configuration = {};
  ++g_session;
  g_parked.store(false, std::memory_order_release);
  PoolHeader* const before = tape::pool();
  if (!writer_internal::attach_mapped(at, size)) {
    // Never without a pool again: sources read its header.
    if (before != nullptr) writer_internal::g_pool.store(before, std::memory_order_release);
    g_mapped_blocks = 0;
    g_parked.store(before != nullptr, std::memory_order_release);
    munmap(at, size);
    close(file);
    return refuse("its library and this tacho do not understand each other: another version of tacho attached before");
  }
  g_late_file = file;
  g_attach_state.store(kAttached, std::memory_order_release);
  tape::pool()->guests.fetch_add(1, std::memory_order_acq_rel);
  return nullptr;
}

uint32_t late_session() {
  return g_session;
}

bool tacho_is_gone() {
  // tacho holds the lock as long as it lives.
  if (g_late_file < 0 || flock(g_late_file, LOCK_SH | LOCK_NB) != 0) return false;
  flock(g_late_file, LOCK_UN);
  return true;
}

namespace {
constinit size_t g_parking_bytes = 0;  // of the pool, while a thread is in park()

void cover(PoolHeader* pool, size_t size) {
  g_mapped_blocks = 0;
  // A thread that is writing a record this very moment writes it into memory that nobody reads. Two attaches later it
  // has surely done so.
  static_cast<void>(
      mmap(pool, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
  if (g_covered[0].at != nullptr) munmap(g_covered[0].at, g_covered[0].bytes);
  g_covered[0] = g_covered[1];
  g_covered[1] = {pool, size};
  if (g_late_file >= 0) close(g_late_file);
  g_late_file = -1;
}
}  // namespace

void park() {
  PoolHeader* const pool = tape::pool();
  const size_t size = pool_bytes();
  g_parking_bytes = size;
  g_parked.store(true, std::memory_order_release);
  g_wiped->generation.store(0, std::memory_order_release);
  pool->guests.fetch_sub(1, std::memory_order_acq_rel);
  wake_all(pool->guests);
  cover(pool, size);
  g_parking_bytes = 0;
}

void park_in_child() {
  PoolHeader* const pool = tape::pool();
  // Forked while tacho was attaching: as if it never had.
  if (pool == nullptr) return g_attach_state.store(kFailed, std::memory_order_release);
  g_parked.store(true, std::memory_order_release);
  // Another thread of the parent may have been on its way through park().
  if (pool != g_covered[1].at) cover(pool, g_parking_bytes != 0 ? g_parking_bytes : pool_bytes());
}

void set_preloaded() {
  g_preloaded = true;
}

PoolHeader* pool() {
  return writer_internal::g_pool.load(std::memory_order_acquire);  // attach()'s reads and mapping come before
}

size_t pool_bytes() {
  const PoolHeader* const pool = tape::pool();
  return pool == nullptr ? 0 : pool->data_offset + static_cast<size_t>(g_mapped_blocks) * kBlockSize;
}

const event::ConfigurationView& configuration() {
  return g_configuration;
}

uint64_t correlation_slow() {
  if (pool() == nullptr || !ensure_registered()) return 0;
  ThreadState& state = t_state;
  if (state.generation != g_wiped->generation.load(std::memory_order_relaxed)) {
    const uint32_t depth = state.depth;
    state.depth = depth + 1;  // a handler's records find no room while the identity changes
    const bool known = adopt_identity();
    state.depth = depth;
    if (!known) return 0;
  }
  return writer_internal::add_unbroken(state.next_correlation, 1) + 1;
}

uint32_t thread_index() {
  if (t_state.generation == 0 || t_state.generation != writer_internal::generation())
    if (correlation_slow() == 0) return 0;
  return t_state.thread_index;
}

uint64_t process_generation() {
  return writer_internal::generation();
}

void count_dropped(event::Table table, uint64_t rows) {
  PoolHeader* const pool = tape::pool();
  if (pool == nullptr) return;
  const auto number = static_cast<size_t>(table);
  pool->dropped[number < event::kFactTables ? number : event::kFactTables].fetch_add(rows, std::memory_order_relaxed);
}

namespace {
// Runs `body` under the definitions lock of a registered process; `fallback` when that cannot be.
template <typename Body, typename T>
T with_definitions(Body body, T fallback) {
  if (pool() == nullptr || !lock_definitions()) return fallback;
  if (g_wiped->generation.load(std::memory_order_relaxed) == 0 && (!permitted(kCallRegister) || !register_process())) {
    unlock_definitions();
    return fallback;
  }
  const T result = body();
  unlock_definitions();
  return result;
}
}  // namespace

uint32_t intern(std::string_view text) {
  if (text.size() > kLongestText) text = {text.data(), kLongestText};
  InternTable* const table = g_strings.load(std::memory_order_acquire);
  if (table != nullptr && table->generation == writer_internal::generation())
    if (const uint32_t known = find_entry(*table, text, hash_text(text)).number.load(std::memory_order_relaxed);
        known != 0)
      return known;
  return with_definitions([&] { return intern_locked(text); }, 0u);
}

bool define(const event::RecordHeader* record) {
  if (record->size > kBlockPayload) return false;
  return with_definitions([&] { return write_definition(record, record->size); }, false);
}

uint32_t next_queue() {
  return g_next_queue.fetch_add(1, std::memory_order_relaxed);
}
uint32_t next_device() {
  return g_next_device.fetch_add(1, std::memory_order_relaxed);
}
uint32_t next_kernel() {
  return g_next_kernel.fetch_add(1, std::memory_order_relaxed);
}

void define_property(event::Table table, uint32_t object, std::string_view key, std::string_view text) {
  with_definitions(
      [&] {
        event::PropertyRecord record{};
        record.header = {event::RecordKind::kProperty, 0, sizeof record, static_cast<uint32_t>(table)};
        record.object = object;
        record.key = intern_locked(key);
        record.text = intern_locked(text);
        return write_definition(&record, sizeof record);
      },
      false);
}

void define_attached(event::Domain api) {
  event::AttachedRecord record{};
  record.header = {event::RecordKind::kAttached, 0, sizeof record, static_cast<uint32_t>(api)};
  define(&record.header);
}

void define_name(BlockKind blocks, event::NameSpace space, uint64_t number, std::string_view text) {
  event::NameRecord record{};
  record.header = {event::RecordKind::kName, static_cast<uint8_t>(blocks), sizeof record, static_cast<uint32_t>(space)};
  record.number = number;
  record.text = intern(text);
  define(&record.header);
}

void define_fact(BlockKind blocks, event::BlockFact fact, uint64_t number, std::string_view text) {
  event::BlockFactRecord record{};
  record.header = {event::RecordKind::kBlockFact, static_cast<uint8_t>(blocks), sizeof record,
                   static_cast<uint32_t>(fact)};
  record.number = number;
  record.text = text.empty() ? 0 : intern(text);
  define(&record.header);
}

void note(event::NoteSeverity severity, std::string_view text) {
  with_definitions(
      [&] {
        event::NoteRecord record{};
        record.header = {event::RecordKind::kNote, 0, sizeof record, static_cast<uint32_t>(severity)};
        record.time = host_ticks();
        record.text = intern_locked(text);
        return write_definition(&record, sizeof record);
      },
      false);
}

void loss(event::Table table, event::LossReason reason, uint64_t count) {
  event::LossRecord record{};
  record.header = {event::RecordKind::kLoss, 0, sizeof record,
                   static_cast<uint32_t>(table) | static_cast<uint32_t>(reason) << 8};
  record.count = count;
  define(&record.header);
}

BlockHeader* open_extent(BlockKind kind, uint32_t blocks, uint32_t vendor_version) {
  PoolHeader* const pool = tape::pool();
  if (pool == nullptr || blocks == 0) return nullptr;
  if (!ensure_registered()) return nullptr;
  const uint32_t count = usable_blocks();
  if (count < blocks) return nullptr;
  const auto free_state = static_cast<uint32_t>(BlockState::kFree);
  const uint32_t hint = pool->hint.load(std::memory_order_relaxed);
  uint32_t begin = hint < count ? hint : 0;
  for (uint32_t tried = 0; tried < count + blocks;) {
    if (begin + blocks > count) {
      tried += count - begin;
      begin = 0;
      continue;
    }
    uint32_t taken = 0;
    for (; taken < blocks; ++taken) {
      uint32_t expected = free_state;
      const auto wanted = static_cast<uint32_t>(taken == 0 ? BlockState::kOpen : BlockState::kTail);
      if (!states()[begin + taken].compare_exchange_strong(expected, wanted, std::memory_order_acq_rel)) break;
    }
    if (taken == blocks) {
      if (begin == hint) move_hint(pool, hint, begin + blocks);
      count_taken(pool, blocks);
      for (uint32_t i = 1; i < blocks; ++i) touch(begin + i);
      BlockHeader* const extent = touch(begin);
      fill_header(extent, kind, blocks, vendor_version);
      return extent;
    }
    for (uint32_t i = 0; i < taken; ++i) states()[begin + i].store(free_state, std::memory_order_release);
    tried += taken + 1;
    begin += taken + 1;
  }
  return nullptr;
}

CommandCounts* open_progress() {
  BlockHeader* const block = open_extent(BlockKind::kProgress, 1, 0);
  if (block == nullptr) return nullptr;
  auto* const progress = reinterpret_cast<CommandCounts*>(payload(block));
  memset(static_cast<void*>(progress), 0, sizeof *progress);
  block->committed.store(sizeof *progress, std::memory_order_release);
  return progress;
}

bool can_grow() {
  const PoolHeader* const pool = tape::pool();
  return pool != nullptr && pool->growable.load(std::memory_order_relaxed) != 0;
}

void want_blocks(uint32_t blocks) {
  PoolHeader* const pool = tape::pool();
  if (pool == nullptr) return;
  uint32_t wanted = pool->wanted_blocks.load();
  while (wanted < blocks && !pool->wanted_blocks.compare_exchange_weak(wanted, blocks)) {
  }
  if (permitted(kCallFutex)) wake_sleeper(pool->grower_sleeps);
}

void wait_for_growth(uint32_t seen, int64_t ns) {
  PoolHeader* const pool = tape::pool();
  if (pool == nullptr || !permitted(kCallFutex)) return;
  const int error = errno;
  wake_sleeper(pool->drainer_sleeps);
  wake_sleeper(pool->grower_sleeps);
  wait_on(pool->populated_blocks, seen, ns);
  errno = error;
}

void close_extent(BlockHeader* extent, uint32_t bytes) {
  extent->committed.store(bytes, std::memory_order_release);
  mark_full(extent);
}

void discard_extent(BlockHeader* extent) {
  close_extent(extent, 0);
}

std::byte* reserve_shared(uint32_t size, event::Table table) {
  if (pool() == nullptr || size > kBlockPayload || g_wiped->generation.load(std::memory_order_acquire) == 0)
    return nullptr;
  for (int attempt = 0; attempt < 3; ++attempt) {
    BlockHeader* block = g_wiped->shared.load(std::memory_order_acquire);
    if (block != nullptr) {
      const uint32_t at = std::atomic_ref<uint32_t>(block->aux).fetch_add(size, std::memory_order_relaxed);
      if (at + size <= kBlockPayload) return payload(block) + at;
      if (at < kBlockPayload)  // the first that found no room says where the records end
        publish_shared(payload(block) + at, {event::RecordKind::kPad, 0, static_cast<uint16_t>(kBlockPayload - at), 0});
    }
    BlockHeader* const next = open_block(BlockKind::kShared);
    if (next == nullptr) break;
    memset(payload(next), 0, kBlockPayload);
    next->committed.store(kBlockPayload, std::memory_order_release);
    if (g_wiped->shared.compare_exchange_strong(block, next, std::memory_order_acq_rel)) {
      if (block != nullptr) mark_full(block);
    } else {
      discard_extent(next);
    }
  }
  count_dropped(table);
  return nullptr;
}

void publish_shared(std::byte* record, event::RecordHeader header) {
  uint64_t word;
  memcpy(&word, &header, sizeof word);
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(record)).store(word, std::memory_order_release);
}

void flush_thread() {
  ThreadState& state = t_state;
  if (state.generation == 0 || state.generation != writer_internal::generation() || state.depth != 0) return;
  state.depth = 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  BlockHeader* const old = state.block;
  state.limit = nullptr;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::byte* const end = state.cursor;
  state.block = nullptr;
  state.cursor = nullptr;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  state.depth = 0;
  if (old == nullptr) return;
  // A handler that nested here has left its record behind `committed`.
  old->committed.store(static_cast<uint32_t>(end - payload(old)), std::memory_order_release);
  mark_full(old);
}

bool peek_configuration(std::span<char, kConfigBytes> memory, event::ConfigurationView& out) {
  const char* const path = getenv("TACHO_POOL");
  if (path == nullptr || *path == '\0') return false;
  const int file = open_pool(path, O_RDONLY);
  if (file < 0) return false;
  const ssize_t size = pread(file, memory.data(), memory.size() - 1, static_cast<off_t>(offsetof(PoolHeader, config)));
  close(file);
  if (size <= 0) return false;
  memory[static_cast<size_t>(size)] = '\0';
  event::parse(memory.data(), out);
  return true;
}

}  // namespace tacho::tape
