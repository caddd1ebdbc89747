// Asynchronous copies of the AMD source (rocm.h). A copy completes into a signal of ours; a handler then writes the
// record, hands the times on to the program's signal and completes that one.
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "capture/room/pages.h"
#include "capture/source/rocm/late_hsa/old_queues.h"
#include "capture/source/rocm/rocm.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {
namespace {

namespace sig = hsa::signature;

struct Copy {
  Copy* next;
  hsa::Signal signal, theirs;  // signal: 0 = none yet
  uint64_t correlation, bytes;
  uint32_t queue, peer, graph_node, session;
  event::CopyDirection direction;
};
constinit Copy* g_free_copies = nullptr;
constinit std::atomic<uint32_t> g_copies_lock{0};
constinit std::atomic<uint64_t> g_open{0};
constexpr uint32_t kAtOnce = 64;

// Called with g_copies_lock held.
void make() {
  void* const memory = map_pages(kAtOnce * sizeof(Copy));
  if (memory == nullptr) return;
  for (uint32_t at = 0; at < kAtOnce; ++at) {
    Copy& fresh = static_cast<Copy*>(memory)[at];
    fresh.next = g_free_copies;
    g_free_copies = &fresh;
  }
}

void put_back(Copy* copy) {
  const Guard lock(g_copies_lock);
  copy->next = g_free_copies;
  g_free_copies = copy;
}

Copy* take() {
  Copy* copy = nullptr;
  {
    const Guard lock(g_copies_lock);
    if (g_free_copies == nullptr) make();
    copy = g_free_copies;
    if (copy == nullptr) return nullptr;
    g_free_copies = copy->next;
  }
  if (copy->signal != 0 ||
      call<sig::SignalCreate>(g_runtime.core.hsa_signal_create, int64_t{1}, 0u, static_cast<const hsa::Agent*>(nullptr),
                              &copy->signal) == hsa::kSuccess)
    return copy;
  copy->signal = 0;
  put_back(copy);
  return nullptr;
}

void give_back(Copy* copy) {
  call<sig::SignalChange>(g_runtime.core.hsa_signal_store_relaxed, copy->signal, int64_t{1});
  put_back(copy);
}

// How many copies were begun that become rows, for tacho to count should the process be killed.
void issued(int64_t change) {
  progress().issued[static_cast<size_t>(event::Table::kCopy)].fetch_add(static_cast<uint64_t>(change),
                                                                        std::memory_order_relaxed);
}

// On the runtime's thread of signal handlers.
bool completed(int64_t, void* data) {
  auto* const copy = static_cast<Copy*>(data);
  hsa::ProfilingTime time{};
  const bool timed =
      call<sig::CopyTime>(g_runtime.amd.hsa_amd_profiling_get_async_copy_time, copy->signal, &time) == hsa::kSuccess;
  // One from an earlier stay of tacho's is in no list any more, and its numbers mean nothing.
  const bool of_this = copy->session == tape::late_session();
  if (!of_this) {
    issued(-1);
  } else if (!timed) {
    tape::loss(event::Table::kCopy, event::LossReason::kVendor, 1);
    issued(-1);
  } else if (auto* const record = tape::begin<event::CopyRecord>(
                 event::RecordKind::kCopy, event::Table::kCopy,
                 static_cast<uint32_t>(copy->direction) | static_cast<uint32_t>(event::CopyKind::kPlain) << 8,
                 static_cast<uint8_t>(event::kCopyAsynchronous | (copy->graph_node != 0 ? event::kCopyGraph : 0)),
                 copy->graph_node != 0 ? sizeof(uint64_t) : 0)) {
    record->correlation = copy->correlation;
    record->queued = record->submit = 0;
    record->start = time.start;
    record->end = time.end;
    record->bytes = copy->bytes;
    record->queue = copy->queue;
    record->peer_queue = copy->peer;
    if (const uint64_t node = copy->graph_node; node != 0) memcpy(record + 1, &node, sizeof node);
    tape::commit();
  }
  if (copy->theirs != 0) {
    // The program may ask its signal for the copy's times.
    const auto* const from = reinterpret_cast<const hsa::SignalMemory*>(copy->signal);
    auto* const to = reinterpret_cast<hsa::SignalMemory*>(copy->theirs);
    to->start = from->start;
    to->end = from->end;
    completion_used(copy->theirs, from->end);
    call<sig::SignalChange>(g_runtime.core.hsa_signal_subtract_screlease, copy->theirs, int64_t{1});
  }
  give_back(copy);
  if (of_this) g_open.fetch_sub(1, std::memory_order_relaxed);
  return false;  // called once
}

// Prepares the record of a copy; nullptr when it is not to be recorded.
Copy* prepare(const void* to_address, hsa::Agent to, const void* from_address, hsa::Agent from, size_t bytes,
              hsa::Signal completion) {
  const uint32_t graph_node = next_graph_node();
  if (!active() || !tape::enabled(tape::source_bit::kCopy)) return nullptr;
  const HsaDevice* target = device_of(to);
  const HsaDevice* source = device_of(from);
  if (target == nullptr && source == nullptr) return nullptr;  // from host to host
  Copy* const copy = take();
  if (copy == nullptr) {
    tape::count_dropped(event::Table::kCopy);
    return nullptr;
  }
  using Direction = event::CopyDirection;
  const HsaDevice& where = source != nullptr ? *source : *target;
  // A program may name the GPU for both ends, also of memory that is the host's (OpenMP's offloading does).
  if (source == target) {
    if (is_of_the_host(to_address)) target = nullptr;
    if (is_of_the_host(from_address)) source = nullptr;
    if (target == source) target = source = &where;  // nobody knows better
  }
  copy->direction = source == nullptr   ? Direction::kHostToDevice
                    : target == nullptr ? Direction::kDeviceToHost
                    : target == source  ? Direction::kDeviceToDevice
                                        : Direction::kPeerToPeer;
  copy->queue = queue_of_stream(where.copies, where.number, 0, open_stream());
  copy->graph_node = graph_node;
  copy->peer = source != nullptr && target != nullptr && source != target ? target->copies : 0;
  copy->theirs = completion;
  copy->session = tape::late_session();
  copy->correlation = tape::t_state.open_correlation;
  copy->bytes = bytes;
  g_open.fetch_add(1, std::memory_order_relaxed);
  issued(1);
  return copy;
}

hsa::Status follow(Copy* copy, hsa::Status status) {
  if (status == hsa::kSuccess &&
      call<sig::AsyncHandler>(g_runtime.amd.hsa_amd_signal_async_handler, copy->signal, hsa::kConditionLess, int64_t{1},
                              completed, static_cast<void*>(copy)) == hsa::kSuccess)
    return status;
  if (status == hsa::kSuccess) {
    // Without a handler nothing would complete the program's signal: wait for the copy here.
    while (call<sig::SignalLoad>(g_runtime.core.hsa_signal_load_scacquire, copy->signal) > 0) sched_yield();
    completed(0, copy);
    return status;
  }
  give_back(copy);
  g_open.fetch_sub(1, std::memory_order_relaxed);
  issued(-1);
  return status;
}

}  // namespace

