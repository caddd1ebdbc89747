// Dispatches of the AMD source (rocm.h). A queue for a GPU becomes an intercept queue: the runtime shows every packet before the
// GPU sees it. A dispatch gets a completion signal of ours, into which the GPU writes its times; the program's own signal, where
// there is one, moves to a barrier packet right behind it, which completes when ours has. So nothing waits for the host.
//
// A dispatch under way has a slot, which owns its signal for good. Slots in flight form a list per queue, in the order of the
// packets; collect() walks the lists and writes records of what has completed.
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "capture/source/rocm/rocm.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

namespace sig = hsa::signature;

struct Slot {
  Slot* next;
  hsa::Signal signal;
  uint64_t correlation;
  uint32_t kernel, ordinal;
  uint32_t grid[3];
  uint16_t group[3];
  uint32_t shared_dynamic;
};

struct Tracked {
  std::atomic<hsa::Queue*> queue;  // nullptr = free
  std::atomic<uint32_t> lock;      // of the list
  Slot *first, *last;
  uint64_t in_flight;
  uint32_t number;
  hsa::Agent agent;
  hsa::Dispatch* packets;  // room for what is written in place of the program's packets
  uint32_t capacity;
};

constexpr uint32_t kMostQueues = 1024;
constinit Tracked g_queues[kMostQueues] = {};
constinit std::atomic<uint32_t> g_queue_end{0};
constinit std::atomic<uint32_t> g_queues_lock{0};

constinit Slot* g_free = nullptr;
constinit std::atomic<uint32_t> g_free_lock{0};
constinit std::atomic<uint32_t> g_ordinal{0};

constexpr uint32_t kSlotsAtOnce = 256;

