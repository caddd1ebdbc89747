// Queues and the collection of their commands (queues.h).
#include "capture/source/opencl/queues.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/own_thread.h"

namespace tacho::capture::opencl {
namespace {

using D = cl_icd_dispatch;

// A batch: so many commands gather before who enqueues looks for complete ones. Small enough to stay in the cache.
constexpr uint32_t kBatch = 48;
// So many commands go by before the whole queue is looked through although its first command does not complete.
constexpr uint32_t kScanAfter = 2048;

// So many commands that are not complete are passed over in a queue that works in order before the rest of the list is
// given up: threads that enqueue at once may list their commands in another order than the queue's.
constexpr uint32_t kPatience = 16;
// With so many commands on their way the flush thread collects while the program waits for them, so that little is left
// to do when it goes on.
constexpr uint64_t kManyWaited = 512;

constexpr uint32_t kMaxQueues = 1 << 16;
constinit HandleMap g_queues;
constinit Slab<Queue> g_queue_slab;
constinit Slab<Chunk> g_chunk_slab;     // under g_wiped->chunks
constinit Slab<WideShape> g_wide_slab;  // under g_wiped->chunks
constinit std::atomic<Queue*>* g_list = nullptr;
constinit std::atomic<uint32_t> g_list_size{0};
constinit std::atomic<bool> g_exit_watched{false};

std::atomic<uint32_t>& append_lock(const Queue& queue) {
  return g_wiped->append[queue.index % Wiped::kQueueLocks];
}
std::atomic<uint32_t>& drain_lock(const Queue& queue) {
  return g_wiped->drain[queue.index % Wiped::kQueueLocks];
}

Chunk* new_chunk() {
  const Guard guard(g_wiped->chunks);
  return g_chunk_slab.take();
}
void free_chunk(Chunk* chunk) {
  const Guard guard(g_wiped->chunks);
  g_chunk_slab.give(chunk);
}

// Stands in the map for queues that the program gave up: their events may live on and be asked for profiling times that
// the program never wanted.
constinit Queue g_given_up = {};  // forced is set at start

// True if the program must not see profiling times of the queue: it did not ask, and the runtime would not have told.
bool hides_profiling(const Queue* queue) {
  if (queue == nullptr || !queue->forced ||
      (queue->properties.load(std::memory_order_relaxed) & CL_QUEUE_PROFILING_ENABLE) != 0)
    return false;
  return queue->device == nullptr || queue->device->vendor == nullptr || !queue->device->vendor->always_profiles;
}

// True if this process image's commands are in the lists. A forked child starts with empty ones: its parent's commands
// are not its own.
bool ours() {
  if (__builtin_expect(g_wiped->alive.load(std::memory_order_acquire) != 0, 1)) return true;
  const Guard guard(g_wiped->objects);
  if (g_wiped->alive.load(std::memory_order_acquire) != 0) return true;
  const uint32_t count = g_list_size.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    Queue* const queue = g_list[i].load(std::memory_order_acquire);
    if (queue == nullptr) continue;
    queue->tail = nullptr;
    queue->head.store(nullptr, std::memory_order_relaxed);
    queue->since_poll = queue->since_scan = 0;
    queue->appended.store(0, std::memory_order_relaxed);
    queue->collected.store(0, std::memory_order_relaxed);
  }
  g_wiped->alive.store(1, std::memory_order_release);
  return true;
}

// Clocks

constinit ClockTuple g_first_tuple = {};

double ns_per_tick(const ClockTuple& now) {
  if (!host_clock_is_tsc()) return 1.0;
  const double ticks = static_cast<double>(now.tsc - g_first_tuple.tsc);
  return ticks > 0 ? static_cast<double>(now.raw - g_first_tuple.raw) / ticks : 1.0;
}

// Host ticks as CLOCK_MONOTONIC_RAW, for moments near `now`.
int64_t to_raw(uint64_t ticks, const ClockTuple& now, double scale) {
  if (!host_clock_is_tsc()) return static_cast<int64_t>(ticks);
  return now.raw - static_cast<int64_t>(static_cast<double>(static_cast<int64_t>(now.tsc - ticks)) * scale);
}

uint64_t profiling_value(cl_event event, cl_profiling_info what) {
  cl_ulong value = 0;
  return next<&D::clGetEventProfilingInfo>(event, what, sizeof value, static_cast<void*>(&value), nullptr) == CL_SUCCESS
             ? value
             : 0;
}

// In which clock a runtime that we do not know counts: the one in which the command was queued during its call.
event::DeviceClock measure_clock(const Command& command) {
  const uint64_t queued = profiling_value(command.event, CL_PROFILING_COMMAND_QUEUED);
  const ClockTuple now = sample_clocks();
  const double scale = ns_per_tick(now);
  const int64_t start = to_raw(command.host_start, now, scale), end = to_raw(command.host_end, now, scale);
  constexpr int64_t kSlack = 20'000;
  const auto fits = [&](int64_t offset) {  // of that clock to RAW
    const int64_t raw = static_cast<int64_t>(queued) - offset;
    return raw >= start - kSlack && raw <= end + kSlack;
  };
  if (fits(0)) return event::DeviceClock::kMonotonicRaw;
  if (fits(now.monotonic - now.raw)) return event::DeviceClock::kMonotonic;
  if (fits(now.realtime - now.raw)) return event::DeviceClock::kRealtime;
  return event::DeviceClock::kPaired;
}

// A runtime without a device timer: its QUEUED time against the call that enqueued. The narrowest call of each second.
void pair_by_call(Queue& queue, const Command& command, uint64_t queued) {
  if (queued == 0 || command.host_end <= command.host_start) return;
  const double scale = queue.ns_per_tick;
  const auto uncertainty =
      static_cast<uint64_t>(static_cast<double>(command.host_end - command.host_start) * scale / 2) + 1;
  const auto window = static_cast<uint64_t>(static_cast<double>(command.host_end) * scale * 1e-9);
  if (window != queue.pair_window) {
    queue.pair_window = window;
    queue.best_pair_uncertainty = UINT64_MAX;
  }
  if (uncertainty >= queue.best_pair_uncertainty) return;
  queue.best_pair_uncertainty = uncertainty;
  event::ClockPairRecord record{};
  record.header = {event::RecordKind::kClockPair, 0, sizeof record, queue.device->number};
  record.host = command.host_start + (command.host_end - command.host_start) / 2;
  record.device = queued;
  record.uncertainty = uncertainty;
  tape::define(&record.header);
}

// Writing

struct DeviceTimes {
  uint64_t queued = 0, submit = 0, start = 0, end = 0;
};

template <typename Record>
void fill_times(Record& record, const Command& command, const DeviceTimes& times, uint32_t queue) {
  record.correlation = command.correlation;
  record.queued = times.queued;
  record.submit = times.submit;
  record.start = times.start;
  record.end = times.end;
  record.queue = queue;
}

void free_wide(Command& command) {
  if (command.kind != CommandKind::kDispatchWide) return;
  const Guard guard(g_wiped->chunks);
  g_wide_slab.give(command.wide);
}

// What commands were given

struct KeptArguments {
  uint32_t next;  // of the free ones, + 1
  event::ArgumentsOf of;
  uint32_t value, count;
  uint64_t words[event::kMostKernelArguments * sizeof(event::KernelArgument) / sizeof(uint64_t)];
};
constexpr uint32_t kMostKept = UINT16_MAX;
// Under g_wiped->chunks.
constinit KeptArguments* g_kept = nullptr;
constinit uint32_t g_kept_used = 0, g_kept_free = 0;

void write_kept(const Command& command) {
  KeptArguments& kept = g_kept[command.arguments - 1];
  write_arguments(kept.of, kept.value, command.correlation, kept.words, kept.count);
  const Guard guard(g_wiped->chunks);
  kept.next = g_kept_free;
  g_kept_free = command.arguments;
}

event::Table table_of(CommandKind kind) {
  switch (kind) {
    case CommandKind::kCopy:
      return event::Table::kCopy;
    case CommandKind::kFill:
      return event::Table::kFill;
    case CommandKind::kSync:
      return event::Table::kSync;
    default:
      return event::Table::kDispatch;
  }
}

void write_command(Queue& queue, const Command& command, const DeviceTimes& times) {
  using event::RecordKind, event::Table;
  if (__builtin_expect(command.arguments != 0, 0)) write_kept(command);
  switch (command.kind) {
    case CommandKind::kDone:
      break;
    case CommandKind::kDispatch:
      if (auto* const record = tape::begin<event::DispatchRecord>(RecordKind::kDispatch, Table::kDispatch,
                                                                  command.value, command.flags)) {
        fill_times(*record, command, times, queue.number);
        record->ordinal = command.ordinal;
        memcpy(record->grid, command.shape.grid, sizeof record->grid);
        memcpy(record->group, command.shape.group, sizeof record->group);
        tape::commit();
      }
      break;
    case CommandKind::kDispatchWide:
      if (auto* const record = tape::begin<event::DispatchWideRecord>(RecordKind::kDispatchWide, Table::kDispatch,
                                                                      command.value, command.flags)) {
        fill_times(*record, command, times, queue.number);
        record->ordinal = command.ordinal;
        memcpy(record->grid, command.wide->grid, sizeof record->grid);
        memcpy(record->group, command.wide->group, sizeof record->group);
        memcpy(record->offset, command.wide->offset, sizeof record->offset);
        memset(record->cluster, 0, sizeof record->cluster);
        record->shared_dynamic = 0;
        tape::commit();
      }
      break;
    case CommandKind::kCopy:
      if (auto* const record =
              tape::begin<event::CopyRecord>(RecordKind::kCopy, Table::kCopy, command.value, command.flags)) {
        fill_times(*record, command, times, queue.number);
        record->bytes = command.data.bytes;
        record->peer_queue = 0;
        tape::commit();
      }
      break;
    case CommandKind::kFill:
      if (auto* const record =
              tape::begin<event::FillRecord>(RecordKind::kFill, Table::kFill, command.value, command.flags)) {
        fill_times(*record, command, times, queue.number);
        record->bytes = command.data.bytes;
        record->pattern = command.data.pattern;
        record->pattern_bytes = command.pattern_bytes;
        tape::commit();
      }
      break;
    case CommandKind::kSync:
      if (auto* const record =
              tape::begin<event::SyncRecord>(RecordKind::kSync, Table::kSync, command.value, command.flags)) {
        record->correlation = command.correlation;
        record->start = times.start;
        record->end = times.end;
        record->queue = queue.number;
        record->reserved = 0;
        tape::commit();
      }
      break;
  }
}

// Writes the command if it is complete. False: it is not. `release`: give its event back.
bool finish(Queue& queue, Command& command, bool release) {
  DeviceTimes times;
  cl_ulong end = 0;
  // One question answers two: the time is not available before the command is complete. Not so where it always is.
  const Vendor* const vendor = queue.device->vendor;
  cl_int result = CL_PROFILING_INFO_NOT_AVAILABLE;
  if (__builtin_expect(vendor == nullptr || !vendor->always_profiles, 1))
    result = next<&D::clGetEventProfilingInfo>(command.event, CL_PROFILING_COMMAND_END, sizeof end,
                                               static_cast<void*>(&end), nullptr);
  if (result != CL_SUCCESS || end == 0) {
    cl_int status = CL_QUEUED;
    if (next<&D::clGetEventInfo>(command.event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status,
                                 static_cast<void*>(&status), nullptr) == CL_SUCCESS &&
        status > CL_COMPLETE)
      return false;
    // Complete since we asked, or failed (then there are no times).
    result = next<&D::clGetEventProfilingInfo>(command.event, CL_PROFILING_COMMAND_END, sizeof end,
                                               static_cast<void*>(&end), nullptr);
  }
  if (result == CL_SUCCESS) {
    times.end = end;
    times.start = profiling_value(command.event, CL_PROFILING_COMMAND_START);
    times.queued = profiling_value(command.event, CL_PROFILING_COMMAND_QUEUED);
    times.submit = profiling_value(command.event, CL_PROFILING_COMMAND_SUBMIT);
    if (__builtin_expect(!queue.defined.load(std::memory_order_acquire), 0)) define_queue(queue, &command);
    if (__builtin_expect(queue.clock == event::DeviceClock::kPaired, 0) && !queue.device->has_timer)
      pair_by_call(queue, command, times.queued);
  } else if (!queue.defined.load(std::memory_order_acquire)) {
    define_queue(queue, nullptr);
  }
  write_command(queue, command, times);
  if (release) next<&D::clReleaseEvent>(command.event);
  free_wide(command);
  return true;
}

// Under the drain lock. Writes at most `limit` commands; stops when it has met more than `patience` that are not
// complete.
constexpr uint32_t kAll = UINT32_MAX;
void drain(Queue& queue, uint32_t patience, uint64_t limit, bool release) {
  const Inner inner;  // giving an event back may run callbacks of the program, under our lock
  Chunk* previous = nullptr;
  Chunk* chunk = queue.head.load(std::memory_order_acquire);
  uint64_t written = 0;
  uint32_t waiting = 0;
  bool stop = false;
  while (chunk != nullptr && !stop) {
    const uint32_t count = chunk->count.load(std::memory_order_acquire);
    bool gap = false;
    for (uint32_t i = chunk->first; i < count && !stop; ++i) {
      Command& command = chunk->commands[i];
      if (command.kind != CommandKind::kDone) {
        if (finish(queue, command, release)) {
          command.kind = CommandKind::kDone;
          queue.collected.store(queue.collected.load(std::memory_order_relaxed) + 1, std::memory_order_release);
          stop = ++written >= limit;
        } else {
          gap = true;
          stop = waiting++ == patience;
        }
      }
      if (!gap && command.kind == CommandKind::kDone) chunk->first = i + 1;
    }
    Chunk* const following = chunk->next.load(std::memory_order_acquire);
    if (chunk->first == Chunk::kCommands && following != nullptr) {
      (previous != nullptr ? previous->next : queue.head).store(following, std::memory_order_release);
      free_chunk(chunk);
    } else {
      previous = chunk;
    }
    chunk = following;
  }
}

uint64_t pending(const Queue& queue) {
  return queue.appended.load(std::memory_order_acquire) - queue.collected.load(std::memory_order_acquire);
}
bool idle(const Queue& queue) {
  return pending(queue) == 0;
}

// The flush thread

void report_filtered() {
  const uint64_t filtered = g_wiped->filtered.exchange(0, std::memory_order_relaxed);
  if (filtered != 0) tape::loss(event::Table::kDispatch, event::LossReason::kFiltered, filtered);
}

void retire(Queue& queue) {
  // Under the drain lock; the program has no reference and no command is on its way.
  queue.in_use.store(false, std::memory_order_release);
}

// One pass over all queues.
void pass(bool release) {
  ours();
  const uint32_t count = g_list_size.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    Queue* const queue = g_list[i].load(std::memory_order_acquire);
    if (queue == nullptr || !queue->in_use.load(std::memory_order_acquire)) continue;
    if (idle(*queue) && queue->references.load(std::memory_order_relaxed) != 0) continue;
    if (!try_lock(drain_lock(*queue))) continue;  // somebody is at it
    if (queue->in_use.load(std::memory_order_acquire)) {
      drain(*queue, kAll, UINT64_MAX, release);
      if (idle(*queue) && queue->references.load(std::memory_order_acquire) == 0) retire(*queue);
    }
    unlock(drain_lock(*queue));
  }
  report_filtered();
}

