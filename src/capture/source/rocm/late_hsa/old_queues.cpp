// Queues from before tacho came (old_queues.h).
//
//   doorbell rung with index n      the packets up to n are read from the queue's memory, before the ring is passed on
//   dispatch with a signal          waits in a table by signal, until the signal says that it has completed
//   signal set anew or destroyed    the times are read first, for nothing else tells when they are gone
#include "capture/source/rocm/late_hsa/old_queues.h"

#include <stdio.h>
#include <string.h>

#include <atomic>

#include "capture/room/lock.h"
#include "capture/room/pages.h"
#include "capture/source/rocm/dispatch.h"
#include "capture/source/rocm/rocm.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

namespace sig = hsa::signature;

// Queues

struct OldQueue {
  std::atomic<hsa::Queue*> queue;  // nullptr = free
  LockWord lock;
  uint64_t read, rung;  // packets before `read` have been read; up to `rung` there are some
  const HsaDevice* device;
  const hsa::Queue* last;  // whose place it was last, in this stay of tacho's
  uint32_t number, hardware;
  bool was_profiled;  // by the program
};
constexpr uint32_t kMostOldQueues = 256;
constinit OldQueue g_old[kMostOldQueues] = {};
constinit std::atomic<uint32_t> g_old_end{0};
constinit LockWord g_old_lock{0};
constinit std::atomic<bool> g_open{false};  // dispatches are taken up
// Of this stay.
constinit std::atomic<uint64_t> g_queues_met{0}, g_timed{0}, g_untimed{0}, g_unread{0};
constinit std::atomic<bool> g_told_unseen{false};

// Dispatches that wait for their times, by their signal

struct Waiting {
  Waiting* next;
  hsa::Signal signal;
  const HsaDevice* device;
  uint64_t other_end;  // an end in the signal that is not this dispatch's; the GPU's ticks
  bool shared;         // another dispatch had the signal and had not completed: nobody knows whose the times will be
  HsaDispatch dispatch;
};
struct Bucket {
  LockWord lock;
  Waiting* first;
};
constexpr uint32_t kBuckets = 1 << 12;
constinit Bucket g_buckets[kBuckets] = {};
constinit std::atomic<uint64_t> g_waiting{0};
constinit Waiting* g_free = nullptr;
constinit LockWord g_free_lock{0};
constexpr uint32_t kAtOnce = 256;

// The end of the last work that is known to have used a signal. Of several signals with the same place, nothing is
// known.
struct LastUse {
  hsa::Signal signal;  // 0 = none yet
  uint64_t end;        // the GPU's ticks
  bool several;
};
constinit LastUse g_last[kBuckets] = {};  // under the bucket's lock
constinit uint64_t g_begin = 0;           // of the stay, by HSA's clock

uint32_t place_of(hsa::Signal signal) {
  return static_cast<uint32_t>(signal * 0x9e3779b97f4a7c15ull >> 52);
}

uint64_t clock_now() {
  uint64_t ticks = 0;
  call<sig::SystemInfo>(g_runtime.core.hsa_system_get_info, hsa::kSystemTimestamp, &ticks);
  return ticks;
}

Waiting* take_waiting() {
  const Guard guard(g_free_lock);
  if (g_free == nullptr) {
    auto* const fresh = static_cast<Waiting*>(map_pages(kAtOnce * sizeof(Waiting)));
    for (uint32_t at = 0; fresh != nullptr && at < kAtOnce; ++at) {
      fresh[at].next = g_free;
      g_free = &fresh[at];
    }
  }
  Waiting* const waiting = g_free;
  if (waiting != nullptr) g_free = waiting->next;
  return waiting;
}
void give_back(Waiting* waiting) {
  const Guard guard(g_free_lock);
  waiting->next = g_free;
  g_free = waiting;
}

void lose(uint64_t count) {
  g_untimed.fetch_add(count, std::memory_order_relaxed);
  tape::loss(event::Table::kDispatch, event::LossReason::kUnmatched, count);
}

