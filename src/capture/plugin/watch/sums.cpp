// Rows and sums (sums.h). Nothing here allocates from the program's heap, waits or throws.
#include "capture/plugin/watch/sums.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/plugin/watch/ring.h"
#include "capture/room/lock.h"

namespace tacho::capture::watch {

namespace {
constinit event::WatchProcess g_no_place = {};
constinit std::atomic<bool> g_ends{false};  // nothing is timed any more
constinit LockWord g_rows_lock{0};          // of all kernels' rows, where they change
}  // namespace

TACHO_READ_OFTEN constinit WatchTable* g_table = nullptr;
TACHO_READ_OFTEN constinit event::WatchProcess* g_process = &g_no_place;
TACHO_READ_OFTEN constinit std::atomic<uint32_t> g_stay{0};
TACHO_READ_OFTEN constinit std::atomic<bool> g_watched{false};
constinit thread_local WatchingThread t_watching;
constinit bool g_late = false;
constinit LockWord g_files{0};

namespace {

constinit WatchedKernel g_kernels[event::kWatchNames + 1] = {};
constinit uint32_t g_names = 0;
constinit WatchedKernel* g_by_hash[event::kWatchNames * 2] = {};

uint64_t mixed(uint64_t word) {
  word ^= word >> 30;
  word *= 0xbf58476d1ce4e5b9ULL;
  word ^= word >> 27;
  word *= 0x94d049bb133111ebULL;
  return word ^ word >> 31;
}
// Never 0.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return mixed(hash) | 1;
}

// Whether the place's process has ended and left nothing in it, such as the commands of a script. What is kept names a
// process by its place.
bool may_be_used_again(const event::WatchProcess& place) {
  return !keeps() && place.domains.load(std::memory_order_relaxed) == 0 &&
         place.launches.load(std::memory_order_relaxed) == 0 &&
         place.own_launches.load(std::memory_order_relaxed) == 0 && place.bytes.load(std::memory_order_relaxed) == 0;
}

// A free place for the process, or one that may be used again; nullptr: there is none.
event::WatchProcess* take_place(uint32_t pid) {
  for (event::WatchProcess& place : g_table->processes) {
    uint32_t none = 0;
    if (place.pid.load(std::memory_order_relaxed) == 0 &&
        place.pid.compare_exchange_strong(none, pid, std::memory_order_acq_rel))
      return &place;
  }
  for (event::WatchProcess& place : g_table->processes) {
    uint32_t ended = place.ended.load(std::memory_order_acquire);
    if (ended == 0 || !may_be_used_again(place) ||
        !place.ended.compare_exchange_strong(ended, 0, std::memory_order_acq_rel))
      continue;
    place.pid.store(pid, std::memory_order_release);
    return &place;
  }
  return nullptr;
}

void register_process() {
  g_process = &g_no_place;
  if (event::WatchProcess* const found = take_place(static_cast<uint32_t>(getpid()))) {
    event::WatchProcess& place = *found;
    if (const int file = open("/proc/self/comm", O_RDONLY | O_CLOEXEC); file >= 0) {
      const ssize_t size = read(file, place.name, sizeof place.name - 1);
      place.name[size > 0 && place.name[size - 1] == '\n' ? size - 1 : size > 0 ? size : 0] = '\0';
      close(file);
    }
    g_process = &place;
    use_ring_as(static_cast<uint16_t>(&place - g_table->processes));
    return;
  }
  g_table->header.refused_processes.fetch_add(1, std::memory_order_relaxed);
}

// Before main(), in a program that tacho starts.
__attribute__((constructor)) void begin() {
  const char* const path = getenv(event::kWatchVariable);
  if (path == nullptr || *path == '\0') return;
  open_ring(path);
  if (take_table(path) != nullptr) return;  // tacho has ended: this program outlives it
  g_watched.store(true, std::memory_order_release);
  pthread_atfork(nullptr, nullptr, [] {
    free_rows();
    if (!g_late) register_process();
  });
}

__attribute__((destructor)) void finish() {
  g_process->ended.store(1, std::memory_order_relaxed);
}

// Whether another process that is filling the row gets ready within a moment.
bool ready(const WatchRow& row) {
  for (int i = 0; i < 2000; ++i) {
    if (row.state.load(std::memory_order_acquire) == WatchRow::kReady) return true;
    __builtin_ia32_pause();
  }
  return false;
}

uint32_t wanted_level(uint64_t count, uint32_t least) {
  // The first ones are all timed, then about 50 for each doubling of the count, and from 8192 on 1 of 128.
  constexpr uint32_t kMost = 7;
  if (count < event::kWatchFirst) return 0;
  const auto level = static_cast<uint32_t>(63 - __builtin_clzll(count / event::kWatchFirst));
  const uint32_t own = level < kMost ? level : kMost;
  const uint32_t chosen = own > least ? own : least;
  return chosen < event::kWatchLevels ? chosen : event::kWatchLevels - 1;
}

}  // namespace