void kick_thread() {
  if (g_wiped->kicked.exchange(1, std::memory_order_relaxed) == 0)
    syscall(SYS_futex, &g_wiped->kicked, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
}

void* flush_loop(void*) {
  prctl(PR_SET_NAME, "tacho flush");
  tape::t_state.hidden = 1;
  uint32_t period_ms = tape::pool()->flush_period_ms;
  if (period_ms < 10) period_ms = 10;
  Wiped* const wiped = g_wiped;
  while (wiped->stopping.load(std::memory_order_acquire) == 0) {
    const timespec period{period_ms / 1000, static_cast<long>(period_ms % 1000) * 1'000'000};
    syscall(SYS_futex, &wiped->kicked, FUTEX_WAIT_PRIVATE, 0, &period, nullptr, 0);
    wiped->kicked.store(0, std::memory_order_relaxed);
    const Guard guard(wiped->pass);
    if (wiped->stopping.load(std::memory_order_acquire) != 0) break;
    pass(true);
    write_clock_pairs();
  }
  return nullptr;
}

void start_thread() {
  uint32_t expected = 0;
  if (!g_wiped->thread_started.compare_exchange_strong(expected, 1, std::memory_order_acq_rel)) return;
  if (!start_own_thread(flush_loop))
    tape::note(event::NoteSeverity::kWarning, "no thread could be started in the program to flush OpenCL commands once "
                                              "a second: a kill may lose more");
}

// At exit: takes what is complete. Asks nothing of the runtime that could wait, and gives no events back.
void at_exit() {
  Wiped* const wiped = g_wiped;
  if (wiped->alive.load(std::memory_order_acquire) == 0 || !tape::attached()) return;
  wiped->stopping.store(1, std::memory_order_release);
  kick_thread();
  for (int tries = 0; tries < 200;
       ++tries) {  // a pass of the flush thread ends first, but we do not wait for it for ever
    if (try_lock(wiped->pass)) {
      pass(false);
      unlock(wiped->pass);
      return;
    }
    usleep(1000);
  }
}

tape::CommandCounts& progress_slow() {
  const Guard guard(g_wiped->objects);
  tape::CommandCounts* progress = g_wiped->progress.load(std::memory_order_relaxed);
  if (progress != nullptr) return *progress;
  progress = tape::open_progress();
  if (progress == nullptr) {
    progress = &g_wiped->unseen;
    tape::note(event::NoteSeverity::kWarning, "the pool had no room to keep count of a process's commands: were it "
                                              "killed, what is in flight would not be counted");
  }
  g_wiped->progress.store(progress, std::memory_order_release);
  return *progress;
}

tape::CommandCounts& progress() {
  tape::CommandCounts* const known = g_wiped->progress.load(std::memory_order_acquire);
  return __builtin_expect(known != nullptr, 1) ? *known : progress_slow();
}

void count_issued(CommandKind kind) {
  progress().issued[static_cast<size_t>(table_of(kind))].fetch_add(1, std::memory_order_relaxed);
}

// After everything else of the process: what never completed is counted.
__attribute__((destructor)) void count_in_flight() {
  if (!tape::attached() || g_wiped->alive.load(std::memory_order_acquire) == 0 || g_list == nullptr) return;
  g_wiped->stopping.store(1, std::memory_order_release);
  uint64_t in_flight[event::kFactTables] = {};
  const uint32_t count = g_list_size.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    Queue* const queue = g_list[i].load(std::memory_order_acquire);
    if (queue == nullptr || !queue->in_use.load(std::memory_order_acquire) || idle(*queue)) continue;
    if (!try_lock(drain_lock(*queue))) continue;
    for (const Chunk* chunk = queue->head.load(std::memory_order_acquire); chunk != nullptr;
         chunk = chunk->next.load(std::memory_order_acquire)) {
      const uint32_t commands = chunk->count.load(std::memory_order_acquire);
      for (uint32_t at = chunk->first; at < commands; ++at)
        if (chunk->commands[at].kind != CommandKind::kDone)
          ++in_flight[static_cast<size_t>(table_of(chunk->commands[at].kind))];
    }
    unlock(drain_lock(*queue));
  }
  for (size_t table = 0; table < event::kFactTables; ++table)
    if (in_flight[table] != 0)
      tape::loss(static_cast<event::Table>(table), event::LossReason::kKilled, in_flight[table]);
  report_filtered();
  if (tape::CommandCounts* const known = g_wiped->progress.load(std::memory_order_acquire))
    known->ended.store(1, std::memory_order_release);
}