uint64_t end_in(hsa::Signal signal) {
  return __atomic_load_n(&reinterpret_cast<const hsa::SignalMemory*>(signal)->end, __ATOMIC_ACQUIRE);
}
bool has_completed(hsa::Signal signal) {
  return call<sig::SignalLoad>(g_runtime.core.hsa_signal_load_scacquire, signal) <= 0;
}

// With the bucket's lock held.
void remember_use(hsa::Signal signal, uint64_t end) {
  LastUse& last = g_last[place_of(signal)];
  if (last.signal != 0 && last.signal != signal) last.several = true;
  last.signal = signal;
  last.end = end;
}

// Writes the record of a dispatch that has completed, with the bucket's lock held. False when its signal does not have
// its times.
bool write_times(const Waiting& waiting) {
  hsa::ProfilingTime time{};
  const uint64_t end = end_in(waiting.signal);
  if (waiting.shared || end == 0 || end == waiting.other_end ||
      call<sig::DispatchTime>(g_runtime.amd.hsa_amd_profiling_get_dispatch_time, waiting.device->agent, waiting.signal,
                              &time) != hsa::kSuccess ||
      time.end <= g_begin)
    return false;
  remember_use(waiting.signal, end);
  write_dispatch(waiting.dispatch, time);
  g_timed.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// Takes those of `signal` out of its bucket; of all signals, if it is 0. `last_chance`: who has not completed is lost.
void settle(Bucket& bucket, hsa::Signal signal, bool last_chance) {
  const Guard guard(bucket.lock);
  for (Waiting** link = &bucket.first; *link != nullptr;) {
    Waiting* const waiting = *link;
    const bool meant = signal == 0 || waiting->signal == signal;
    const bool done = meant && has_completed(waiting->signal);
    if (!meant || (!done && !last_chance)) {
      link = &waiting->next;
      continue;
    }
    *link = waiting->next;
    if (!done || !write_times(*waiting)) lose(1);
    give_back(waiting);
    g_waiting.fetch_sub(1, std::memory_order_relaxed);
  }
}

// The program sets or destroys a signal: times in it are read while they are there.
void before_change(hsa::Signal signal) {
  if (g_waiting.load(std::memory_order_relaxed) != 0) settle(g_buckets[place_of(signal)], signal, true);
}

void wait_for(hsa::Signal signal, const HsaDevice& device, const HsaDispatch& dispatch) {
  Bucket& bucket = g_buckets[place_of(signal)];
  Waiting* const fresh = take_waiting();
  if (fresh == nullptr) return tape::count_dropped(event::Table::kDispatch);
  const Guard guard(bucket.lock);
  for (Waiting* other = bucket.first; other != nullptr; other = other->next) {
    if (other->signal != signal) continue;
    lose(1);
    other->dispatch = dispatch;
    other->shared = true;
    return give_back(fresh);
  }
  // A signal that says "completed" already says so of this dispatch, if the GPU was faster than the ring, or else of
  // what it was used for before, whose end is known or was before tacho came.
  const LastUse& last = g_last[place_of(signal)];
  const bool completed = has_completed(signal);
  if (completed && last.several) {
    lose(1);
    return give_back(fresh);
  }
  fresh->signal = signal;
  fresh->device = &device;
  fresh->other_end = !completed ? end_in(signal) : last.signal == signal ? last.end : 0;
  // More than one: others count in it, too.
  fresh->shared = call<sig::SignalLoad>(g_runtime.core.hsa_signal_load_scacquire, signal) > 1;
  fresh->dispatch = dispatch;
  fresh->next = bucket.first;
  bucket.first = fresh;
  g_waiting.fetch_add(1, std::memory_order_relaxed);
}

// A dispatch that is not recorded has the signal, too: its times may be the ones that are found there.
void spoil(hsa::Signal signal) {
  if (signal == 0 || g_waiting.load(std::memory_order_relaxed) == 0) return;
  Bucket& bucket = g_buckets[place_of(signal)];
  const Guard guard(bucket.lock);
  for (Waiting* waiting = bucket.first; waiting != nullptr; waiting = waiting->next)
    if (waiting->signal == signal) waiting->shared = true;
}

// Packets

void see(OldQueue& queue, const hsa::KernelPacket& packet) {
  HsaDispatch dispatch{};
  if (!see_dispatch(packet, queue.number, queue.device->number, queue.hardware, dispatch))
    return spoil(packet.completion);
  if (packet.completion == 0) return lose(1);
  wait_for(packet.completion, *queue.device, dispatch);
}

// Reads what the program has written and rung for. With the queue's lock held.
void read_packets(OldQueue& old) {
  const hsa::Queue& queue = *old.queue.load(std::memory_order_relaxed);
  if (old.rung - old.read > queue.size) {
    // More than the queue holds: written while nobody looked.
    const uint64_t unread = old.rung - old.read - queue.size;
    g_unread.fetch_add(unread, std::memory_order_relaxed);
    old.read += unread;
  }
  for (; old.read < old.rung; ++old.read) {
    const auto* const at = static_cast<const hsa::KernelPacket*>(queue.base) + (old.read & (queue.size - 1));
    hsa::KernelPacket packet;
    const uint16_t header = __atomic_load_n(&at->header, __ATOMIC_ACQUIRE);
    memcpy(&packet, at, sizeof packet);
    const auto type = static_cast<uint8_t>(header);
    // Another thread has rung for packets behind one that is not written yet, or the GPU was faster than the ring: then
    // the packet still lies there.
    if (type == hsa::kTypeInvalid &&
        call<sig::QueueIndex>(g_runtime.core.hsa_queue_load_read_index_scacquire, &queue) <= old.read)
      return;
    if (type == hsa::kTypeDispatch || (type == hsa::kTypeInvalid && known_kernel(packet.kernel_object)))
      see(old, packet);
  }
}

// The GPU of a queue; nullptr if that cannot be known.
const HsaDevice* device_of_queue(const hsa::Queue* queue) {
  constexpr uint32_t kQueueAgent = 0;  // HSA_AMD_QUEUE_INFO_AGENT
  hsa::Agent agent = 0;
  if (TACHO_HSA_HAS(g_runtime.amd, hsa_amd_queue_get_info) && g_runtime.amd.hsa_amd_queue_get_info != nullptr &&
      call<hsa::Status(const hsa::Queue*, uint32_t, void*)>(g_runtime.amd.hsa_amd_queue_get_info, queue, kQueueAgent,
                                                            &agent) == hsa::kSuccess)
    return device_of(agent);
  return device_count() == 1 ? &device_at(0) : nullptr;
}

OldQueue* not_seen() {
  if (!g_told_unseen.exchange(true, std::memory_order_relaxed))
    tape::note(
        event::NoteSeverity::kWarning,
        "the program has HSA queues from before tacho attached whose GPU the runtime does not tell, or more than "
        "256: dispatches of these are not in the trace");
  return nullptr;
}

// Which of the queues it is; met for the first time, it gets a place. nullptr when it is none of a GPU's, or too many.
OldQueue* old_queue(hsa::QueueMemory* memory, uint64_t index) {
  hsa::Queue* const queue = &memory->queue;
  for (uint32_t at = 0; at < g_old_end.load(std::memory_order_acquire); ++at)
    if (g_old[at].queue.load(std::memory_order_acquire) == queue) return &g_old[at];
  const HsaDevice* const device = device_of_queue(queue);
  if (device == nullptr) return not_seen();
  const Guard guard(g_old_lock);
  uint32_t free = kMostOldQueues;
  for (uint32_t at = kMostOldQueues; at-- > 0;) {
    hsa::Queue* const here = g_old[at].queue.load(std::memory_order_acquire);
    if (here == queue) return &g_old[at];
    if (here == nullptr && (free == kMostOldQueues || g_old[free].last != queue)) free = at;
  }
  if (free == kMostOldQueues) return not_seen();
  OldQueue& old = g_old[free];
  old.read = old.rung = index;
  old.device = device;
  if (old.last != queue) {
    old.number = tape::next_queue();
    old.hardware = next_hardware_queue();
    define_hardware_queue(old.number, old.hardware, *device);
    g_queues_met.fetch_add(1, std::memory_order_relaxed);
  }
  old.last = queue;
  old.was_profiled = (__atomic_load_n(&memory->properties, __ATOMIC_RELAXED) & hsa::kQueueProfiled) != 0;
  if (!old.was_profiled) call<sig::ProfilerEnabled>(g_runtime.amd.hsa_amd_profiling_set_profiler_enabled, queue, 1);
  old.queue.store(queue, std::memory_order_release);
  if (free >= g_old_end.load(std::memory_order_relaxed)) g_old_end.store(free + 1, std::memory_order_release);
  return &old;
}

void ring(hsa::Signal doorbell, uint64_t index) {
  if (!g_open.load(std::memory_order_acquire) || !active()) return;
  auto* const memory = reinterpret_cast<const hsa::SignalMemory*>(doorbell)->queue;
  if (memory == nullptr || memory->queue.doorbell != doorbell || memory->queue.base == nullptr) return;
  OldQueue* const old = old_queue(memory, index);
  if (old == nullptr) return;
  const Guard guard(old->lock);
  if (old->queue.load(std::memory_order_relaxed) != &memory->queue) return;
  if (index + 1 > old->rung) old->rung = index + 1;
  read_packets(*old);
}

// The program's calls

bool is_doorbell(hsa::Signal signal) {
  return signal != 0 && reinterpret_cast<const hsa::SignalMemory*>(signal)->kind < 0;
}

template <void* hsa::CoreTable::*Entry>
void change(hsa::Signal signal, int64_t value) {
  if (is_doorbell(signal))
    ring(signal, static_cast<uint64_t>(value));
  else
    before_change(signal);
  call<sig::SignalChange>(g_runtime.core.*Entry, signal, value);
}
template <void* hsa::CoreTable::*Entry>
int64_t exchange(hsa::Signal signal, int64_t value) {
  before_change(signal);
  return call<sig::SignalExchange>(g_runtime.core.*Entry, signal, value);
}
hsa::Status destroy_signal(hsa::Signal signal) {
  before_change(signal);
  return call<sig::SignalDestroy>(g_runtime.core.hsa_signal_destroy, signal);
}

// As it was before tacho came. With the queue's lock held.
void release(OldQueue& old) {
  hsa::Queue* const queue = old.queue.load(std::memory_order_relaxed);
  if (queue == nullptr) return;
  g_unread.fetch_add(old.rung - old.read, std::memory_order_relaxed);
  if (!old.was_profiled) call<sig::ProfilerEnabled>(g_runtime.amd.hsa_amd_profiling_set_profiler_enabled, queue, 0);
  old.queue.store(nullptr, std::memory_order_release);
}

}  // namespace