void* map(size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

// Called with g_free_lock held.
void make_slots() {
  auto* const fresh = static_cast<Slot*>(map(kSlotsAtOnce * sizeof(Slot)));
  if (fresh == nullptr) return;
  for (uint32_t at = 0; at < kSlotsAtOnce; ++at) {
    Slot& slot = fresh[at];
    if (call<sig::AmdSignalCreate>(g_runtime.amd.hsa_amd_signal_create, int64_t{1}, 0u,
                                   static_cast<const hsa::Agent*>(nullptr), hsa::kSignalGpuOnly,
                                   &slot.signal) != hsa::kSuccess)
      return;
    slot.next = g_free;
    g_free = &slot;
  }
}

Slot* take_slot() {
  const Lock lock(g_free_lock);
  if (g_free == nullptr) make_slots();
  Slot* const slot = g_free;
  if (slot != nullptr) g_free = slot->next;
  return slot;
}

void give_back(Slot* first, Slot* last) {
  const Lock lock(g_free_lock);
  last->next = g_free;
  g_free = first;
}

// What both kinds of records have.
template <typename Record>
void fill(Record& record, const Tracked& queue, const Slot& slot, const hsa::ProfilingTime& time) {
  record.correlation = slot.correlation;
  record.queued = record.submit = 0;
  record.start = time.start;
  record.end = time.end;
  record.queue = queue.number;
  record.ordinal = slot.ordinal;
  for (int at = 0; at < 3; ++at) {
    record.grid[at] = slot.grid[at];
    record.group[at] = slot.group[at];
  }
}

void write_record(const Tracked& queue, const Slot& slot, const hsa::ProfilingTime& time) {
  if (slot.shared_dynamic == 0) {
    if (auto* const record =
            tape::begin<event::DispatchRecord>(event::RecordKind::kDispatch, event::Table::kDispatch,
                                               slot.kernel, event::kFlagNoDynamicShared)) {
      fill(*record, queue, slot, time);
      tape::commit();
    }
  } else if (auto* const record = tape::begin<event::DispatchWideRecord>(
                 event::RecordKind::kDispatchWide, event::Table::kDispatch, slot.kernel)) {
    fill(*record, queue, slot, time);
    for (int at = 0; at < 3; ++at) record->offset[at] = record->cluster[at] = 0;
    record->shared_dynamic = slot.shared_dynamic;
    tape::commit();
  }
}

// Writes records of what has completed in `queue`, whose lock the caller holds.
void collect_queue(Tracked& queue) {
  Slot** link = &queue.first;
  Slot* previous = nullptr;
  Slot *done = nullptr, *done_last = nullptr;
  constexpr int kLookAhead = 256;  // packets without a barrier bit complete in any order
  int waiting = 0;
  while (Slot* const slot = *link) {
    if (call<sig::SignalLoad>(g_runtime.core.hsa_signal_load_scacquire, slot->signal) > 0) {
      if (++waiting == kLookAhead) break;
      previous = slot;
      link = &slot->next;
      continue;
    }
    hsa::ProfilingTime time{};
    if (call<sig::DispatchTime>(g_runtime.amd.hsa_amd_profiling_get_dispatch_time, queue.agent, slot->signal,
                                &time) == hsa::kSuccess)
      write_record(queue, *slot, time);
    else
      tape::loss(event::Table::kDispatch, event::LossReason::kVendor, 1);
    call<sig::SignalChange>(g_runtime.core.hsa_signal_store_relaxed, slot->signal, int64_t{1});
    *link = slot->next;
    if (queue.last == slot) queue.last = previous;
    --queue.in_flight;
    slot->next = done;
    done = slot;
    if (done_last == nullptr) done_last = slot;
  }
  if (done != nullptr) give_back(done, done_last);
}

// Lets the program's own signal complete behind a dispatch whose completion has become ours.
hsa::Barrier behind(hsa::Signal ours, hsa::Signal theirs) {
  hsa::Barrier barrier{};
  barrier.header = hsa::kTypeBarrierAnd | hsa::kReleaseSystem;
  barrier.wait_for[0] = ours;
  barrier.completion = theirs;
  return barrier;
}

void on_packets(const void* given, uint64_t count, uint64_t, void* data, hsa::PacketWriter writer) {
  auto& queue = *static_cast<Tracked*>(data);
  if (!active() || !tape::enabled(tape::source_bit::kDispatch) || queue.capacity < 2 * count)
    return writer(given, count);
  const auto* const packets = static_cast<const hsa::Dispatch*>(given);
  uint64_t out = 0;
  for (uint64_t at = 0; at < count; ++at) {
    hsa::Dispatch& packet = queue.packets[out++];
    packet = packets[at];
    if ((packet.header & 0xff) != hsa::kTypeDispatch) continue;
    const Kernel kernel = kernel_at(packet.kernel_object);
    tape::pool()->launches.fetch_add(1, std::memory_order_relaxed);
    const uint32_t ordinal = g_ordinal.fetch_add(1, std::memory_order_relaxed);
    if (!kernel.wanted) {
      tape::loss(event::Table::kDispatch, event::LossReason::kFiltered, 1);
      continue;
    }
    Slot* const slot = take_slot();
    if (slot == nullptr) {
      tape::count_dropped(event::Table::kDispatch);
      continue;
    }
    slot->next = nullptr;
    slot->correlation = tape::t_state.open_correlation;
    slot->kernel = kernel.number;
    slot->ordinal = ordinal;
    slot->shared_dynamic =
        packet.group_bytes > kernel.shared_static ? packet.group_bytes - kernel.shared_static : 0;
    for (int axis = 0; axis < 3; ++axis) {
      slot->grid[axis] = packet.grid[axis];
      slot->group[axis] = packet.group[axis];
    }
    const hsa::Signal theirs = packet.completion;
    packet.completion = slot->signal;
    if (theirs != 0) {
      const hsa::Barrier barrier = behind(slot->signal, theirs);
      memcpy(static_cast<void*>(&queue.packets[out++]), &barrier, sizeof barrier);
    }
    const Lock lock(queue.lock);
    (queue.last == nullptr ? queue.first : queue.last->next) = slot;
    queue.last = slot;
    ++queue.in_flight;
  }
  writer(queue.packets, out);
}

Tracked* track(hsa::Queue* queue, const Device& device) {
  const Lock lock(g_queues_lock);
  uint32_t at = 0;
  while (at < kMostQueues && g_queues[at].queue.load(std::memory_order_relaxed) != nullptr) ++at;
  if (at == kMostQueues) return nullptr;
  Tracked& fresh = g_queues[at];
  const uint32_t capacity = 2 * queue->size;
  if (fresh.capacity < capacity) {
    if (fresh.packets != nullptr) munmap(fresh.packets, fresh.capacity * sizeof(hsa::Dispatch));
    fresh.packets = static_cast<hsa::Dispatch*>(map(capacity * sizeof(hsa::Dispatch)));
    fresh.capacity = fresh.packets == nullptr ? 0 : capacity;
  }
  fresh.agent = device.agent;
  fresh.number = tape::next_queue();
  fresh.queue.store(queue, std::memory_order_release);
  if (at >= g_queue_end.load(std::memory_order_relaxed)) g_queue_end.store(at + 1, std::memory_order_release);
  event::QueueRecord record{};
  record.header = {event::RecordKind::kQueue, 0, sizeof record, fresh.number};
  record.device = device.number;
  record.clock = static_cast<uint32_t>(event::DeviceClock::kPaired);
  record.native = queue->id;
  tape::define(&record.header);
  return &fresh;
}

}  // namespace

