// Dispatches of the AMD source (rocm.h). A queue for a GPU becomes an intercept queue: the runtime shows every packet
// before the GPU sees it. A dispatch gets a completion signal of ours, into which the GPU writes its times. The
// program's own signal, if any, moves to a barrier packet right behind the dispatch, which completes after ours. So the
// host never waits.
//
// A dispatch under way has a slot, which owns its signal for good. Slots in flight form a list per queue, in the order
// of the packets; collect() walks the lists and writes records of completed dispatches.
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/room/pages.h"
#include "capture/source/rocm/dispatch.h"
#include "capture/source/rocm/late_hsa/old_queues.h"
#include "capture/source/rocm/rocm.h"
#include "tape/gate.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

namespace sig = hsa::signature;

struct Slot {
  Slot* next;
  hsa::Signal signal;  // 0 = none yet
  HsaDispatch dispatch;
};

struct Tracked {
  bool used;                       // under g_queues_lock
  std::atomic<hsa::Queue*> queue;  // nullptr = not ready
  std::atomic<uint32_t> lock;      // of the list
  Slot *first, *last;
  uint64_t in_flight;
  uint32_t number, hardware;  // in the pool; as HSA's queue, from 1
  uint32_t session;           // whose pool: tape::late_session()
  const HsaDevice* device;
  void (*on_error)(hsa::Status, hsa::Queue*, void*);  // the program's
  void* on_error_data;
  hsa::Queue copy;             // what the queue is like
  hsa::KernelPacket* packets;  // room for the packets written in place of the program's
  uint32_t capacity;
};

constexpr uint32_t kMostQueues = 1024;
constinit Tracked g_queues[kMostQueues] = {};
constinit std::atomic<uint32_t> g_queue_end{0};
constinit std::atomic<uint32_t> g_queues_lock{0};

constinit Slot* g_free_slots = nullptr;
constinit std::atomic<uint32_t> g_free_lock{0};
constinit std::atomic<uint32_t> g_ordinal{0};
constinit std::atomic<uint32_t> g_last_hardware{0};

constexpr uint32_t kSlotsAtOnce = 256;

// Called with g_free_lock held.
void make_slots() {
  auto* const fresh = static_cast<Slot*>(map_pages(kSlotsAtOnce * sizeof(Slot)));
  if (fresh == nullptr) return;
  for (uint32_t at = 0; at < kSlotsAtOnce; ++at) {
    fresh[at].next = g_free_slots;
    g_free_slots = &fresh[at];
  }
}

void give_back(Slot* first, Slot* last) {
  const Guard lock(g_free_lock);
  last->next = g_free_slots;
  g_free_slots = first;
}

Slot* take_slot() {
  Slot* slot = nullptr;
  {
    const Guard lock(g_free_lock);
    if (g_free_slots == nullptr) make_slots();
    slot = g_free_slots;
    if (slot == nullptr) return nullptr;
    g_free_slots = slot->next;
  }
  if (slot->signal != 0 || call<sig::AmdSignalCreate>(g_runtime.amd.hsa_amd_signal_create, int64_t{1}, 0u,
                                                      static_cast<const hsa::Agent*>(nullptr), hsa::kSignalGpuOnly,
                                                      &slot->signal) == hsa::kSuccess)
    return slot;
  slot->signal = 0;
  give_back(slot, slot);
  return nullptr;
}

// The fields that both kinds of records share.
template <typename Record>
void fill(Record& record, const HsaDispatch& dispatch, const hsa::ProfilingTime& time) {
  record.correlation = dispatch.correlation;
  record.queued = record.submit = 0;
  record.start = time.start;
  record.end = time.end;
  record.queue = dispatch.queue;
  record.ordinal = dispatch.ordinal;
  for (int at = 0; at < 3; ++at) {
    record.grid[at] = dispatch.grid[at];
    record.group[at] = dispatch.group[at];
  }
  if (dispatch.graph_node != 0) {
    const uint64_t node = dispatch.graph_node;
    memcpy(&record + 1, &node, sizeof node);
  }
}

// Counts dispatches that never become rows.
void lose(event::LossReason reason, uint64_t count) {
  tape::loss(event::Table::kDispatch, reason, count);
  progress().issued[static_cast<size_t>(event::Table::kDispatch)].fetch_sub(count, std::memory_order_relaxed);
}