// A command that is to become a row and has been counted as issued.
void append(Queue& queue, const Command& command) {
  if (__builtin_expect(g_wiped->thread_started.load(std::memory_order_relaxed) == 0, 0) && ours()) start_thread();
  bool poll, scan;
  {
    const Guard guard(append_lock(queue));
    Chunk* chunk = queue.tail;
    if (chunk == nullptr || chunk->count.load(std::memory_order_relaxed) == Chunk::kCommands) {
      Chunk* const fresh = new_chunk();
      if (fresh == nullptr) {
        tape::count_dropped(table_of(command.kind));
        next<&D::clReleaseEvent>(command.event);
        return;
      }
      queue.tail = fresh;
      if (chunk == nullptr)
        queue.head.store(fresh, std::memory_order_release);
      else
        chunk->next.store(fresh, std::memory_order_release);
      chunk = fresh;
    }
    const uint32_t at = chunk->count.load(std::memory_order_relaxed);
    chunk->commands[at] = command;
    chunk->count.store(at + 1, std::memory_order_release);
    queue.appended.store(queue.appended.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    poll = ++queue.since_poll >= kBatch;
    scan = ++queue.since_scan >= kScanAfter;
    if (poll) queue.since_poll = 0;
    if (scan) queue.since_scan = 0;
  }
  if (__builtin_expect(poll, 0)) collect(queue, scan, scan ? UINT32_MAX : 2 * kBatch);
}

}  // namespace