namespace {

// `made`: whether there was none before.
WatchRow* find_row_of(WatchKind kind, uint32_t domain, const WatchedName& name, const WatchedShape& shape,
                      bool* made = nullptr) {
  if (g_table == nullptr) return nullptr;
  uint64_t key = mixed(name.hash ^ (static_cast<uint64_t>(kind) << 8 | domain));
  for (size_t i = 0; i < 3; ++i) key = mixed(key ^ (static_cast<uint64_t>(shape.grid[i]) << 32 | shape.group[i]) ^ i);
  if (key == 0) key = 1;
  constexpr uint32_t kRows = event::kWatchRows - 1;  // without row 0
  auto at = static_cast<uint32_t>(key % kRows);
  for (uint32_t tried = 0; tried < kRows; ++tried, at = (at + 1) % kRows) {
    WatchRow& row = g_table->rows[1 + at];
    uint32_t state = row.state.load(std::memory_order_acquire);
    if (state == WatchRow::kFree && row.state.compare_exchange_strong(state, WatchRow::kTaken)) {
      row.kind = kind;
      row.domain = domain;
      row.key = key;
      for (size_t i = 0; i < 3; ++i) {
        row.grid[i] = shape.grid[i];
        row.group[i] = shape.group[i];
      }
      row.name_size = name.size;
      memcpy(row.name, name.text, name.size < event::kWatchNameBytes ? name.size : event::kWatchNameBytes);
      row.state.store(WatchRow::kReady, std::memory_order_release);
      g_table->header.made.fetch_add(1, std::memory_order_release);
      if (made != nullptr) *made = true;
      return &row;
    }
    if (state != WatchRow::kReady && !ready(row)) continue;  // killed while it filled the row: one place less
    if (row.key == key) return &row;
  }
  return kind == WatchKind::kKernel ? &g_table->rows[0] : nullptr;
}

}  // namespace

const char* take_table(const char* path) {
  const Guard guard(g_files);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return "it may not open tacho's table of sums";
  struct stat status {};
  void* at = MAP_FAILED;
  if (fstat(file, &status) == 0 && status.st_size == static_cast<off_t>(sizeof(WatchTable)))
    // Rows that are in use stay where they are.
    at = mmap(g_table, sizeof(WatchTable), PROT_READ | PROT_WRITE, MAP_SHARED | (g_table != nullptr ? MAP_FIXED : 0),
              file, 0);
  close(file);
  if (at == MAP_FAILED) return "it may not map tacho's table of sums";
  auto* const table = static_cast<WatchTable*>(at);
  if (table->header.magic != event::kWatchMagic || table->header.size != sizeof(WatchTable)) {
    if (g_table != nullptr)
      drop_table();
    else
      munmap(at, sizeof(WatchTable));
    return "another version of tacho's library is in it from an earlier tacho watch; start the program anew, or watch "
           "it with that version";
  }
  g_table = table;
  g_ends.store(false, std::memory_order_relaxed);
  register_process();
  return nullptr;
}

void drop_table() {
  g_process = &g_no_place;
  if (g_table == nullptr) return;
  // In place of pages that are there, so it needs no room.
  static_cast<void>(mmap(g_table, sizeof(WatchTable), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0));
}