// Writes records of the completed dispatches of `queue`, whose lock the caller holds.
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
    if (call<sig::DispatchTime>(g_runtime.amd.hsa_amd_profiling_get_dispatch_time, queue.device->agent, slot->signal,
                                &time) == hsa::kSuccess)
      write_dispatch(slot->dispatch, time);
    else
      lose(event::LossReason::kVendor, 1);
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

// The number of `queue` in this pool: one that an earlier tacho has seen gets another.
void define(Tracked& queue) {
  queue.number = tape::next_queue();
  queue.hardware = next_hardware_queue();
  queue.session = tape::late_session();
  define_hardware_queue(queue.number, queue.hardware, *queue.device);
}

void on_packets(const void* given, uint64_t count, uint64_t, void* data, hsa::PacketWriter writer) {
  auto& queue = *static_cast<Tracked*>(data);
  if (!active() || queue.capacity < 2 * count) return writer(given, count);
  if (__builtin_expect(queue.session != tape::late_session(), 0)) {
    const Guard lock(queue.lock);
    if (queue.session != tape::late_session()) define(queue);
  }
  const auto* const packets = static_cast<const hsa::KernelPacket*>(given);
  uint64_t out = 0;
  for (uint64_t at = 0; at < count; ++at) {
    hsa::KernelPacket& packet = queue.packets[out++];
    packet = packets[at];
    if ((packet.header & 0xff) != hsa::kTypeDispatch) continue;
    HsaDispatch dispatch{};
    if (!see_dispatch(packet, queue.number, queue.device->number, queue.hardware, dispatch)) continue;
    Slot* const slot = take_slot();
    if (slot == nullptr) {
      tape::count_dropped(event::Table::kDispatch);
      continue;
    }
    slot->next = nullptr;
    slot->dispatch = dispatch;
    progress().issued[static_cast<size_t>(event::Table::kDispatch)].fetch_add(1, std::memory_order_relaxed);
    const hsa::Signal theirs = packet.completion;
    packet.completion = slot->signal;
    if (theirs != 0) {
      forget_completion(theirs);
      const hsa::Barrier barrier = behind(slot->signal, theirs);
      memcpy(static_cast<void*>(&queue.packets[out++]), &barrier, sizeof barrier);
    }
    const Guard lock(queue.lock);
    (queue.last == nullptr ? queue.first : queue.last->next) = slot;
    queue.last = slot;
    ++queue.in_flight;
  }
  writer(queue.packets, out);
}

// A place for a queue that is about to be made; nullptr when all are taken.
Tracked* claim() {
  const Guard lock(g_queues_lock);
  uint32_t at = 0;
  while (at < kMostQueues && g_queues[at].used) ++at;
  if (at == kMostQueues) return nullptr;
  g_queues[at].used = true;
  if (at >= g_queue_end.load(std::memory_order_relaxed)) g_queue_end.store(at + 1, std::memory_order_release);
  return &g_queues[at];
}

void unclaim(Tracked& tracked) {
  const Guard lock(g_queues_lock);
  tracked.queue.store(nullptr, std::memory_order_release);
  tracked.used = false;
}

void track(Tracked& fresh, hsa::Queue* queue, const HsaDevice& device) {
  const uint32_t capacity = 2 * queue->size;
  if (fresh.capacity < capacity) {
    if (fresh.packets != nullptr) munmap(fresh.packets, fresh.capacity * sizeof(hsa::KernelPacket));
    fresh.packets = static_cast<hsa::KernelPacket*>(map_pages(capacity * sizeof(hsa::KernelPacket)));
    fresh.capacity = fresh.packets == nullptr ? 0 : capacity;
  }
  fresh.device = &device;
  fresh.copy = *queue;
  define(fresh);
  fresh.queue.store(queue, std::memory_order_release);
}

// On the runtime's thread: the queue processes nothing any more. HIP's handler ends the program.
void on_error(hsa::Status status, hsa::Queue* queue, void* data) {
  auto& tracked = *static_cast<Tracked*>(data);
  if (active()) {
    uint64_t object = 0;
    {
      const Guard lock(tracked.lock);
      collect_queue(tracked);
      if (tracked.first != nullptr) object = tracked.first->dispatch.object;
    }
    note_queue_error(tracked.device, status, object);
  }
  if (tracked.on_error != nullptr) tracked.on_error(status, queue, tracked.on_error_data);
}

}  // namespace