void put_signal_functions(hsa::CoreTable& core) {
#define TACHO_PUT(name, how) core.name = reinterpret_cast<void*>(&how<&hsa::CoreTable::name>);
  TACHO_PUT(hsa_signal_store_relaxed, change)
  TACHO_PUT(hsa_signal_store_screlease, change)
  TACHO_PUT(hsa_signal_silent_store_relaxed, change)
  TACHO_PUT(hsa_signal_silent_store_screlease, change)
  TACHO_PUT(hsa_signal_add_relaxed, change)
  TACHO_PUT(hsa_signal_add_scacquire, change)
  TACHO_PUT(hsa_signal_add_screlease, change)
  TACHO_PUT(hsa_signal_add_scacq_screl, change)
  TACHO_PUT(hsa_signal_exchange_relaxed, exchange)
  TACHO_PUT(hsa_signal_exchange_scacquire, exchange)
  TACHO_PUT(hsa_signal_exchange_screlease, exchange)
  TACHO_PUT(hsa_signal_exchange_scacq_screl, exchange)
#undef TACHO_PUT
  core.hsa_signal_destroy = reinterpret_cast<void*>(&destroy_signal);
}

void begin_old_queues(bool anew) {
  for (std::atomic<uint64_t>* const each : {&g_queues_met, &g_timed, &g_untimed, &g_unread})
    if (anew) each->store(0, std::memory_order_relaxed);
  if (anew) g_told_unseen.store(false, std::memory_order_relaxed);
  memset(static_cast<void*>(g_last), 0, sizeof g_last);
  // What a thread has left here that was still at it when tacho left the last time: its signals may be gone.
  for (Bucket& bucket : g_buckets) {
    const Guard guard(bucket.lock);
    while (Waiting* const waiting = bucket.first) {
      bucket.first = waiting->next;
      give_back(waiting);
    }
  }
  g_waiting.store(0, std::memory_order_relaxed);
  for (OldQueue& old : g_old) {
    old.queue.store(nullptr, std::memory_order_relaxed);
    if (anew) old.last = nullptr;
  }
  g_begin = clock_now();
  g_open.store(true, std::memory_order_release);
}