void count_shared_launch() {
  if (t_watching.launches == LaunchPlace::kUnknown) {
    // A forked child has no such thread if another one has forked.
    static constinit std::atomic<uint32_t> threads{0};
    const uint32_t number = threads.fetch_add(1, std::memory_order_relaxed);
    t_watching.launches = number != 0 ? LaunchPlace::kShared : LaunchPlace::kOwn;
    // Of threads that end after a few launches some are measured, too.
    t_watching.turn += static_cast<uint32_t>(mixed(number) & 255);
    if (t_watching.launches == LaunchPlace::kOwn) return count_launch();
  }
  g_process->launches.fetch_add(1, std::memory_order_relaxed);
}

void end_timing() {
  g_ends.store(true, std::memory_order_relaxed);
}

WatchRow* KeptRow::look_up(WatchKind kind, uint32_t domain, std::string_view name) {
  const uint64_t stay = g_stay.load(std::memory_order_acquire);
  WatchRow* const row = find_row(kind, domain, name);
  if (row != nullptr)
    kept_.store(stay << 32 | static_cast<uint64_t>(row - g_table->rows + 1), std::memory_order_relaxed);
  return row;
}

WatchRow* find_row(WatchKind kind, uint32_t domain, std::string_view name) {
  return find_row_of(kind, domain, {name.data(), static_cast<uint32_t>(name.size()), hash_of(name)}, {});
}

namespace {

constexpr std::string_view kOtherGraphs = "(other graphs)";

void note_parts(const WatchRow& graph, const GraphPart* parts, size_t count) {
  const uint32_t from = g_table->header.parts.fetch_add(static_cast<uint32_t>(count), std::memory_order_relaxed);
  if (from + count > event::kWatchParts) return;  // the tool finds none
  for (size_t i = 0; i < count; ++i) {
    event::WatchPart& part = g_table->parts[from + i];
    part.kernel.store(
        parts[i].row != nullptr ? static_cast<uint32_t>(parts[i].row - g_table->rows) : event::kWatchOtherNodes,
        std::memory_order_relaxed);
    part.nodes.store(parts[i].nodes, std::memory_order_relaxed);
    part.graph.store(static_cast<uint32_t>(&graph - g_table->rows), std::memory_order_release);
  }
}

}  // namespace

WatchRow* find_graph(uint32_t domain, const GraphPart* parts, size_t count) {
  if (g_table == nullptr) return nullptr;
  uint64_t hash = count;
  for (size_t i = 0; i < count; ++i)
    hash += mixed((parts[i].row != nullptr ? parts[i].row->key : 1) + mixed(parts[i].nodes));
  std::atomic<uint32_t>& graphs = g_table->header.graphs;
  const uint32_t number = graphs.load(std::memory_order_relaxed) + 1;
  if (number > event::kWatchGraphs) return find_row(WatchKind::kGraph, domain, kOtherGraphs);
  char name[24];
  const int size = snprintf(name, sizeof name, "graph %u", number);
  bool made = false;
  WatchRow* const row =
      find_row_of(WatchKind::kGraph, domain, {name, static_cast<uint32_t>(size), mixed(hash) | 1}, {}, &made);
  if (row == nullptr || !made) return row;
  graphs.fetch_add(1, std::memory_order_relaxed);
  note_parts(*row, parts, count);
  return row;
}

WatchRow* name_graph(uint32_t domain) {
  if (g_table == nullptr) return nullptr;
  const uint32_t number = g_table->header.graphs.fetch_add(1, std::memory_order_relaxed) + 1;
  if (number > event::kWatchGraphs) return find_row(WatchKind::kGraph, domain, kOtherGraphs);
  char name[24];
  snprintf(name, sizeof name, "graph %u", number);
  return find_row(WatchKind::kGraph, domain, name);
}

void WatchedKernel::name(const WatchedName& name, uint32_t domain) {
  hash_ = name.hash;
  size_ = name.size;
  memcpy(name_, name.text, size_ < sizeof name_ ? size_ : sizeof name_);
  domain_ = domain;
}