void watch_exit() {
  if (g_exit_watched.exchange(true, std::memory_order_relaxed)) return;
  atexit(at_exit);
}

uint16_t keep_arguments(event::ArgumentsOf of, uint32_t value, const void* words, uint32_t count) {
  const Guard guard(g_wiped->chunks);
  if (g_kept == nullptr) g_kept = static_cast<KeptArguments*>(map_pages(kMostKept * sizeof(KeptArguments)));
  if (g_kept == nullptr || count > sizeof KeptArguments::words / sizeof(uint64_t)) return 0;
  uint32_t number = g_kept_free;
  if (number != 0)
    g_kept_free = g_kept[number - 1].next;
  else if (g_kept_used < kMostKept)
    number = ++g_kept_used;
  else
    return 0;
  KeptArguments& kept = g_kept[number - 1];
  kept.of = of;
  kept.value = value;
  kept.count = count;
  memcpy(kept.words, words, count * sizeof(uint64_t));
  return static_cast<uint16_t>(number);
}

WideShape* take_wide() {
  const Guard guard(g_wiped->chunks);
  return g_wide_slab.take();
}

uint32_t count_launch() {
  tape::PoolHeader* const pool = tape::pool();
  const uint64_t next = pool->launches.fetch_add(1, std::memory_order_relaxed) + 2;
  // Before the launch that a trigger counts, so that this launch is on the right side of it.
  if (__builtin_expect(next == pool->start_launch, 0)) {
    pool->trigger_start.fetch_add(1, std::memory_order_relaxed);
    pool->enabled.store(pool->sources, std::memory_order_relaxed);
  }
  if (__builtin_expect(next == pool->stop_launch, 0)) {
    pool->trigger_stop.fetch_add(1, std::memory_order_relaxed);
    pool->enabled.store(0, std::memory_order_relaxed);
  }
  return g_wiped->next_ordinal.fetch_add(1, std::memory_order_relaxed);
}