hsa::Status create_queue(hsa::Agent agent, uint32_t size, uint32_t type,
                         void (*callback)(hsa::Status, hsa::Queue*, void*), void* data,
                         uint32_t private_bytes, uint32_t group_bytes, hsa::Queue** queue) {
  const Device* const device = active() ? device_of(agent) : nullptr;
  if (device != nullptr && queue != nullptr) {
    if (call<sig::QueueCreate>(g_runtime.amd.hsa_amd_queue_intercept_create, agent, size, type, callback,
                               data, private_bytes, group_bytes, queue) == hsa::kSuccess) {
      call<sig::ProfilerEnabled>(g_runtime.amd.hsa_amd_profiling_set_profiler_enabled, *queue, 1);
      if (Tracked* const tracked = track(*queue, *device))
        call<sig::InterceptRegister>(g_runtime.amd.hsa_amd_queue_intercept_register, *queue, on_packets,
                                     static_cast<void*>(tracked));
      else
        tape::note(event::NoteSeverity::kWarning,
                   "the program has more than 1024 HSA queues at once: kernels of further ones are not in "
                   "the trace");
      return hsa::kSuccess;
    }
    tape::note(event::NoteSeverity::kWarning,
               "the HSA runtime refused an intercept queue: kernels of one queue are not in the trace");
  }
  return call<sig::QueueCreate>(g_runtime.core.hsa_queue_create, agent, size, type, callback, data,
                                private_bytes, group_bytes, queue);
}

hsa::Status destroy_queue(hsa::Queue* queue) {
  for (uint32_t at = 0; at < g_queue_end.load(std::memory_order_acquire); ++at) {
    Tracked& tracked = g_queues[at];
    if (tracked.queue.load(std::memory_order_acquire) != queue || queue == nullptr) continue;
    const hsa::Status status = call<sig::QueueDestroy>(g_runtime.core.hsa_queue_destroy, queue);
    const Lock lock(tracked.lock);
    if (active()) collect_queue(tracked);
    // What a destroyed queue has not executed it never will. The slots stay out of use: the GPU may know their signals.
    if (tracked.in_flight != 0)
      tape::loss(event::Table::kDispatch, event::LossReason::kUnmatched, tracked.in_flight);
    tracked.first = tracked.last = nullptr;
    tracked.in_flight = 0;
    tracked.queue.store(nullptr, std::memory_order_release);
    return status;
  }
  return call<sig::QueueDestroy>(g_runtime.core.hsa_queue_destroy, queue);
}

uint64_t collect(bool patient) {
  uint64_t in_flight = 0;
  for (uint32_t at = 0; at < g_queue_end.load(std::memory_order_acquire); ++at) {
    Tracked& queue = g_queues[at];
    if (queue.queue.load(std::memory_order_acquire) == nullptr) continue;
    if (patient) {
      const Lock lock(queue.lock);
      collect_queue(queue);
      in_flight += queue.in_flight;
    } else if (queue.lock.exchange(1, std::memory_order_acquire) == 0) {
      collect_queue(queue);
      in_flight += queue.in_flight;
      queue.lock.store(0, std::memory_order_release);
    } else {
      ++in_flight;
    }
  }
  return in_flight;
}

void end_queues() {
  uint64_t in_flight = 0;
  for (uint32_t at = 0; at < g_queue_end.load(std::memory_order_acquire); ++at)
    if (g_queues[at].queue.load(std::memory_order_acquire) != nullptr) in_flight += g_queues[at].in_flight;
  if (in_flight != 0) tape::loss(event::Table::kDispatch, event::LossReason::kKilled, in_flight);
  const Lock lock(g_free_lock);
  for (; g_free != nullptr; g_free = g_free->next)
    call<sig::SignalDestroy>(g_runtime.core.hsa_signal_destroy, g_free->signal);
}

}  // namespace tacho::capture::rocm
