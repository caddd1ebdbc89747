// The target's side of `tacho watch`: its table (event/watch_table.h), rows, and which operations are timed.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "capture/room/lines.h"
#include "capture/room/lock.h"
#include "event/watch_table.h"

namespace tacho::capture::watch {

using event::WatchHeader, event::WatchKind, event::WatchLevel, event::WatchRow, event::WatchTable;

/// nullptr when tacho does not watch this process. Set before the program's own code runs.
extern WatchTable* g_table;
/// This process's place in it; one that nobody reads where there was no room. Never nullptr.
extern constinit event::WatchProcess* g_process;
/// Grows when tacho comes to this process while it runs, and when it leaves it: rows that were found before are not
/// those of now, and what began before is not counted.
extern constinit std::atomic<uint32_t> g_stay;
/// False before tacho comes to a process that runs, and after it has left.
extern constinit std::atomic<bool> g_watched;
/// tacho came to this process while it ran.
extern constinit bool g_late;

/// Held while a file of tacho's is open in the program, or about to be mapped: in a program that ran before tacho came,
/// fork() waits for it, so that no child keeps one.
extern constinit LockWord g_files;

/// Takes the table at `path` and a place in its list of processes. nullptr, or why not.
const char* take_table(const char* path);
/// Puts pages that nobody reads in the table's place: calls that are still on their way end there.
void drop_table();
/// No operation that begins from now on is timed.
void end_timing();

/// Every watched operation of a kind and shape, in work-items or threads; all 0 when it has none.
struct WatchedShape {
  uint32_t grid[3] = {}, group[3] = {};
  bool operator==(const WatchedShape&) const = default;
};

/// A name that may be longer than what is kept of it.
struct WatchedName {
  const char* text;  ///< the first event::kWatchNameBytes at most
  uint32_t size;     ///< of the whole name
  uint64_t hash;     ///< of the whole name; never 0
};

/// The row of operations other than kernels, made when it is not there yet; nullptr when nobody watches or the table is
/// full. Never waits.
WatchRow* find_row(WatchKind kind, uint32_t domain, std::string_view name);

/// A row other than a kernel's that a place in the code looks up once in each stay.
class KeptRow {
 public:
  WatchRow* find(WatchKind kind, uint32_t domain, std::string_view name) {
    const uint64_t kept = kept_.load(std::memory_order_relaxed);
    if (__builtin_expect(kept >> 32 == g_stay.load(std::memory_order_relaxed) && (kept & UINT32_MAX) != 0, 1))
      return &g_table->rows[(kept & UINT32_MAX) - 1];
    return look_up(kind, domain, name);
  }

 private:
  WatchRow* look_up(WatchKind kind, uint32_t domain, std::string_view name);
  std::atomic<uint64_t> kept_{0};  // the stay, and the row's number plus 1
};
#define TACHO_ROW(kind, name)                         \
  ([] {                                               \
    static constinit KeptRow kept;                    \
    return kept.find(WatchKind::kind, kDomain, name); \
  }())

/// A part of a graph: so many of its nodes launch the row's kernel; row: nullptr for nodes that are no kernels.
struct GraphPart {
  WatchRow* row;
  uint32_t nodes;
};
/// The row of all graphs that have these parts, in whatever order. nullptr when the table is full.
WatchRow* find_graph(uint32_t domain, const GraphPart* parts, size_t count);
/// A row for one graph of which it is not known what is in it. nullptr when the table is full.
WatchRow* name_graph(uint32_t domain);

/// The rows of one kernel, by shape.
class WatchedKernel {
 public:
  void name(const WatchedName& name, uint32_t domain);
  /// Never nullptr: row 0 when the table is full.
  TACHO_RUN_OFTEN WatchRow* row(const WatchedShape& shape) {
    const bool first = shapes_.load(std::memory_order_acquire) != 0 && known_[0].shape == shape;
    return __builtin_expect(first, 1) ? known_[0].row : find_row(shape);
  }
  uint64_t hash() const { return hash_; }
  /// Its rows are those of another stay.
  void forget_rows();