void count_filtered() {
  g_wiped->filtered.fetch_add(1, std::memory_order_relaxed);
  progress().filtered.fetch_add(1, std::memory_order_relaxed);
}

// Commands

void add(Queue& queue, const Command& command) {
  count_issued(command.kind);
  append(queue, command);
}

void add_complete(Queue& queue, const Command& command) {
  count_issued(command.kind);
  Command copy = command;
  if (!finish(queue, copy, true)) append(queue, copy);
}

void collect(Queue& queue, bool all, uint32_t limit) {
  if (!ours() || !try_lock(drain_lock(queue))) return;
  drain(queue, all ? kAll : 0, limit, true);
  unlock(drain_lock(queue));
}

namespace {

// The drain lock, unless nothing is left to collect, or who holds it gets no further (a thread that hangs in the
// runtime, or waits there for this one).
bool lock_to_collect(Queue& queue) {
  constexpr uint32_t kMost = 20'000;
  uint64_t seen = queue.collected.load(std::memory_order_acquire);
  for (uint32_t tries = 0; !idle(queue); ++tries) {
    if (try_lock(drain_lock(queue))) return true;
    if (tries < 100) {
      __builtin_ia32_pause();
      continue;
    }
    sched_yield();
    const uint64_t now = queue.collected.load(std::memory_order_acquire);
    if (now != seen) tries = 100;
    seen = now;
    if (tries == kMost) return false;
  }
  return false;
}

void collect_waited(Queue& queue) {
  if (idle(queue) || !ours() || !lock_to_collect(queue)) return;
  // No more than were on their way: other threads go on enqueueing.
  const uint64_t left = pending(queue);
  const bool ordered = (queue.properties.load(std::memory_order_relaxed) & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
  if (left != 0) drain(queue, ordered ? kPatience : kAll, left, true);
  unlock(drain_lock(queue));
}

void collect_context(uint64_t context) {
  const uint32_t count = g_list_size.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    Queue* const queue = g_list[i].load(std::memory_order_acquire);
    if (queue != nullptr && queue->in_use.load(std::memory_order_acquire) && queue->context == context)
      collect_waited(*queue);
  }
}

}  // namespace

void collect_after_wait(Queue& queue) {
  // Its commands may have waited for those of other queues, which are complete then, too.
  if (queue.joins.load(std::memory_order_relaxed))
    collect_context(queue.context);
  else
    collect_waited(queue);
}

void collect_all_queues() {
  if (!lock_or_give_up(g_wiped->pass)) return;
  pass(true);
  unlock(g_wiped->pass);
}

bool holds(cl_event event) {
  ours();
  const uint32_t count = g_list_size.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    Queue* const queue = g_list[i].load(std::memory_order_acquire);
    if (queue == nullptr || !queue->in_use.load(std::memory_order_acquire) || idle(*queue)) continue;
    if (!lock_or_give_up(drain_lock(*queue))) continue;
    bool found = false;
    for (const Chunk* chunk = queue->head.load(std::memory_order_acquire); chunk != nullptr && !found;
         chunk = chunk->next.load(std::memory_order_acquire)) {
      const uint32_t commands = chunk->count.load(std::memory_order_acquire);
      for (uint32_t at = chunk->first; at < commands && !found; ++at)
        found = chunk->commands[at].kind != CommandKind::kDone && chunk->commands[at].event == event;
    }
    unlock(drain_lock(*queue));
    if (found) return true;
  }
  return false;
}

// Queues

void define_queue(Queue& queue, const Command* first) {
  const Guard guard(g_wiped->definitions);
  if (queue.defined.load(std::memory_order_acquire)) return;
  const Vendor* const vendor = queue.device->vendor;
  if (vendor != nullptr && vendor->clock_known)
    queue.clock = vendor->clock;
  else if (first != nullptr)
    queue.clock = measure_clock(*first);
  else
    queue.clock = event::DeviceClock::kPaired;
  queue.ns_per_tick = ns_per_tick(sample_clocks());
  event::QueueRecord record{};
  record.header = {event::RecordKind::kQueue, 0, sizeof record, queue.number};
  record.device = queue.device->number;
  record.category = tape::intern("OpenCL");
  record.clock = static_cast<uint32_t>(queue.clock);
  record.native = reinterpret_cast<uint64_t>(queue.handle);
  record.context = queue.context;
  record.properties = queue.properties.load(std::memory_order_relaxed);
  tape::define(&record.header);
  tape::define_property(event::Table::kTrack, queue.number, "out of order",
                        (record.properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0 ? "yes" : "no");
  tape::define_property(event::Table::kTrack, queue.number, "profiling asked by the program",
                        (record.properties & CL_QUEUE_PROFILING_ENABLE) != 0 ? "yes" : "no");
  queue.defined.store(true, std::memory_order_release);
}

Queue* queue_of(cl_command_queue handle) {
  auto* const queue = static_cast<Queue*>(g_queues.find(handle));
  return queue != nullptr && queue->forced && queue != &g_given_up ? queue : nullptr;
}

Queue* queue_created(cl_command_queue handle, cl_context context, cl_device_id device_handle, uint64_t asked,
                     bool forced, const cl_queue_properties* array) {
  Device* const device = device_of(device_handle);
  if (device == nullptr) return nullptr;
  watch_exit();
  Queue* queue = nullptr;
  {
    const Guard guard(g_wiped->objects);
    if (g_list == nullptr)
      g_list = static_cast<std::atomic<Queue*>*>(map_pages(kMaxQueues * sizeof(std::atomic<Queue*>)));
    if (g_list == nullptr) return nullptr;
    // A retired queue's place (its lists are empty), else a new one.
    const uint32_t count = g_list_size.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < count && queue == nullptr; ++i) {
      Queue* const old = g_list[i].load(std::memory_order_relaxed);
      if (!old->in_use.load(std::memory_order_acquire)) queue = old;
    }
    if (queue == nullptr) {
      if (count == kMaxQueues || (queue = g_queue_slab.take()) == nullptr) return nullptr;
      queue->index = count;
      g_list[count].store(queue, std::memory_order_release);
      g_list_size.store(count + 1, std::memory_order_release);
    }
    queue->references.store(1, std::memory_order_relaxed);
    queue->number = tape::next_queue();
    queue->handle = handle;
    queue->device = device;
    queue->context = reinterpret_cast<uint64_t>(context);
    queue->properties.store(asked, std::memory_order_relaxed);
    queue->forced = forced;
    queue->joins.store(false, std::memory_order_relaxed);
    queue->defined.store(false, std::memory_order_relaxed);
    queue->array_words = 0;
    queue->since_poll = queue->since_scan = 0;
    queue->best_pair_uncertainty = UINT64_MAX;
    if (array != nullptr) {
      uint32_t words = 0;
      while (array[words] != 0 && words + 2 < sizeof queue->array / sizeof *queue->array) words += 2;
      queue->array_words = static_cast<uint8_t>(words + 1);
      memcpy(queue->array, array, (words + 1) * sizeof *array);
      queue->array[words] = 0;
    }
    queue->in_use.store(true, std::memory_order_release);
    g_queues.set(handle, queue);
  }
  if (device->vendor == nullptr || device->vendor->clock_known) define_queue(*queue, nullptr);
  return queue;
}

