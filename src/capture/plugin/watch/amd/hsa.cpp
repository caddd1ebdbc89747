// Programs under `tacho watch` that use HSA without HIP: the runtime (ROCr) loads this library because HSA_TOOLS_LIB
// names it, and hands over its tables. Their queues become intercept queues: every dispatch is counted, and 1 of N gets
// a completion signal of ours, whose times are the GPU's own. What HIP or AMD's OpenCL put into their queues is seen at
// their own functions, so their queues stay as they are, and so does the runtime where one of them is there first.
#include "vendor/amd/hsa.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string_view>

#include "capture/plugin/watch/sums.h"
#include "capture/room/handle_map.h"
#include "capture/room/lock.h"
#include "capture/room/pages.h"
#include "event/schema.h"

namespace tacho::capture::watch {
namespace {

namespace hsa = vendor::hsa;
namespace sig = hsa::signature;

constexpr auto kDomain = static_cast<uint32_t>(event::Domain::kHsa);

// The runtime's own functions.
constinit hsa::CoreTable g_core = {};
constinit hsa::AmdTable g_amd = {};
constinit double g_tick_ns = 1;
template <typename Signature, typename... A>
auto call(void* function, A... arguments) {
  return reinterpret_cast<Signature*>(function)(arguments...);
}

constinit HandleMap g_kernels;  // kernel objects -> WatchedKernel
constinit LockWord g_objects{0};

// A dispatch that is timed, or room for one: it keeps its signal.
struct Slot {
  hsa::Signal signal;
  hsa::Agent agent;
  WatchRow* row;
  uint32_t level;
};
constexpr uint32_t kSlots = 256;
constinit Slot g_slots[kSlots] = {};  // [0, g_open) have not been read
constinit uint32_t g_open = 0, g_turn = 0;
constinit LockWord g_slots_lock{0};

struct InterceptedQueue {
  std::atomic<hsa::Queue*> queue;
  hsa::Agent agent;
  hsa::KernelPacket* packets;  // room for those written in place of the program's
  uint32_t capacity;
};
constexpr uint32_t kMostQueues = 256;
constinit InterceptedQueue g_queues[kMostQueues] = {};
constinit LockWord g_queues_lock{0};

bool is_of_others(const char* file) {
  return file != nullptr && (strstr(file, "libamdhip64") != nullptr || strstr(file, "libamdocl64") != nullptr);
}
// Whether HIP or AMD's OpenCL is loaded.
bool others_loaded() {
  return dl_iterate_phdr([](dl_phdr_info* info, size_t, void*) { return is_of_others(info->dlpi_name) ? 1 : 0; },
                         nullptr) != 0;
}

// Times

// Reads the times of dispatches that have completed, looking at `most`. Under the lock.
void read_times(uint32_t most) {
  for (uint32_t looked = 0; looked < most && g_open > 0; ++looked) {
    if (g_turn >= g_open) g_turn = 0;
    Slot& slot = g_slots[g_turn];
    if (call<sig::SignalLoad>(g_core.hsa_signal_load_scacquire, slot.signal) > 0) {
      ++g_turn;
      continue;
    }
    hsa::ProfilingTime time{};
    if (call<sig::DispatchTime>(g_amd.hsa_amd_profiling_get_dispatch_time, slot.agent, slot.signal, &time) ==
            hsa::kSuccess &&
        time.end >= time.start)
      add_time(*slot.row, slot.level, static_cast<uint64_t>(static_cast<double>(time.end - time.start) * g_tick_ns));
    else
      g_table->header.lost_times.fetch_add(1, std::memory_order_relaxed);
    call<sig::SignalChange>(g_core.hsa_signal_store_relaxed, slot.signal, int64_t{1});
    g_table->header.pending.fetch_sub(1, std::memory_order_relaxed);
    const Slot done = slot;
    slot = g_slots[--g_open];
    g_slots[g_open] = done;
  }
}
void read_after_wait() {
  if (__atomic_load_n(&g_open, __ATOMIC_RELAXED) == 0 || !try_lock(g_slots_lock)) return;
  read_times(32);
  unlock(g_slots_lock);
}

// A signal for a dispatch that is to be timed; 0: there is none.
hsa::Signal open_slot(hsa::Agent agent, WatchRow& row, uint32_t level) {
  const Guard guard(g_slots_lock);
  read_times(8);
  if (g_open == kSlots) return 0;
  Slot& slot = g_slots[g_open];
  if (slot.signal == 0 &&
      call<sig::AmdSignalCreate>(g_amd.hsa_amd_signal_create, int64_t{1}, 0u, static_cast<const hsa::Agent*>(nullptr),
                                 hsa::kSignalGpuOnly, &slot.signal) != hsa::kSuccess)
    return slot.signal = 0;
  slot.agent = agent;
  slot.row = &row;
  slot.level = level;
  ++g_open;
  g_table->header.pending.fetch_add(1, std::memory_order_relaxed);
  return slot.signal;
}

// Before the runtime ends, and the signals with it. It may be started once more.
void end() {
  const Guard guard(g_slots_lock);
  read_times(kSlots);
  g_table->header.lost_times.fetch_add(g_open, std::memory_order_relaxed);
  g_table->header.pending.fetch_sub(g_open, std::memory_order_relaxed);
  for (uint32_t i = 0; i < kSlots; ++i) {
    // The GPU may still write to the signals of dispatches that have not completed.
    if (i >= g_open && g_slots[i].signal != 0) call<sig::SignalDestroy>(g_core.hsa_signal_destroy, g_slots[i].signal);
    g_slots[i].signal = 0;
  }
  g_open = 0;
}

// Kernels

WatchedKernel* kernel_at(uint64_t object) {
  if (void* const known = g_kernels.find(reinterpret_cast<const void*>(object)))
    return static_cast<WatchedKernel*>(known);
  const Guard guard(g_objects);
  return kernel_named("(unnamed kernel)", kDomain);
}

hsa::Status see_symbol(hsa::Executable, hsa::Agent, hsa::Symbol symbol, void*) {
  const auto info = [&](uint32_t what, void* into) {
    return call<sig::SymbolInfo>(g_core.hsa_executable_symbol_get_info, symbol, what, into) == hsa::kSuccess;
  };
  uint32_t type = 0, length = 0;
  uint64_t object = 0;
  if (!info(hsa::kSymbolType, &type) || type != hsa::kSymbolIsKernel || !info(hsa::kSymbolNameLength, &length) ||
      !info(hsa::kSymbolKernelObject, &object) || object == 0)
    return hsa::kSuccess;
  // Names may be long, and loading code is not a hot path: pages of its own.
  auto* const text = static_cast<char*>(map_pages(length + 1));
  if (text == nullptr) return hsa::kSuccess;
  if (info(hsa::kSymbolName, text)) {
    std::string_view name(text, length);
    if (name.ends_with(".kd")) name.remove_suffix(3);
    const Guard guard(g_objects);
    g_kernels.set(reinterpret_cast<const void*>(object), kernel_named(name, kDomain));
  }
  munmap(text, length + 1);
  return hsa::kSuccess;
}
hsa::Status see_agent(hsa::Agent agent, void* executable) {
  call<sig::IterateSymbols>(g_core.hsa_executable_iterate_agent_symbols, *static_cast<hsa::Executable*>(executable),
                            agent, see_symbol, nullptr);
  return hsa::kSuccess;
}
hsa::Status freeze(hsa::Executable executable, const char* options) {
  const hsa::Status status = call<sig::Freeze>(g_core.hsa_executable_freeze, executable, options);
  if (status == hsa::kSuccess)
    call<sig::IterateAgents>(g_core.hsa_iterate_agents, see_agent, static_cast<void*>(&executable));
  return status;
}

// Queues

// Lets the program's own signal complete behind a dispatch whose completion has become ours.
hsa::Barrier behind(hsa::Signal ours, hsa::Signal theirs) {
  hsa::Barrier barrier{};
  barrier.header = hsa::kTypeBarrierAnd | hsa::kReleaseSystem;
  barrier.wait_for[0] = ours;
  barrier.completion = theirs;
  return barrier;
}

void on_packets(const void* given, uint64_t count, uint64_t, void* data, hsa::PacketWriter writer) {
  auto& queue = *static_cast<InterceptedQueue*>(data);
  if (!g_watched.load(std::memory_order_relaxed)) return writer(given, count);
  OwnTime own;
  const auto* const packets = static_cast<const hsa::KernelPacket*>(given);
  uint64_t out = 0;
  bool changed = false;
  for (uint64_t at = 0; at < count; ++at) {
    const hsa::KernelPacket& packet = packets[at];
    const bool fits = out + 2 <= queue.capacity;
    if (fits) queue.packets[out++] = packet;
    if ((packet.header & 0xff) != hsa::kTypeDispatch) continue;
    const WatchedShape shape = {{packet.grid[0], packet.grid[1], packet.grid[2]},
                                {packet.group[0], packet.group[1], packet.group[2]}};
    WatchRow& row = *kernel_at(packet.kernel_object)->row(shape);
    uint32_t level = 0;
    if (to_be_timed(row, level)) {
      own.prepare();
      const hsa::Signal signal = queue.capacity >= 2 * count ? open_slot(queue.agent, row, level) : 0;
      if (signal == 0) {
        g_table->header.lost_times.fetch_add(1, std::memory_order_relaxed);
      } else {
        changed = true;
        queue.packets[out - 1].completion = signal;
        if (packet.completion != 0) {
          const hsa::Barrier barrier = behind(signal, packet.completion);
          memcpy(static_cast<void*>(&queue.packets[out++]), &barrier, sizeof barrier);
        }
      }
    }
    count_operation(row, 0);
  }
  own.end();
  if (changed)
    writer(queue.packets, out);
  else
    writer(given, count);
}

InterceptedQueue* claim(uint32_t size) {
  const Guard guard(g_queues_lock);
  for (InterceptedQueue& place : g_queues) {
    if (place.queue.load(std::memory_order_relaxed) != nullptr) continue;
    if (place.capacity < 2 * size) {
      if (place.packets != nullptr) munmap(place.packets, place.capacity * sizeof(hsa::KernelPacket));
      place.packets = static_cast<hsa::KernelPacket*>(map_pages(2 * size * sizeof(hsa::KernelPacket)));
      place.capacity = place.packets != nullptr ? 2 * size : 0;
    }
    place.queue.store(reinterpret_cast<hsa::Queue*>(&place), std::memory_order_relaxed);  // taken
    return &place;
  }
  return nullptr;
}

hsa::Status create_queue(hsa::Agent agent, uint32_t size, uint32_t type,
                         void (*callback)(hsa::Status, hsa::Queue*, void*), void* data, uint32_t private_bytes,
                         uint32_t group_bytes, hsa::Queue** queue) {
  // The runtime's function jumps here, so this is the place that has called it.
  Dl_info caller{};
  const bool of_others = dladdr(__builtin_return_address(0), &caller) == 0 || is_of_others(caller.dli_fname);
  // The runtime has one cooperative queue for each GPU and would free it twice if an intercept queue had taken its
  // place.
  const bool watched = !of_others && queue != nullptr && (type & hsa::kCooperativeQueue) == 0;
  InterceptedQueue* const place = watched ? claim(size) : nullptr;
  if (place != nullptr) {
    const hsa::Status status = call<sig::QueueCreate>(g_amd.hsa_amd_queue_intercept_create, agent, size, type, callback,
                                                      data, private_bytes, group_bytes, queue);
    if (status == hsa::kSuccess) {
      place->agent = agent;
      call<sig::ProfilerEnabled>(g_amd.hsa_amd_profiling_set_profiler_enabled, *queue, 1);
      call<sig::InterceptRegister>(g_amd.hsa_amd_queue_intercept_register, *queue, on_packets,
                                   static_cast<void*>(place));
      place->queue.store(*queue, std::memory_order_release);
      note_domain(kDomain);
      return status;
    }
    place->queue.store(nullptr, std::memory_order_relaxed);
  }
  const hsa::Status status = call<sig::QueueCreate>(g_core.hsa_queue_create, agent, size, type, callback, data,
                                                    private_bytes, group_bytes, queue);
  if (status == hsa::kSuccess && !of_others) {
    note_domain(kDomain);
    g_process->unseen_queues.fetch_add(1, std::memory_order_relaxed);
  }
  return status;
}

hsa::Status destroy_queue(hsa::Queue* queue) {
  const hsa::Status status = call<sig::QueueDestroy>(g_core.hsa_queue_destroy, queue);
  for (InterceptedQueue& place : g_queues)
    if (queue != nullptr && place.queue.load(std::memory_order_acquire) == queue) {
      read_after_wait();
      place.queue.store(nullptr, std::memory_order_release);
    }
  return status;
}

// Waits, copies and memory

using SignalWait = int64_t(hsa::Signal, uint32_t, int64_t, uint64_t, uint32_t);
int64_t watched_wait(void* next, hsa::Signal signal, uint32_t condition, int64_t value, uint64_t patience,
                     uint32_t hint) {
  const int64_t from = read_clock(CLOCK_MONOTONIC);
  const int64_t result = call<SignalWait>(next, signal, condition, value, patience, hint);
  const int64_t to = read_clock(CLOCK_MONOTONIC);
  if (WatchRow* const row = TACHO_ROW(kWait, "hsa_signal_wait")) {
    count_operation(*row, 0);
    add_time(*row, 0, static_cast<uint64_t>(to - from));
  } else {
    g_table->header.lost_rows.fetch_add(1, std::memory_order_relaxed);
  }
  read_after_wait();
  return result;
}
int64_t wait_acquire(hsa::Signal signal, uint32_t condition, int64_t value, uint64_t patience, uint32_t hint) {
  return watched_wait(g_core.hsa_signal_wait_scacquire, signal, condition, value, patience, hint);
}
int64_t wait_relaxed(hsa::Signal signal, uint32_t condition, int64_t value, uint64_t patience, uint32_t hint) {
  return watched_wait(g_core.hsa_signal_wait_relaxed, signal, condition, value, patience, hint);
}

void count_call(hsa::Status status, WatchRow* row, uint64_t bytes) {
  if (status != hsa::kSuccess)
    g_table->header.failed.fetch_add(1, std::memory_order_relaxed);
  else if (row == nullptr)
    g_table->header.lost_rows.fetch_add(1, std::memory_order_relaxed);
  else
    count_operation(*row, bytes);
}
bool is_gpu(hsa::Agent agent) {
  uint32_t type = 0;
  return call<sig::AgentInfo>(g_core.hsa_agent_get_info, agent, hsa::kAgentDevice, static_cast<void*>(&type)) ==
             hsa::kSuccess &&
         type == hsa::kDeviceGpu;
}
WatchRow* copy_row(hsa::Agent to, hsa::Agent from) {
  if (is_gpu(from)) return is_gpu(to) ? TACHO_ROW(kCopy, "device to device") : TACHO_ROW(kCopy, "device to host");
  return is_gpu(to) ? TACHO_ROW(kCopy, "host to device") : TACHO_ROW(kCopy, "host to host");
}
hsa::Status async_copy(void* to, hsa::Agent to_agent, const void* from, hsa::Agent from_agent, size_t bytes,
                       uint32_t count, const hsa::Signal* wait_for, hsa::Signal completion) {
  const hsa::Status status = call<sig::AsyncCopy>(g_amd.hsa_amd_memory_async_copy, to, to_agent, from, from_agent,
                                                  bytes, count, wait_for, completion);
  count_call(status, copy_row(to_agent, from_agent), bytes);
  return status;
}
hsa::Status pool_allocate(uint64_t pool, size_t bytes, uint32_t flags, void** out) {
  const hsa::Status status = call<sig::PoolAllocate>(g_amd.hsa_amd_memory_pool_allocate, pool, bytes, flags, out);
  if (status == hsa::kSuccess) count_call(status, TACHO_ROW(kAllocation, "memory of pools"), bytes);
  return status;
}

template <typename F>
void replace(void*& entry, F* function) {
  entry = reinterpret_cast<void*>(function);
}

constinit pid_t g_pid = 0;                    // a forked child has no GPU
constinit std::atomic<bool> g_active{false};  // between the runtime's OnLoad and OnUnload
void end_if_active() {
  if (g_active.exchange(false) && getpid() == g_pid) end();
}

void begin(hsa::Tables* tables) {
  if (!g_watched.load(std::memory_order_acquire) || tables == nullptr || tables->core == nullptr ||
      tables->amd == nullptr || others_loaded())
    return;
  hsa::CoreTable& core = *tables->core;
  hsa::AmdTable& amd = *tables->amd;
  if (!TACHO_HSA_HAS(core, hsa_executable_iterate_agent_symbols) ||
      !TACHO_HSA_HAS(amd, hsa_amd_queue_intercept_register))
    return;  // a runtime before ROCm 5
  memcpy(static_cast<void*>(&g_core), &core, core.version.size < sizeof core ? core.version.size : sizeof core);
  memcpy(static_cast<void*>(&g_amd), &amd, amd.version.size < sizeof amd ? amd.version.size : sizeof amd);
  uint64_t frequency = 0;
  if (call<sig::SystemInfo>(g_core.hsa_system_get_info, hsa::kSystemTimestampFrequency,
                            static_cast<void*>(&frequency)) == hsa::kSuccess &&
      frequency != 0)
    g_tick_ns = 1e9 / static_cast<double>(frequency);
  replace(core.hsa_queue_create, create_queue);
  replace(core.hsa_queue_destroy, destroy_queue);
  replace(core.hsa_executable_freeze, freeze);
  replace(core.hsa_signal_wait_scacquire, wait_acquire);
  replace(core.hsa_signal_wait_relaxed, wait_relaxed);
  replace(amd.hsa_amd_memory_async_copy, async_copy);
  replace(amd.hsa_amd_memory_pool_allocate, pool_allocate);
  g_pid = getpid();
  g_active.store(true, std::memory_order_release);
  static constinit std::atomic<bool> registered{false};
  if (!registered.exchange(true)) atexit(end_if_active);
}

}  // namespace
}  // namespace tacho::capture::watch

// For the runtime (hsa_api_trace.h). False would make it unload the library.
extern "C" __attribute__((visibility("default"))) bool OnLoad(void* tables, uint64_t, uint64_t, const char* const*) {
  tacho::capture::watch::begin(static_cast<tacho::vendor::hsa::Tables*>(tables));
  return true;
}
extern "C" __attribute__((visibility("default"))) void OnUnload() {
  tacho::capture::watch::end_if_active();
}