WatchRow* WatchedKernel::find_row(const WatchedShape& shape) {
  if (hash_ == 0) return &g_table->rows[0];
  const uint32_t stay = g_stay.load(std::memory_order_acquire);
  const uint32_t known = shapes_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < known; ++i)
    if (known_[i].shape == shape) return known_[i].row;
  const WatchedName name{name_, size_, hash_};
  if (known == event::kWatchShapes) {
    WatchRow* rest = rest_.load(std::memory_order_relaxed);
    if (rest == nullptr) {
      rest = find_row_of(WatchKind::kKernel, domain_, name, {});
      if (try_lock(g_rows_lock)) {
        if (stay == g_stay.load(std::memory_order_relaxed)) rest_.store(rest, std::memory_order_relaxed);
        unlock(g_rows_lock);
      }
    }
    return rest;
  }
  WatchRow* const row = find_row_of(WatchKind::kKernel, domain_, name, shape);
  // One thread at a time adds a shape; another finds its row in the table once more.
  if (try_lock(g_rows_lock)) {
    const uint32_t last = shapes_.load(std::memory_order_relaxed);
    bool there = last == event::kWatchShapes || stay != g_stay.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < last; ++i) there = there || known_[i].shape == shape;
    if (!there) {
      known_[last] = {shape, row};
      shapes_.store(last + 1, std::memory_order_release);
    }
    unlock(g_rows_lock);
  }
  return row;
}

void WatchedKernel::forget_rows() {
  shapes_.store(0, std::memory_order_relaxed);
  rest_.store(nullptr, std::memory_order_relaxed);
}

void free_rows() {
  unlock(g_rows_lock);
}

void forget_all_rows() {
  const Guard guard(g_rows_lock);
  for (WatchedKernel& kernel : g_kernels) kernel.forget_rows();
}

WatchedKernel* kernel_named(std::string_view name, uint32_t domain) {
  const uint64_t hash = hash_of(name);
  constexpr size_t kPlaces = event::kWatchNames * 2;
  size_t at = hash % kPlaces;
  for (; g_by_hash[at] != nullptr; at = (at + 1) % kPlaces)
    if (g_by_hash[at]->hash() == hash) return g_by_hash[at];
  if (g_names == event::kWatchNames || name.empty()) return &g_kernels[event::kWatchNames];
  WatchedKernel* const kernel = &g_kernels[g_names++];
  kernel->name({name.data(), static_cast<uint32_t>(name.size()), hash}, domain);
  g_by_hash[at] = kernel;
  return kernel;
}

int64_t clock_time() {
  static constinit std::atomic<int64_t> kept{-1};
  int64_t least = kept.load(std::memory_order_relaxed);
  if (least >= 0) return least;
  int64_t before = read_clock(CLOCK_MONOTONIC);
  least = 1000;
  for (int i = 0; i < 64; ++i) {
    const int64_t now = read_clock(CLOCK_MONOTONIC);
    if (now - before < least) least = now - before;
    before = now;
  }
  kept.store(least, std::memory_order_relaxed);
  return least;
}

void OwnTime::prepare(uint32_t times) {
  prepares_ = times;
  if (from_ == 0) start_clock();
}

void OwnTime::begin_measuring(bool counts) {
  // Brings here what measuring itself needs: it is not a part of what operations take.
  start_clock();
  stop_clock();
  const int64_t now = read_clock(CLOCK_MONOTONIC);
  from_ = counts ? now : 0;
  spent_ = 0;
  if (counts) return;
  const int64_t took = read_clock(CLOCK_MONOTONIC) - now;
  if (g_table == nullptr || took >= kInterrupted) return;
  g_table->header.clock_time.fetch_add(static_cast<uint64_t>(took), std::memory_order_relaxed);
  g_table->header.clock_measured.fetch_add(1, std::memory_order_relaxed);
}

void OwnTime::start_clock() {
  from_ = read_clock(CLOCK_MONOTONIC);
}

void OwnTime::stop_clock() {
  spent_ += read_clock(CLOCK_MONOTONIC) - from_;
}

