// Queues and the collection of their commands (queues.h).
#include "capture/source/opencl/queues.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/own_thread.h"
#include "capture/source/opencl/objects/kept_arguments.h"
#include "tape/gate.h"

namespace tacho::capture::opencl {
namespace {

using D = cl_icd_dispatch;

// An enqueuing thread collects finished commands once this many are pending. Small enough to stay in the cache.
constexpr uint32_t kBatch = 48;
// After this many commands, scan the whole queue even if its oldest command is unfinished.
constexpr uint32_t kScanAfter = 2048;

// In an in-order queue, give up after this many unfinished commands; concurrent enqueuers may list them out of order.
constexpr uint32_t kPatience = 16;
// With this many commands in flight the flush thread collects while the program waits, so that little is left to do
// afterwards.
constexpr uint64_t kManyWaited = 512;

constexpr uint32_t kMaxQueues = 1 << 16;
constinit HandleMap g_queues;
constinit Slab<ClQueue> g_queue_slab;
constinit Slab<CommandChunk> g_chunk_slab;   // under g_wiped->chunks
constinit Slab<WideShape> g_wide_slab;       // under g_wiped->chunks
constinit Slab<Observation> g_observations;  // under g_wiped->chunks
constinit std::atomic<ClQueue*>* g_list = nullptr;
constinit std::atomic<uint32_t> g_list_size{0};
constinit std::atomic<bool> g_exit_watched{false};

std::atomic<uint32_t>& append_lock(const ClQueue& queue) {
  return g_wiped->append[queue.index % Wiped::kQueueLocks];
}
std::atomic<uint32_t>& drain_lock(const ClQueue& queue) {
  return g_wiped->drain[queue.index % Wiped::kQueueLocks];
}

CommandChunk* new_chunk() {
  const Guard guard(g_wiped->chunks);
  return g_chunk_slab.take();
}
void free_chunk(CommandChunk* chunk) {
  const Guard guard(g_wiped->chunks);
  g_chunk_slab.give(chunk);
}

// Stands in the map for queues that the program gave up.
constinit ClQueue g_given_up = {};  // forced is set at start

// True if this process image's commands are in the lists. A forked child starts with empty ones: its parent's commands
// are not its own.
bool ours() {
  if (__builtin_expect(g_wiped->alive.load(std::memory_order_acquire) != 0, 1)) return true;
  const Guard guard(g_wiped->objects);
  if (g_wiped->alive.load(std::memory_order_acquire) != 0) return true;
  const uint32_t count = g_list_size.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    ClQueue* const queue = g_list[i].load(std::memory_order_acquire);
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
event::DeviceClock measure_clock(const ClCommand& command) {
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
void pair_by_call(ClQueue& queue, const ClCommand& command, uint64_t queued) {
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
void fill_times(Record& record, const ClCommand& command, const DeviceTimes& times, uint32_t queue) {
  record.correlation = command.correlation;
  record.queued = times.queued;
  record.submit = times.submit;
  record.start = times.start;
  record.end = times.end;
  record.queue = queue;
}

void give(Observation* observation) {
  if (observation->users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const Guard guard(g_wiped->chunks);
  g_observations.give(observation);
}

void CL_CALLBACK command_began(cl_event, cl_int, void* data) {
  auto* const observation = static_cast<Observation*>(data);
  observation->began.store(host_ticks(), std::memory_order_release);
  give(observation);
}
void CL_CALLBACK command_ended(cl_event, cl_int, void* data) {
  auto* const observation = static_cast<Observation*>(data);
  observation->ended.store(host_ticks(), std::memory_order_release);
  give(observation);
}

void free_wide(ClCommand& command) {
  if (command.kind != CommandKind::kDispatchWide) return;
  const Guard guard(g_wiped->chunks);
  g_wide_slab.give(command.wide);
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

void write_command(ClQueue& queue, const ClCommand& command, const DeviceTimes& times) {
  using event::RecordKind, event::Table;
  if (__builtin_expect(command.arguments != 0, 0)) write_kept_arguments(command.arguments, command.correlation);
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

// As finish(), of a queue without profiling.
bool finish_observed(ClQueue& queue, ClCommand& command, bool release) {
  DeviceTimes times;
  if (Observation* const observation = command.observation; observation != nullptr) {
    times.end = observation->ended.load(std::memory_order_acquire);
    if (times.end == 0) return false;
    times.start = observation->began.load(std::memory_order_acquire);
    if (times.start == 0 || times.start > times.end) times.start = times.end;  // it failed, or the order is lost
    give(observation);
    command.observation = nullptr;
  }
  command.flags |= event::kTimesAreHost;
  if (!queue.defined.load(std::memory_order_acquire)) define_queue(queue, nullptr);
  write_command(queue, command, times);
  if (release) next<&D::clReleaseEvent>(command.event);
  free_wide(command);
  return true;
}

// Writes the command if it is complete. False: it is not. `release`: give its event back.
bool finish(ClQueue& queue, ClCommand& command, bool release) {
  DeviceTimes times;
  if (__builtin_expect(queue.observed, 0)) return finish_observed(queue, command, release);
  cl_ulong end = 0;
  // One question answers two: the time is not available before the command is complete. Not so where it always is.
  const ClVendor* const vendor = queue.device->vendor;
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
void drain(ClQueue& queue, uint32_t patience, uint64_t limit, bool release) {
  const Inner inner;  // giving an event back may run callbacks of the program, under our lock
  CommandChunk* previous = nullptr;
  CommandChunk* chunk = queue.head.load(std::memory_order_acquire);
  uint64_t written = 0;
  uint32_t waiting = 0;
  bool stop = false;
  while (chunk != nullptr && !stop) {
    const uint32_t count = chunk->count.load(std::memory_order_acquire);
    bool gap = false;
    for (uint32_t i = chunk->first; i < count && !stop; ++i) {
      ClCommand& command = chunk->commands[i];
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
    CommandChunk* const following = chunk->next.load(std::memory_order_acquire);
    if (chunk->first == CommandChunk::kCommands && following != nullptr) {
      (previous != nullptr ? previous->next : queue.head).store(following, std::memory_order_release);
      free_chunk(chunk);
    } else {
      previous = chunk;
    }
    chunk = following;
  }
}

uint64_t pending(const ClQueue& queue) {
  return queue.appended.load(std::memory_order_acquire) - queue.collected.load(std::memory_order_acquire);
}
bool idle(const ClQueue& queue) {
  return pending(queue) == 0;
}

// The flush thread

void report_filtered() {
  const uint64_t filtered = g_wiped->filtered.exchange(0, std::memory_order_relaxed);
  if (filtered != 0) tape::loss(event::Table::kDispatch, event::LossReason::kFiltered, filtered);
}

void retire(ClQueue& queue) {
  // Under the drain lock; the program has no reference and no command is in flight.
  queue.in_use.store(false, std::memory_order_release);
}

// One pass over all queues.
void pass(bool release) {
  ours();
  const uint32_t count = g_list_size.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    ClQueue* const queue = g_list[i].load(std::memory_order_acquire);
    if (queue == nullptr || !queue->in_use.load(std::memory_order_acquire)) continue;
    if (idle(*queue) && queue->references.load(std::memory_order_relaxed) != 0) continue;
    if (!try_lock(drain_lock(*queue))) continue;  // another thread drains it
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
  wiped->thread_started.store(0, std::memory_order_release);
  return nullptr;
}

void start_thread() {
  uint32_t expected = 0;
  if (!g_wiped->thread_started.compare_exchange_strong(expected, 1, std::memory_order_acq_rel)) return;
  if (!start_own_thread(flush_loop))
    tape::note(event::NoteSeverity::kWarning, "no thread could be started in the program to flush OpenCL commands once "
                                              "a second: a kill may lose more");
}

// At exit: takes completed commands. Asks nothing of the runtime that could wait, and gives no events back.
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

// Counts the commands that have not completed.
void count_in_flight() {
  if (!tape::attached() || g_wiped->alive.load(std::memory_order_acquire) == 0 || g_list == nullptr) return;
  g_wiped->stopping.store(1, std::memory_order_release);
  uint64_t in_flight[event::kFactTables] = {};
  const uint32_t count = g_list_size.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    ClQueue* const queue = g_list[i].load(std::memory_order_acquire);
    if (queue == nullptr || !queue->in_use.load(std::memory_order_acquire) || idle(*queue)) continue;
    if (!try_lock(drain_lock(*queue))) continue;
    for (const CommandChunk* chunk = queue->head.load(std::memory_order_acquire); chunk != nullptr;
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
// After everything else in the process.
__attribute__((destructor)) void count_at_end() {
  count_in_flight();
}

// A command that is to become a row and has been counted as issued.
void append(ClQueue& queue, const ClCommand& command) {
  if (__builtin_expect(g_wiped->thread_started.load(std::memory_order_relaxed) == 0, 0) && ours()) start_thread();
  bool poll, scan;
  {
    const Guard guard(append_lock(queue));
    CommandChunk* chunk = queue.tail;
    if (chunk == nullptr || chunk->count.load(std::memory_order_relaxed) == CommandChunk::kCommands) {
      CommandChunk* const fresh = new_chunk();
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

WideShape* take_wide() {
  const Guard guard(g_wiped->chunks);
  return g_wide_slab.take();
}

void before_first_launch() {
  tape::PoolHeader& pool = *tape::pool();
  if (pool.launches.load(std::memory_order_relaxed) != 0) return;
  if (pool.start_launch == 1) tape::set_gate(pool, tape::gate::kTrigger, true);
  if (pool.stop_launch == 1) tape::set_gate(pool, tape::gate::kTrigger, false);
}

uint32_t count_launch() {
  tape::PoolHeader& pool = *tape::pool();
  // Before the launch that a trigger counts, so that this launch is on the right side of it.
  const tape::LaunchTriggers triggers = tape::count_run_launch(pool, 1);
  if (__builtin_expect(triggers.starts, 0)) tape::set_gate(pool, tape::gate::kTrigger, true);
  if (__builtin_expect(triggers.stops, 0)) tape::set_gate(pool, tape::gate::kTrigger, false);
  return g_wiped->next_ordinal.fetch_add(1, std::memory_order_relaxed);
}

void count_filtered() {
  g_wiped->filtered.fetch_add(1, std::memory_order_relaxed);
  progress().filtered.fetch_add(1, std::memory_order_relaxed);
}

// Commands

void add(ClQueue& queue, const ClCommand& command) {
  count_issued(command.kind);
  append(queue, command);
}

void add_complete(ClQueue& queue, const ClCommand& command) {
  count_issued(command.kind);
  ClCommand copy = command;
  if (!finish(queue, copy, true)) append(queue, copy);
}

void collect(ClQueue& queue, bool all, uint32_t limit) {
  if (!ours() || !try_lock(drain_lock(queue))) return;
  drain(queue, all ? kAll : 0, limit, true);
  unlock(drain_lock(queue));
}

namespace {

// Takes the drain lock. False if there is nothing to collect or the holder is stuck (it hangs in the runtime, or waits
// there for this thread).
bool lock_to_collect(ClQueue& queue) {
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

void collect_waited(ClQueue& queue) {
  if (idle(queue) || !ours() || !lock_to_collect(queue)) return;
  // No more than are in flight now: other threads go on enqueueing.
  const uint64_t left = pending(queue);
  const bool ordered = (queue.properties.load(std::memory_order_relaxed) & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
  if (left != 0) drain(queue, ordered ? kPatience : kAll, left, true);
  unlock(drain_lock(queue));
}

}  // namespace

void collect_context(uint64_t context) {
  const uint32_t count = g_list_size.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) {
    ClQueue* const queue = g_list[i].load(std::memory_order_acquire);
    if (queue != nullptr && queue->in_use.load(std::memory_order_acquire) && queue->context == context)
      collect_waited(*queue);
  }
}

void prepare_wait(const ClQueue& queue) {
  if (pending(queue) >= kManyWaited) kick_thread();
}

void collect_after_wait(ClQueue& queue) {
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
    ClQueue* const queue = g_list[i].load(std::memory_order_acquire);
    if (queue == nullptr || !queue->in_use.load(std::memory_order_acquire) || idle(*queue)) continue;
    if (!lock_or_give_up(drain_lock(*queue))) continue;
    bool found = false;
    for (const CommandChunk* chunk = queue->head.load(std::memory_order_acquire); chunk != nullptr && !found;
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

void define_queue(ClQueue& queue, const ClCommand* first) {
  const Guard guard(g_wiped->definitions);
  if (queue.defined.load(std::memory_order_acquire)) return;
  const ClVendor* const vendor = queue.device->vendor;
  if (queue.observed)
    queue.clock = event::DeviceClock::kHost;
  else if (vendor != nullptr && vendor->clock_known)
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

bool hides_profiling(const ClQueue* queue) {
  if (queue == nullptr || !queue->forced ||
      (queue->properties.load(std::memory_order_relaxed) & CL_QUEUE_PROFILING_ENABLE) != 0)
    return false;
  return queue->device == nullptr || queue->device->vendor == nullptr || !queue->device->vendor->always_profiles;
}

namespace {
// Under g_adopting. A queue that the program made before tacho attached.
ClQueue* adopt(cl_command_queue handle) {
  const Inner inner;
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  cl_command_queue_properties properties = 0;
  cl_uint references = 0;
  const auto ask = [&](cl_command_queue_info what, auto& value) {
    return next<&D::clGetCommandQueueInfo>(handle, what, sizeof value, static_cast<void*>(&value), nullptr) ==
           CL_SUCCESS;
  };
  if (!ask(CL_QUEUE_CONTEXT, context) || !ask(CL_QUEUE_DEVICE, device) || !ask(CL_QUEUE_PROPERTIES, properties) ||
      (properties & CL_QUEUE_ON_DEVICE) != 0)
    return nullptr;
  ask(CL_QUEUE_REFERENCE_COUNT, references);
  if (device_number_of(context) == 0) context_created(context);
  const bool profiles = (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
  ClDevice* const known = device_of(device);
  const bool always = known != nullptr && known->vendor != nullptr && known->vendor->always_profiles;
  ClQueue* const queue = queue_created(handle, context, device, properties, profiles || always, nullptr);
  if (queue == nullptr) return nullptr;
  queue->adopted = true;
  queue->observed = !profiles && !always;
  queue->references.store(references > 1 ? references : 1, std::memory_order_relaxed);
  if (queue->observed)
    tape::define_property(event::Table::kTrack, queue->number, "times",
                          "by the host: the program made this queue without profiling, before tacho attached");
  return queue;
}
constinit std::atomic<uint32_t> g_adopting{0};
}  // namespace

ClQueue* queue_of(cl_command_queue handle) {
  auto* queue = static_cast<ClQueue*>(g_queues.find(handle));
  if (__builtin_expect(queue == nullptr, 0) && handle != nullptr && tape::attached_late()) {
    const Guard guard(g_adopting);
    queue = static_cast<ClQueue*>(g_queues.find(handle));
    if (queue == nullptr) queue = adopt(handle);
  }
  return queue != nullptr && (queue->forced || queue->observed) && queue != &g_given_up ? queue : nullptr;
}

Observation* observe(cl_event event) {
  Observation* observation = nullptr;
  {
    const Guard guard(g_wiped->chunks);
    observation = g_observations.take();
  }
  if (observation == nullptr) return nullptr;
  observation->users.store(3, std::memory_order_release);
  const bool begins = next<&D::clSetEventCallback>(event, cl_int{CL_RUNNING}, &command_began,
                                                   static_cast<void*>(observation)) == CL_SUCCESS;
  const bool ends = next<&D::clSetEventCallback>(event, cl_int{CL_COMPLETE}, &command_ended,
                                                 static_cast<void*>(observation)) == CL_SUCCESS;
  if (!begins) give(observation);
  if (ends) return observation;
  give(observation);
  give(observation);
  return nullptr;
}

ClQueue* queue_created(cl_command_queue handle, cl_context context, cl_device_id device_handle, uint64_t asked,
                       bool forced, const cl_queue_properties* array) {
  ClDevice* const device = device_of(device_handle);
  if (device == nullptr) return nullptr;
  watch_exit();
  ClQueue* queue = nullptr;
  {
    const Guard guard(g_wiped->objects);
    if (g_list == nullptr)
      g_list = static_cast<std::atomic<ClQueue*>*>(map_pages(kMaxQueues * sizeof(std::atomic<ClQueue*>)));
    if (g_list == nullptr) return nullptr;
    // A retired queue's place (its lists are empty), else a new one.
    const uint32_t count = g_list_size.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < count && queue == nullptr; ++i) {
      ClQueue* const old = g_list[i].load(std::memory_order_relaxed);
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
    queue->adopted = queue->observed = false;
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
  if (forced && (device->vendor == nullptr || device->vendor->clock_known)) define_queue(*queue, nullptr);
  return queue;
}

void queue_retained(cl_command_queue handle) {
  if (auto* const queue = static_cast<ClQueue*>(g_queues.find(handle)))
    queue->references.fetch_add(1, std::memory_order_relaxed);
}

void queue_released(cl_command_queue handle) {
  auto* const queue = static_cast<ClQueue*>(g_queues.find(handle));
  if (queue == nullptr || queue == &g_given_up) return;
  if (queue->references.load(std::memory_order_relaxed) == 1) collect(*queue, true, UINT32_MAX);
  const Guard guard(g_wiped->objects);
  if (queue->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (hides_profiling(queue))
    g_queues.set(handle, &g_given_up);
  else
    g_queues.erase(handle);
  if (!try_lock(drain_lock(*queue))) return;  // the flush thread drains it and will retire it
  if (idle(*queue)) retire(*queue);
  unlock(drain_lock(*queue));
}

ClQueue* known_queue(cl_command_queue handle) {
  return static_cast<ClQueue*>(g_queues.find(handle));
}

bool given_up(const ClQueue& queue) {
  return &queue == &g_given_up;
}

void forget_queues() {
  const Guard guard(g_wiped->objects);
  g_queues.clear();
  const uint32_t count = g_list_size.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) g_list[i].load(std::memory_order_relaxed)->in_use.store(false);
}

void leave_queues() {
  constexpr int64_t kPatience = 1'000'000'000;  // ns
  Wiped* const wiped = g_wiped;
  const int64_t begin = raw_now();
  const auto wait_while = [&](auto needed) {
    while (needed() && raw_now() - begin < kPatience) usleep(1000);
  };
  wiped->stopping.store(1, std::memory_order_release);
  kick_thread();
  wait_while([&] { return wiped->thread_started.load(std::memory_order_acquire) != 0; });
  const uint32_t count = g_list_size.load(std::memory_order_acquire);
  wait_while([&] {
    collect_all_queues();
    for (uint32_t i = 0; i < count; ++i) {
      const ClQueue* const queue = g_list[i].load(std::memory_order_acquire);
      if (queue->in_use.load(std::memory_order_acquire) && !idle(*queue)) return true;
    }
    return false;
  });
  count_in_flight();
  // What is left belongs to the program alone again.
  for (uint32_t i = 0; i < count; ++i) {
    ClQueue& queue = *g_list[i].load(std::memory_order_acquire);
    if (idle(queue) || !lock_or_give_up(drain_lock(queue))) continue;
    for (CommandChunk* chunk = queue.head.load(std::memory_order_acquire); chunk != nullptr;
         chunk = chunk->next.load(std::memory_order_acquire))
      for (uint32_t at = chunk->first; at < chunk->count.load(std::memory_order_acquire); ++at) {
        ClCommand& command = chunk->commands[at];
        if (command.kind == CommandKind::kDone) continue;
        if (command.observation != nullptr) give(command.observation);
        next<&D::clReleaseEvent>(command.event);
        free_wide(command);
        command.kind = CommandKind::kDone;
        queue.collected.store(queue.collected.load(std::memory_order_relaxed) + 1, std::memory_order_release);
      }
    unlock(drain_lock(queue));
  }
}

void start_queues() {
  g_first_tuple = sample_clocks();
  g_given_up.forced = true;
}

}  // namespace tacho::capture::opencl