 private:
  WatchRow* find_row(const WatchedShape& shape);
  struct Known {
    WatchedShape shape;
    WatchRow* row = nullptr;
  };
  // In one line of a cache: all that is needed for the first shape.
  alignas(64) uint64_t hash_ = 0;  // of the whole name; 0: stands for all kernels that have no rows of their own
  uint32_t size_ = 0;              // of the whole name
  uint32_t domain_ = 0;
  std::atomic<WatchRow*> rest_{nullptr};
  std::atomic<uint32_t> shapes_{0};
  Known known_[event::kWatchShapes] = {};
  char name_[event::kWatchNameBytes] = {};
};
/// The kernels of this process by name; the same object for all kernels beyond event::kWatchNames, whose row is row 0.
/// Call it under a lock.
WatchedKernel* kernel_named(std::string_view name, uint32_t domain);
/// In a forked child, which has not the thread that may have been changing rows.
void free_rows();
/// After take_table() in a process that had another one before.
void forget_all_rows();

/// Decides whether the next operation of the row is timed; if so, `level` says for how many it stands.
bool is_due(WatchRow& row, uint64_t count, uint64_t next, uint32_t& level);
TACHO_RUN_OFTEN bool to_be_timed(WatchRow& row, uint32_t& level) {
  const uint64_t count = row.count.load(std::memory_order_relaxed), next = row.next.load(std::memory_order_relaxed);
  return __builtin_expect(count >= next, 0) && is_due(row, count, next, level);
}
/// Where the calling thread counts launches of its process: a place of its own needs no locked instruction.
enum class LaunchPlace : uint32_t { kUnknown, kOwn, kShared };
/// What each operation needs of its thread: one entry of the table of offsets leads to all of it.
struct WatchingThread {
  LaunchPlace launches = LaunchPlace::kUnknown;
  uint32_t turn = 0;       ///< its operations so far
  uint32_t forwarded = 0;  ///< it is in a function of CUDA's driver that was called through a hook
  uint32_t in_hip = 0;     ///< it is in hooks of HIP's, so many deep
};
__attribute__((tls_model("initial-exec"))) extern constinit thread_local WatchingThread t_watching;
TACHO_RUN_OFTEN void await_launch_place() {
  await_line(t_watching.launches == LaunchPlace::kOwn ? &g_process->own_launches : &g_process->launches);
}
void count_shared_launch();
TACHO_RUN_OFTEN void count_launch() {
  if (__builtin_expect(t_watching.launches != LaunchPlace::kOwn, 0)) return count_shared_launch();
  // One instruction: a handler of a signal may launch, too.
  asm volatile("incq %0" : "+m"(g_process->own_launches)::"cc");
}
/// After the operation was accepted by the runtime.
TACHO_RUN_OFTEN void count_operation(WatchRow& row, uint64_t bytes) {
  row.count.fetch_add(1, std::memory_order_relaxed);
  if (row.kind <= WatchKind::kGraph) count_launch();
  if (bytes == 0) return;
  row.bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (row.kind == WatchKind::kCopy) g_process->bytes.fetch_add(bytes, std::memory_order_relaxed);
}
/// A timed operation took `ns`.
void add_time(WatchRow& row, uint32_t level, uint64_t ns);
/// A timed operation took `ns` or less.
void add_bound(WatchRow& row, uint32_t level, uint64_t ns);
/// The row's place in the table.
inline uint32_t row_number(const WatchRow& row) {
  return static_cast<uint32_t>(&row - g_table->rows);
}
/// This process uses a runtime that is watched.
void note_domain(uint32_t domain);

/// A call that waits came back at `now`, ns: programs that work in steps wait once in each.
inline void note_wait(int64_t now) {
  std::atomic<uint64_t>& waits = g_table->header.waits;
  uint64_t before = waits.load(std::memory_order_relaxed);
  while (!waits.compare_exchange_weak(before, event::watch_wait_mark(before, static_cast<uint64_t>(now)),
                                      std::memory_order_relaxed)) {
  }
}

/// What reading the clock takes, ns: it is in what OwnTime measures.
int64_t clock_time();

/// Measures what comes once, such as asking for a kernel's name.
class OnceTime {
 public:
  OnceTime() : from_(read_clock(CLOCK_MONOTONIC)) {}
  ~OnceTime() {
    g_table->header.once_time.fetch_add(static_cast<uint64_t>(read_clock(CLOCK_MONOTONIC) - from_),
                                        std::memory_order_relaxed);
  }
  OnceTime(const OnceTime&) = delete;
  OnceTime& operator=(const OnceTime&) = delete;

 private:
  int64_t from_;
};

/// What libtacho-watch.so costs the calling thread: counted operations are measured at 1 of 256, prepared ones always.
/// At another one of 256 nothing is measured: what reading the clock takes among the program's own code.
class OwnTime {
 public:
  TACHO_RUN_OFTEN OwnTime() {
    const uint32_t now = ++t_watching.turn;
    if (__builtin_expect((now & 127) == 0, 0)) begin_measuring((now & 128) == 0);
  }
  /// The operation is timed. With threads of the runtime it takes `times` as long as this thread.
  TACHO_RUN_SELDOM void prepare(uint32_t times = 1);
  /// Around the call of the runtime.
  TACHO_RUN_OFTEN void pause() {
    if (__builtin_expect(from_ != 0, 0)) stop_clock();
  }
  TACHO_RUN_OFTEN void resume() {
    if (__builtin_expect(from_ != 0, 0)) start_clock();
  }
  TACHO_RUN_OFTEN void end() {
    if (__builtin_expect(from_ != 0, 0)) account();
  }

 private:
  // Counting never takes so long, ns: the kernel did something else, or a name was asked for (OnceTime).
  static constexpr int64_t kInterrupted = 10'000;
  TACHO_RUN_SELDOM void begin_measuring(bool counts);
  TACHO_RUN_SELDOM void start_clock();
  TACHO_RUN_SELDOM void stop_clock();
  TACHO_RUN_SELDOM void account();

  int64_t from_ = 0, spent_ = 0;  // 0: not measured
  uint32_t prepares_ = 0;         // 0: it does not
};

}  // namespace tacho::capture::watch