void OwnTime::account() {
  stop_clock();
  WatchHeader& header = g_table->header;
  if (prepares_ != 0) {
    header.prepared.fetch_add(1, std::memory_order_relaxed);
    spent_ -= 2 * clock_time();
    header.prepared_time.fetch_add(spent_ > 0 ? static_cast<uint64_t>(spent_) * prepares_ : 0,
                                   std::memory_order_relaxed);
  } else if (spent_ < kInterrupted) {
    header.counted_time.fetch_add(static_cast<uint64_t>(spent_), std::memory_order_relaxed);
    header.counted_measured.fetch_add(1, std::memory_order_relaxed);
  }
}

bool is_due(WatchRow& row, uint64_t count, uint64_t next, uint32_t& level) {
  WatchHeader& header = g_table->header;
  const uint32_t before = row.level.load(std::memory_order_relaxed);
  level = wanted_level(count, header.least_level.load(std::memory_order_relaxed));
  // From 1 to 2 N - 1 operations further, N on average: a program that repeats itself must not always meet the same
  // one.
  const uint64_t span = (uint64_t{2} << level) - 1;
  const uint64_t gap = 1 + mixed(count ^ row.key) % span;
  if (!row.next.compare_exchange_strong(next, count + gap, std::memory_order_relaxed)) return false;
  if (level != before) {
    const uint64_t from = row.level_from.exchange(count, std::memory_order_relaxed);
    if (count > from) row.levels[before].count.fetch_add(count - from, std::memory_order_relaxed);
    row.level.store(level, std::memory_order_relaxed);
  }
  if (g_ends.load(std::memory_order_relaxed)) return false;
  const event::WatchTiming timing = header.timing.load(std::memory_order_relaxed);
  if (timing == event::WatchTiming::kNever) return false;
  if (count < event::kWatchFirst) return true;
  if (timing == event::WatchTiming::kOn) {
    if (event::watch_timing_time(header) < header.timing_limit.load(std::memory_order_relaxed)) return true;
    header.skipped.fetch_add(1, std::memory_order_relaxed);
  }
  row.owed.fetch_add(uint64_t{1} << level, std::memory_order_relaxed);
  return false;
}

void add_time(WatchRow& row, uint32_t level, uint64_t ns) {
  WatchLevel& sums = row.levels[level];
  const auto time = static_cast<double>(ns);
  sums.timed.fetch_add(1, std::memory_order_relaxed);
  sums.time.fetch_add(ns, std::memory_order_relaxed);
  double squares = sums.squares.load(std::memory_order_relaxed);
  while (!sums.squares.compare_exchange_weak(squares, squares + time * time, std::memory_order_relaxed)) {
  }
  uint64_t stands_for = uint64_t{1} << level;
  if (row.owed.load(std::memory_order_relaxed) != 0) stands_for += row.owed.exchange(0, std::memory_order_relaxed);
  row.buckets[event::watch_bucket(ns)].fetch_add(stands_for, std::memory_order_relaxed);
  row.stood_time.fetch_add(ns * stands_for, std::memory_order_relaxed);
  if (row.kind != WatchKind::kWait) g_process->time.fetch_add(ns * stands_for, std::memory_order_relaxed);
  uint64_t known = row.shortest.load(std::memory_order_relaxed);
  while ((known == 0 || known > ns + 1) &&
         !row.shortest.compare_exchange_weak(known, ns + 1, std::memory_order_relaxed)) {
  }
  known = row.longest.load(std::memory_order_relaxed);
  while (known < ns + 1 && !row.longest.compare_exchange_weak(known, ns + 1, std::memory_order_relaxed)) {
  }
}

void add_bound(WatchRow& row, uint32_t level, uint64_t ns) {
  row.levels[level].bounded.fetch_add(1, std::memory_order_relaxed);
  row.levels[level].bound_time.fetch_add(ns, std::memory_order_relaxed);
  row.owed.fetch_add(uint64_t{1} << level, std::memory_order_relaxed);
}

void note_domain(uint32_t domain) {
  g_process->domains.fetch_or(1u << domain, std::memory_order_relaxed);
}

}  // namespace tacho::capture::watch