void write_dispatch(const HsaDispatch& dispatch, const hsa::ProfilingTime& time) {
  const uint8_t graph = dispatch.graph_node != 0 ? event::kFlagGraph : 0;
  const uint32_t behind = dispatch.graph_node != 0 ? sizeof(uint64_t) : 0;
  if (dispatch.shared_dynamic == 0) {
    if (auto* const record =
            tape::begin<event::DispatchRecord>(event::RecordKind::kDispatch, event::Table::kDispatch, dispatch.kernel,
                                               static_cast<uint8_t>(event::kFlagNoDynamicShared | graph), behind)) {
      fill(*record, dispatch, time);
      tape::commit();
    }
  } else if (auto* const record = tape::begin<event::DispatchWideRecord>(
                 event::RecordKind::kDispatchWide, event::Table::kDispatch, dispatch.kernel, graph, behind)) {
    fill(*record, dispatch, time);
    for (int at = 0; at < 3; ++at) record->offset[at] = record->cluster[at] = 0;
    record->shared_dynamic = dispatch.shared_dynamic;
    tape::commit();
  }
}

uint32_t count_launch() {
  tape::PoolHeader& pool = *tape::pool();
  const tape::LaunchTriggers triggers = tape::count_run_launch(pool, 0);
  if (__builtin_expect(triggers.starts, 0)) {
    open_call().starts = true;
    tape::set_gate(pool, tape::gate::kTrigger, true);
  }
  if (__builtin_expect(triggers.stops, 0)) {
    open_call().stops = true;
    tape::set_gate(pool, tape::gate::kTrigger, false);
  }
  return g_ordinal.fetch_add(1, std::memory_order_relaxed);
}

bool see_dispatch(const hsa::KernelPacket& packet, uint32_t queue, uint32_t device, uint32_t hardware,
                  HsaDispatch& dispatch) {
  const uint32_t ordinal = count_launch(), graph_node = next_graph_node();
  if (!tape::enabled(tape::source_bit::kDispatch)) return false;
  const Kernel kernel = kernel_at(packet.kernel_object);
  if (!kernel.wanted) {
    leave_out(packet.kernel_object);
    return false;
  }
  dispatch.correlation = tape::t_state.open_correlation;
  dispatch.kernel = kernel.number;
  dispatch.object = packet.kernel_object;
  dispatch.ordinal = ordinal;
  dispatch.graph_node = graph_node;
  dispatch.queue = queue_of_stream(queue, device, hardware, open_stream());
  dispatch.shared_dynamic = packet.group_bytes > kernel.shared_static ? packet.group_bytes - kernel.shared_static : 0;
  for (int axis = 0; axis < 3; ++axis) {
    dispatch.grid[axis] = packet.grid[axis];
    dispatch.group[axis] = packet.group[axis];
  }
  return true;
}

uint32_t next_hardware_queue() {
  return g_last_hardware.fetch_add(1, std::memory_order_relaxed) + 1;
}

void define_hardware_queue(uint32_t number, uint32_t hardware, const HsaDevice& device) {
  event::QueueRecord record{};
  record.header = {event::RecordKind::kQueue, event::kQueueNumbered, sizeof record, number};
  record.device = device.number;
  record.clock = static_cast<uint32_t>(event::DeviceClock::kPaired);
  record.native = hardware;
  tape::define(&record.header);
}

void note_cooperative_launches() {
  static constinit std::atomic<bool> s_noted{false};
  if (s_noted.exchange(true)) return;
  tape::note(
      event::NoteSeverity::kWarning,
      "the program launches kernels cooperatively: these are not in the trace, because the HSA runtime does not let "
      "its cooperative queue be watched");
}