void queue_retained(cl_command_queue handle) {
  if (auto* const queue = static_cast<Queue*>(g_queues.find(handle)))
    queue->references.fetch_add(1, std::memory_order_relaxed);
}

void queue_released(cl_command_queue handle) {
  auto* const queue = static_cast<Queue*>(g_queues.find(handle));
  if (queue == nullptr || queue == &g_given_up) return;
  if (queue->references.load(std::memory_order_relaxed) == 1) collect(*queue, true, UINT32_MAX);
  const Guard guard(g_wiped->objects);
  if (queue->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (hides_profiling(queue))
    g_queues.set(handle, &g_given_up);
  else
    g_queues.erase(handle);
  if (!try_lock(drain_lock(*queue))) return;  // the flush thread is at it and will retire it
  if (idle(*queue)) retire(*queue);
  unlock(drain_lock(*queue));
}

namespace {

// Hooks

bool wants_profiling() {
  return (tape::pool()->sources & (bit::kDispatch | bit::kCopy | bit::kSync)) != 0;
}

cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device, cl_command_queue_properties asked,
                                          cl_int* code) {
  if (only_forward()) return next<&D::clCreateCommandQueue>(context, device, asked, code);
  cl_int own_code = CL_SUCCESS;
  if (code == nullptr) code = &own_code;
  cl_command_queue queue = nullptr;
  bool forced = wants_profiling();
  {
    Times times;
    const uint64_t bits = enabled_bits();
    const auto call = [&](cl_command_queue_properties properties) {
      const Inner inner;
      return next<&D::clCreateCommandQueue>(context, device, properties, code);
    };
    Span span(bits);
    queue = call(forced ? asked | CL_QUEUE_PROFILING_ENABLE : asked);
    if (queue == nullptr && forced && (asked & CL_QUEUE_PROFILING_ENABLE) == 0) {
      forced = false;  // as the program asked: its error, or its queue without profiling
      queue = call(asked);
    }
    span.arguments(SlotOf<&D::clCreateCommandQueue>::kNumber, context, device, asked, code);
    span.end(SlotOf<&D::clCreateCommandQueue>::kNumber, *code);
  }
  if (queue != nullptr) queue_created(queue, context, device, asked, forced, nullptr);
  return queue;
}

cl_command_queue CL_API_CALL next_create(cl_context context, cl_device_id device, const cl_queue_properties* asked,
                                         cl_int* code) {
  return next<&D::clCreateCommandQueueWithProperties>(context, device, asked, code);
}
cl_command_queue CL_API_CALL create_queue_with_properties(cl_context context, cl_device_id device,
                                                          const cl_queue_properties* asked, cl_int* code) {
  return create_queue_by(next_create, SlotOf<&D::clCreateCommandQueueWithProperties>::kNumber, context, device, asked,
                         code);
}

cl_int CL_API_CALL set_queue_property(cl_command_queue handle, cl_command_queue_properties which, cl_bool enable,
                                      cl_command_queue_properties* old) {
  Queue* const queue = only_forward() ? nullptr : static_cast<Queue*>(g_queues.find(handle));
  if (queue == nullptr || !queue->forced) return traced<&D::clSetCommandQueueProperty>(handle, which, enable, old);
  const uint64_t before = queue->properties.load(std::memory_order_relaxed);
  const cl_command_queue_properties forwarded =
      enable == CL_FALSE ? which & ~static_cast<uint64_t>(CL_QUEUE_PROFILING_ENABLE) : which;
  const cl_int result = traced<&D::clSetCommandQueueProperty>(handle, forwarded, enable, old);
  if (result == CL_SUCCESS) {
    queue->properties.store(enable != CL_FALSE ? before | which : before & ~which, std::memory_order_relaxed);
    if (old != nullptr && (before & CL_QUEUE_PROFILING_ENABLE) == 0)
      *old &= ~static_cast<uint64_t>(CL_QUEUE_PROFILING_ENABLE);
  }
  return result;
}

cl_int CL_API_CALL retain_queue(cl_command_queue handle) {
  const cl_int result = traced<&D::clRetainCommandQueue>(handle);
  if (result == CL_SUCCESS && !only_forward()) queue_retained(handle);
  return result;
}

cl_int CL_API_CALL release_queue(cl_command_queue handle) {
  if (!only_forward()) queue_released(handle);
  return traced<&D::clReleaseCommandQueue>(handle);
}

cl_int CL_API_CALL release_context(cl_context context) {
  if (!only_forward()) collect_all_queues();
  return traced<&D::clReleaseContext>(context);
}

// Answers as clGet*Info does: `bytes` of `answer`.
cl_int answer_info(const void* answer, size_t bytes, size_t size, void* value, size_t* size_ret) {
  if (value != nullptr) {
    if (size < bytes) return CL_INVALID_VALUE;
    if (bytes != 0) memcpy(value, answer, bytes);
  }
  if (size_ret != nullptr) *size_ret = bytes;
  return CL_SUCCESS;
}

cl_int CL_API_CALL get_queue_info(cl_command_queue handle, cl_command_queue_info what, size_t size, void* value,
                                  size_t* size_ret) {
  Queue* const queue = only_forward() ? nullptr : static_cast<Queue*>(g_queues.find(handle));
  if (queue == nullptr || !queue->forced) return traced<&D::clGetCommandQueueInfo>(handle, what, size, value, size_ret);
  if (what == CL_QUEUE_REFERENCE_COUNT) collect_all_queues();
  if (what == CL_QUEUE_PROPERTIES_ARRAY) {
    // The list as the program gave it. Whether the runtime knows the question at all, it says itself.
    const uint64_t bits = enabled_bits();
    Span span(bits);
    size_t real = 0;
    cl_int result = next<&D::clGetCommandQueueInfo>(handle, what, size_t{0}, nullptr, &real);
    if (result == CL_SUCCESS)
      result = answer_info(queue->array, queue->array_words * sizeof *queue->array, size, value, size_ret);
    span.arguments(SlotOf<&D::clGetCommandQueueInfo>::kNumber, handle, what, size, value, size_ret);
    span.end(SlotOf<&D::clGetCommandQueueInfo>::kNumber, result);
    return result;
  }
  const cl_int result = traced<&D::clGetCommandQueueInfo>(handle, what, size, value, size_ret);
  if (what == CL_QUEUE_PROPERTIES && result == CL_SUCCESS && value != nullptr &&
      size >= sizeof(cl_command_queue_properties) &&
      (queue->properties.load(std::memory_order_relaxed) & CL_QUEUE_PROFILING_ENABLE) == 0) {
    cl_command_queue_properties properties;
    memcpy(&properties, value, sizeof properties);
    properties &= ~static_cast<uint64_t>(CL_QUEUE_PROFILING_ENABLE);
    memcpy(value, &properties, sizeof properties);
  }
  return result;
}

Queue* queue_of_event(cl_event event) {
  cl_command_queue handle = nullptr;
  if (event == nullptr || next<&D::clGetEventInfo>(event, CL_EVENT_COMMAND_QUEUE, sizeof handle,
                                                   static_cast<void*>(&handle), nullptr) != CL_SUCCESS)
    return nullptr;
  return static_cast<Queue*>(g_queues.find(handle));
}

cl_int CL_API_CALL get_profiling(cl_event event, cl_profiling_info what, size_t size, void* value, size_t* size_ret) {
  if (only_forward()) return next<&D::clGetEventProfilingInfo>(event, what, size, value, size_ret);
  const Queue* const queue = queue_of_event(event);
  if (hides_profiling(queue)) {
    Span span(enabled_bits());
    span.arguments(SlotOf<&D::clGetEventProfilingInfo>::kNumber, event, what, size, value, size_ret);
    span.end(SlotOf<&D::clGetEventProfilingInfo>::kNumber, CL_PROFILING_INFO_NOT_AVAILABLE);
    return CL_PROFILING_INFO_NOT_AVAILABLE;
  }
  return traced<&D::clGetEventProfilingInfo>(event, what, size, value, size_ret);
}

void collect_event(cl_event event);

cl_int CL_API_CALL get_event_info(cl_event event, cl_event_info what, size_t size, void* value, size_t* size_ret) {
  const bool count = what == CL_EVENT_REFERENCE_COUNT && !only_forward();
  if (count) collect_all_queues();
  const cl_int result = traced<&D::clGetEventInfo>(event, what, size, value, size_ret);
  if (what == CL_EVENT_COMMAND_EXECUTION_STATUS && result == CL_SUCCESS && value != nullptr && size >= sizeof(cl_int) &&
      !only_forward()) {
    cl_int status;
    memcpy(&status, value, sizeof status);
    if (status <= CL_COMPLETE) collect_event(event);  // a program that asks until it is complete waits, too
  }
  if (count && result == CL_SUCCESS && value != nullptr && size >= sizeof(cl_uint) && holds(event)) {
    cl_uint references;
    memcpy(&references, value, sizeof references);
    --references;
    memcpy(value, &references, sizeof references);
  }
  return result;
}

// After the program has learned that the event is complete.
void collect_event(cl_event event) {
  Queue* const queue = queue_of_event(event);
  if (queue != nullptr && queue != &g_given_up) collect_after_wait(*queue);
}

// A callback of the program for a complete event: what has led to the event is collected first.
struct EventCallback {
  void(CL_CALLBACK* function)(cl_event, cl_int, void*);
  void* data;
};
constinit Slab<EventCallback> g_callback_slab;

void CL_CALLBACK event_complete(cl_event event, cl_int status, void* data) {
  auto* const kept = static_cast<EventCallback*>(data);
  const EventCallback callback = *kept;
  {
    const Guard guard(g_wiped->objects);
    g_callback_slab.give(kept);
  }
  if (!only_forward()) collect_event(event);
  callback.function(event, status, callback.data);
}

cl_int CL_API_CALL set_event_callback(cl_event event, cl_int status,
                                      void(CL_CALLBACK* function)(cl_event, cl_int, void*), void* data) {
  EventCallback* kept = nullptr;
  if (status == CL_COMPLETE && function != nullptr && !only_forward()) {
    const Guard guard(g_wiped->objects);
    kept = g_callback_slab.take();
  }
  if (kept == nullptr) return traced<&D::clSetEventCallback>(event, status, function, data);
  *kept = {function, data};
  const cl_int result = traced<&D::clSetEventCallback>(event, status, &event_complete, static_cast<void*>(kept));
  if (result != CL_SUCCESS) {
    const Guard guard(g_wiped->objects);
    g_callback_slab.give(kept);
  }
  return result;
}

void write_wait(const Times& times, event::SyncKind kind, uint32_t queue) {
  if (times.end == 0 || (enabled_bits() & bit::kSync) == 0) return;
  if (auto* const record = tape::begin<event::SyncRecord>(event::RecordKind::kSync, event::Table::kSync,
                                                          static_cast<uint32_t>(kind), event::kTimesAreHost)) {
    record->correlation = times.correlation;
    record->start = times.start;
    record->end = times.end;
    record->queue = queue;
    record->reserved = 0;
    tape::commit();
  }
}

cl_int CL_API_CALL finish_queue(cl_command_queue handle) {
  Times times;
  if (!only_forward()) {
    const auto* const queue = static_cast<Queue*>(g_queues.find(handle));
    if (queue != nullptr && pending(*queue) >= kManyWaited) kick_thread();
  }
  const cl_int result = traced<&D::clFinish>(times, handle);
  if (only_forward()) return result;
  if (auto* const queue = static_cast<Queue*>(g_queues.find(handle)); queue != nullptr && queue != &g_given_up) {
    collect_after_wait(*queue);
    if (times.end != 0 && (enabled_bits() & bit::kSync) != 0) {
      if (!queue->defined.load(std::memory_order_acquire)) define_queue(*queue, nullptr);
      write_wait(times, event::SyncKind::kQueue, queue->number);
    }
  }
  return result;
}

cl_int CL_API_CALL wait_for_events(cl_uint count, const cl_event* events) {
  Times times;
  const cl_int result = traced<&D::clWaitForEvents>(times, count, events);
  if (only_forward()) return result;
  write_wait(times, event::SyncKind::kEvent, 0);
  // Of a few events the queues, of many all that the context has. They are complete, or have failed.
  constexpr cl_uint kFew = 8;
  const Queue* last = nullptr;
  for (cl_uint i = 0; events != nullptr && i < count && result != CL_INVALID_EVENT; ++i) {
    Queue* const queue = queue_of_event(events[i]);
    if (queue == nullptr || queue == last || queue == &g_given_up) continue;
    if (count > kFew) {
      collect_context(queue->context);
      break;
    }
    collect_after_wait(*queue);
    last = queue;
  }
  return result;
}

}  // namespace