void forget_copies() {
  g_open.store(0, std::memory_order_relaxed);
}

uint64_t open_copies() {
  return g_open.load(std::memory_order_relaxed);
}

void end_copies(event::LossReason reason) {
  const Guard lock(g_copies_lock);
  for (Copy* copy = g_free_copies; copy != nullptr; copy = copy->next) {
    if (copy->signal != 0) call<sig::SignalDestroy>(g_runtime.core.hsa_signal_destroy, copy->signal);
    copy->signal = 0;
  }
  const uint64_t open = g_open.load(std::memory_order_relaxed);
  if (open != 0) tape::loss(event::Table::kCopy, reason, open);
}

hsa::Status async_copy(void* to, hsa::Agent to_agent, const void* from, hsa::Agent from_agent, size_t bytes,
                       uint32_t count, const hsa::Signal* wait_for, hsa::Signal completion) {
  Copy* const copy = prepare(to, to_agent, from, from_agent, bytes, completion);
  const hsa::Status status =
      call<sig::AsyncCopy>(g_runtime.amd.hsa_amd_memory_async_copy, to, to_agent, from, from_agent, bytes, count,
                           wait_for, copy != nullptr ? copy->signal : completion);
  return copy == nullptr ? status : follow(copy, status);
}

hsa::Status async_copy_on(void* to, hsa::Agent to_agent, const void* from, hsa::Agent from_agent, size_t bytes,
                          uint32_t count, const hsa::Signal* wait_for, hsa::Signal completion, uint32_t engine,
                          bool force) {
  Copy* const copy = prepare(to, to_agent, from, from_agent, bytes, completion);
  const hsa::Status status =
      call<sig::AsyncCopyOn>(g_runtime.amd.hsa_amd_memory_async_copy_on_engine, to, to_agent, from, from_agent, bytes,
                             count, wait_for, copy != nullptr ? copy->signal : completion, engine, force);
  return copy == nullptr ? status : follow(copy, status);
}

}  // namespace tacho::capture::rocm