void close_old_queues() {
  g_open.store(false, std::memory_order_release);
}

uint64_t look_at_old_queues() {
  uint64_t unread = 0;
  for (uint32_t at = 0; at < g_old_end.load(std::memory_order_acquire); ++at) {
    OldQueue& old = g_old[at];
    if (old.queue.load(std::memory_order_acquire) == nullptr || !try_lock(old.lock)) continue;
    if (old.queue.load(std::memory_order_relaxed) != nullptr && active()) {
      read_packets(old);
      unread += old.rung - old.read;
    }
    unlock(old.lock);
  }
  if (g_waiting.load(std::memory_order_relaxed) != 0)
    for (Bucket& bucket : g_buckets)
      if (__atomic_load_n(&bucket.first, __ATOMIC_RELAXED) != nullptr) settle(bucket, 0, false);
  return unread + g_waiting.load(std::memory_order_relaxed);
}

void end_old_queues() {
  close_old_queues();
  for (uint32_t at = 0; at < g_old_end.load(std::memory_order_acquire); ++at) {
    const Guard guard(g_old[at].lock);
    release(g_old[at]);
  }
  if (g_waiting.load(std::memory_order_relaxed) != 0)
    for (Bucket& bucket : g_buckets) settle(bucket, 0, true);
}

void tell_old_queues() {
  const auto number = [](const std::atomic<uint64_t>& of) {
    return static_cast<unsigned long long>(of.load(std::memory_order_relaxed));
  };
  if (number(g_queues_met) == 0) return;
  char line[512];
  int size =
      snprintf(line, sizeof line,
               "%llu of the program's HSA queues had been made before tacho attached. Nothing is changed in such "
               "a queue: the times of its dispatches come from the completion signals that the program gives "
               "them (%llu dispatches); those without a signal of their own, or with one that several share, "
               "have no times and are counted as lost (%llu)",
               number(g_queues_met), number(g_timed), number(g_untimed));
  if (number(g_unread) != 0)
    snprintf(line + size, sizeof line - static_cast<size_t>(size), "; %llu packets could not be read in time",
             number(g_unread));
  tape::note(event::NoteSeverity::kInfo, line);
}

void forget_old_queue(hsa::Queue* queue) {
  if (queue == nullptr) return;
  for (uint32_t at = 0; at < g_old_end.load(std::memory_order_acquire); ++at) {
    OldQueue& old = g_old[at];
    if (old.queue.load(std::memory_order_acquire) != queue) continue;
    const Guard guard(old.lock);
    if (old.queue.load(std::memory_order_relaxed) != queue) continue;
    if (active()) read_packets(old);
    old.queue.store(nullptr, std::memory_order_release);
  }
}

void forget_completion(hsa::Signal signal) {
  before_change(signal);
}

void completion_used(hsa::Signal signal, uint64_t end) {
  if (g_queues_met.load(std::memory_order_relaxed) == 0) return;
  const Guard guard(g_buckets[place_of(signal)].lock);
  remember_use(signal, end);
}

}  // namespace tacho::capture::rocm