cl_command_queue create_queue_by(CreateQueue forward, uint16_t function, cl_context context, cl_device_id device,
                                 const cl_queue_properties* asked, cl_int* code) {
  if (only_forward()) return forward(context, device, asked, code);
  cl_int own_code = CL_SUCCESS;
  if (code == nullptr) code = &own_code;
  // The same list with profiling added; not for queues on the device, and not for a list longer than any known.
  cl_queue_properties list[32];
  uint32_t words = 0;
  uint64_t properties = 0;
  bool found = false, fits = true;
  for (; asked != nullptr && asked[words] != 0; words += 2) {
    if (words + 5 > sizeof list / sizeof *list) {
      fits = false;
      break;
    }
    list[words] = asked[words];
    list[words + 1] = asked[words + 1];
    if (asked[words] == CL_QUEUE_PROPERTIES) {
      properties = asked[words + 1];
      list[words + 1] |= CL_QUEUE_PROFILING_ENABLE;
      found = true;
    }
  }
  bool forced = wants_profiling() && fits && (properties & CL_QUEUE_ON_DEVICE) == 0;
  if (fits && !found) {
    list[words++] = CL_QUEUE_PROPERTIES;
    list[words++] = CL_QUEUE_PROFILING_ENABLE;
  }
  if (fits) list[words] = 0;
  cl_command_queue queue = nullptr;
  {
    const uint64_t bits = enabled_bits();
    const auto call = [&](const cl_queue_properties* with) {
      const Inner inner;
      return forward(context, device, with, code);
    };
    Span span(bits);
    queue = call(forced ? list : asked);
    if (queue == nullptr && forced && (properties & CL_QUEUE_PROFILING_ENABLE) == 0) {
      forced = false;
      queue = call(asked);
    }
    span.arguments(function, context, device, asked, code);
    span.end(function, *code);
  }
  if (queue != nullptr && (properties & CL_QUEUE_ON_DEVICE) == 0)
    queue_created(queue, context, device, properties, forced, asked);
  return queue;
}

void install_queues(cl_icd_dispatch& hooks) {
  g_first_tuple = sample_clocks();
  g_given_up.forced = true;
  hooks.clCreateCommandQueue = create_queue;
  hooks.clCreateCommandQueueWithProperties = create_queue_with_properties;
  hooks.clSetCommandQueueProperty = set_queue_property;
  hooks.clRetainCommandQueue = retain_queue;
  hooks.clReleaseCommandQueue = release_queue;
  hooks.clReleaseContext = release_context;
  hooks.clGetCommandQueueInfo = get_queue_info;
  hooks.clGetEventProfilingInfo = get_profiling;
  hooks.clGetEventInfo = get_event_info;
  hooks.clSetEventCallback = set_event_callback;
  hooks.clFinish = finish_queue;
  hooks.clWaitForEvents = wait_for_events;
}

}  // namespace tacho::capture::opencl