hsa::Status create_queue(hsa::Agent agent, uint32_t size, uint32_t type,
                         void (*callback)(hsa::Status, hsa::Queue*, void*), void* data, uint32_t private_bytes,
                         uint32_t group_bytes, hsa::Queue** queue) {
  const HsaDevice* device = active() ? device_of(agent) : nullptr;
  // The runtime has one cooperative queue for each GPU, which it shares out. An intercept queue takes the queue below
  // it for its own and frees it with itself: the runtime frees it once more when it ends, and the program dies.
  if (device != nullptr && (type & hsa::kCooperativeQueue) != 0) {
    device = nullptr;
    note_cooperative_launches();
  }
  Tracked* const tracked = device != nullptr && queue != nullptr ? claim() : nullptr;
  if (tracked != nullptr) {
    if (!tape::attached_late()) watch_events();  // a handler of system events would stay for good
    tracked->on_error = callback;
    tracked->on_error_data = data;
    const hsa::Status status = call<sig::QueueCreate>(
        g_runtime.amd.hsa_amd_queue_intercept_create, agent, size, type, callback != nullptr ? on_error : nullptr,
        callback != nullptr ? static_cast<void*>(tracked) : data, private_bytes, group_bytes, queue);
    if (status == hsa::kSuccess) {
      call<sig::ProfilerEnabled>(g_runtime.amd.hsa_amd_profiling_set_profiler_enabled, *queue, 1);
      track(*tracked, *queue, *device);
      call<sig::InterceptRegister>(g_runtime.amd.hsa_amd_queue_intercept_register, *queue, on_packets,
                                   static_cast<void*>(tracked));
      return status;
    }
    unclaim(*tracked);
  } else if (device != nullptr && queue != nullptr) {
    tape::note(event::NoteSeverity::kWarning,
               "the program has more than 1024 HSA queues at once: kernels of further ones are not in the trace");
  }
  const hsa::Status status = call<sig::QueueCreate>(g_runtime.core.hsa_queue_create, agent, size, type, callback, data,
                                                    private_bytes, group_bytes, queue);
  if (tracked != nullptr && status == hsa::kSuccess)
    tape::note(event::NoteSeverity::kWarning,
               "the HSA runtime refused an intercept queue: kernels of one queue are not in the trace");
  return status;
}

hsa::Status destroy_queue(hsa::Queue* queue) {
  forget_old_queue(queue);
  for (uint32_t at = 0; at < g_queue_end.load(std::memory_order_acquire); ++at) {
    Tracked& tracked = g_queues[at];
    if (tracked.queue.load(std::memory_order_acquire) != queue || queue == nullptr) continue;
    const hsa::Status status = call<sig::QueueDestroy>(g_runtime.core.hsa_queue_destroy, queue);
    const Guard lock(tracked.lock);
    if (active()) collect_queue(tracked);
    // A destroyed queue never executes its remaining packets. The slots stay out of use: the GPU may know their
    // signals.
    if (tracked.in_flight != 0 && active()) lose(event::LossReason::kUnmatched, tracked.in_flight);
    tracked.first = tracked.last = nullptr;
    tracked.in_flight = 0;
    unclaim(tracked);
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
      const Guard lock(queue.lock);
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

void end_queues(event::LossReason reason) {
  uint64_t in_flight = 0;
  for (uint32_t at = 0; at < g_queue_end.load(std::memory_order_acquire); ++at)
    if (g_queues[at].queue.load(std::memory_order_acquire) != nullptr) in_flight += g_queues[at].in_flight;
  if (in_flight != 0) tape::loss(event::Table::kDispatch, reason, in_flight);
  const Guard lock(g_free_lock);
  for (Slot* slot = g_free_slots; slot != nullptr; slot = slot->next) {
    if (slot->signal != 0) call<sig::SignalDestroy>(g_runtime.core.hsa_signal_destroy, slot->signal);
    slot->signal = 0;
  }
}

namespace {
// True if the queue that was tracked may still be there: nobody has told if the program destroyed it while no tacho was
// in it.
bool may_live(const Tracked& tracked) {
  hsa::Queue now{};
  const iovec here{&now, sizeof now}, there{tracked.queue.load(std::memory_order_relaxed), sizeof now};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(sizeof now) &&
         memcmp(&now, &tracked.copy, sizeof now) == 0;
}
}  // namespace

void forget_queues() {
  g_ordinal.store(0, std::memory_order_relaxed);
  g_last_hardware.store(0, std::memory_order_relaxed);
  for (uint32_t at = 0; at < g_queue_end.load(std::memory_order_acquire); ++at) {
    Tracked& queue = g_queues[at];
    const Guard lock(queue.lock);
    // Dispatches that had not ended when tacho left: the GPU may still write into their signals.
    queue.first = queue.last = nullptr;
    queue.in_flight = 0;
    if (queue.queue.load(std::memory_order_relaxed) != nullptr && !may_live(queue)) unclaim(queue);
  }
}

}  // namespace tacho::capture::rocm
