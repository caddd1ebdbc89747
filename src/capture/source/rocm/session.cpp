// The AMD source's life in a process (rocm.h): the runtime calls OnLoad once it is ready; a thread collects what
// completes; the rest is collected at exit.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <string_view>

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/kernel_filter.h"
#include "capture/own_thread.h"
#include "capture/source/rocm/late_hsa/old_queues.h"
#include "capture/source/rocm/rocm.h"
#include "capture/source/rocm/sdk/sdk.h"
#include "tape/writer.h"

namespace tacho::capture::rocm {

constinit Runtime g_runtime{};

namespace {

namespace sig = hsa::signature;

constinit pid_t g_pid = 0;
constinit std::atomic<uint32_t> g_finished{0};
constinit std::atomic<uint32_t> g_followers{0};
constinit uint32_t g_late_begun = 0;  // tape::late_session()
constinit std::atomic<uint32_t> g_devices_lock{0};
constexpr uint32_t kMostDevices = 64;
constinit HsaDevice g_devices[kMostDevices] = {};
constinit std::atomic<uint32_t> g_device_count{0};
constinit std::atomic<bool> g_devices_found{false};
constinit tape::CommandCounts g_unseen{};  // where the pool has no room for them
constinit std::atomic<tape::CommandCounts*> g_progress{&g_unseen};

// Devices

// "gfx942" as 0x942, "gfx90a" as 0x90a, "gfx1100" as 0x1100; 0 when the name is something else.
uint32_t architecture_number(const char* name) {
  return strncmp(name, "gfx", 3) == 0 ? static_cast<uint32_t>(strtoul(name + 3, nullptr, 16)) : 0;
}

void define_clock(const HsaDevice& device) {
  event::ClockPairRecord best{};
  best.uncertainty = ~0ull;
  for (int attempt = 0; attempt < 3; ++attempt) {
    uint64_t theirs = 0;
    const int64_t raw = raw_now();
    const uint64_t before = host_ticks();
    if (call<sig::SystemInfo>(g_runtime.core.hsa_system_get_info, hsa::kSystemTimestamp, &theirs) != hsa::kSuccess)
      return;
    const uint64_t after = host_ticks();
    const auto uncertainty = static_cast<uint64_t>(raw_now() - raw) / 2;
    if (uncertainty >= best.uncertainty) continue;
    best.uncertainty = uncertainty;
    best.host = before + (after - before) / 2;
    best.device = theirs;
  }
  best.header = {event::RecordKind::kClockPair, 0, sizeof best, device.number};
  tape::define(&best.header);
}

hsa::Status add_device(hsa::Agent agent, void*) {
  uint32_t type = 0;
  const auto info = [&](uint32_t what, void* into) {
    return call<sig::AgentInfo>(g_runtime.core.hsa_agent_get_info, agent, what, into) == hsa::kSuccess;
  };
  const uint32_t index = g_device_count.load(std::memory_order_relaxed);
  if (!info(hsa::kAgentDevice, &type) || type != hsa::kDeviceGpu || index == kMostDevices) return hsa::kSuccess;
  char name[64] = {}, product[64] = {}, uuid[64] = {};
  info(hsa::kAgentName, name);
  info(hsa::kAgentProductName, product);
  info(hsa::kAgentUuid, uuid);
  HsaDevice& device = g_devices[index];
  device.agent = agent;
  device.number = tape::next_device();
  const uint32_t architecture = architecture_number(name);
  device.unified_registers = architecture == 0x90a || (architecture >= 0x940 && architecture < 0xa00);
  device.vgpr_granule = device.unified_registers ? 8 : architecture >= 0x1000 ? 0 : 4;
  event::DeviceRecord record{};
  record.header = {event::RecordKind::kDevice, 0, sizeof record, device.number};
  record.kind = static_cast<uint32_t>(event::DeviceKind::kGpu);
  record.index = index;
  record.name = tape::intern(product[0] != '\0' ? product : name);
  record.vendor = tape::intern("Advanced Micro Devices, Inc.");
  record.architecture = tape::intern(name);
  record.uuid = tape::intern(uuid);
  record.clock_error_ns = event::kUnknown32;
  tape::define(&record.header);
  define_clock(device);
  event::QueueRecord queue{};
  device.copies = tape::next_queue();
  queue.header = {event::RecordKind::kQueue, 0, sizeof queue, device.copies};
  queue.device = device.number;
  queue.name = tape::intern("copies");
  queue.category = tape::intern("copy engine");
  queue.clock = static_cast<uint32_t>(event::DeviceClock::kPaired);
  tape::define(&queue.header);
  g_device_count.store(index + 1, std::memory_order_release);
  return hsa::kSuccess;
}

// The thread

constexpr int64_t kClockPeriod = 1'000'000'000;

void* follow(void*) {
  pthread_setname_np(pthread_self(), "tacho-rocm");
  tape::t_state.hidden = 1;
  int64_t clocks = raw_now();
  long nap = 1'000'000;
  while (g_finished.load(std::memory_order_relaxed) == 0) {
    const timespec wait{0, nap};
    nanosleep(&wait, nullptr);
    if (g_finished.load(std::memory_order_relaxed) != 0) break;
    // Often while work is in flight, seldom in a program that has none.
    nap = collect(false) + look_at_old_queues() != 0 ? 1'000'000 : nap < 20'000'000 ? nap * 2 : nap;
    if (raw_now() - clocks < kClockPeriod) continue;
    clocks = raw_now();
    for (uint32_t at = 0; at < device_count(); ++at) define_clock(g_devices[at]);
  }
  if (tape::attached_late()) tape::flush_thread();
  g_followers.fetch_sub(1, std::memory_order_release);
  return nullptr;
}

void start_thread() {
  g_followers.fetch_add(1, std::memory_order_relaxed);
  if (start_own_thread(follow)) return;
  g_followers.fetch_sub(1, std::memory_order_relaxed);
  tape::note(event::NoteSeverity::kWarning,
             "no thread could be started to collect AMD's dispatches: a killed program loses more of them");
}

// Waits `patience` ns at most for work that is under way.
void wait_for_work(int64_t patience) {
  const int64_t begin = raw_now();
  while (collect(false) + look_at_old_queues() + open_copies() != 0 && raw_now() - begin < patience) {
    const timespec moment{0, 50'000};
    nanosleep(&moment, nullptr);
  }
}

// At exit, before the runtime's own end: waits a moment for work that the program did not wait for.
void finish() {
  if (!active()) return;
  constexpr int64_t kPatience = 200'000'000;
  wait_for_work(kPatience);
  for (uint32_t at = 0; at < device_count(); ++at) define_clock(g_devices[at]);
  if (g_finished.exchange(1) != 0) return;
  end_old_queues();
  tell_old_queues();
  end_queues(event::LossReason::kKilled);
  end_copies(event::LossReason::kKilled);
  progress().ended.store(1, std::memory_order_release);
}

template <typename Function>
void replace(void*& entry, Function* function) {
  entry = reinterpret_cast<void*>(function);
}

void take_functions(const hsa::CoreTable& core, const hsa::AmdTable& amd) {
  memcpy(static_cast<void*>(&g_runtime.core), &core, core.version.size < sizeof core ? core.version.size : sizeof core);
  memcpy(static_cast<void*>(&g_runtime.amd), &amd, amd.version.size < sizeof amd ? amd.version.size : sizeof amd);
  call<sig::ExtensionTable>(g_runtime.core.hsa_system_get_major_extension_table, hsa::kExtensionLoader, uint16_t{1},
                            sizeof g_runtime.loader, static_cast<void*>(&g_runtime.loader));
}

// True if the runtime's GPUs are those that this session knows.
bool same_devices() {
  static constinit uint32_t s_seen = 0, s_same = 0;
  s_seen = s_same = 0;
  call<sig::IterateAgents>(
      g_runtime.core.hsa_iterate_agents,
      [](hsa::Agent agent, void*) {
        uint32_t type = 0;
        if (call<sig::AgentInfo>(g_runtime.core.hsa_agent_get_info, agent, hsa::kAgentDevice,
                                 static_cast<void*>(&type)) != hsa::kSuccess ||
            type != hsa::kDeviceGpu)
          return hsa::kSuccess;
        if (s_seen < device_count() && g_devices[s_seen].agent == agent) ++s_same;
        ++s_seen;
        return hsa::kSuccess;
      },
      nullptr);
  return s_seen == s_same && s_seen == device_count();
}

bool start(hsa::Tables* tables) {
  if (tables == nullptr || tables->core == nullptr || tables->amd == nullptr || only_opencl()) return true;
  if (!capture::start() || !tape::configuration().counter_folder.empty()) return true;
  const bool registered = road() != Road::kUndecided;
  if (!take_hsa_road()) return true;  // HSA_TOOLS_ROCPROFILER_V1_TOOLS makes the runtime load tools all the same
  hsa::CoreTable& core = *tables->core;
  hsa::AmdTable& amd = *tables->amd;
  if (!TACHO_HSA_HAS(core, hsa_executable_iterate_agent_symbols) ||
      !TACHO_HSA_HAS(amd, hsa_amd_queue_intercept_register)) {
    tape::note(event::NoteSeverity::kError, "this HSA runtime is too old for tacho (no intercept queues): the trace "
                                            "has no AMD kernels; use ROCm 5 or later");
    return true;
  }
  take_functions(core, amd);
  read_kernel_filter();
  g_pid = getpid();
  put_functions(core, amd);
  if (TACHO_HSA_HAS(amd, hsa_amd_register_system_event_handler))
    replace(amd.hsa_amd_register_system_event_handler, register_events);
  call<sig::CopyEnable>(g_runtime.amd.hsa_amd_profiling_async_copy_enable, true);
  if (tape::configuration().hsa_calls) {
    trace_calls(core, amd);
    tape::define_attached(event::Domain::kHsa);
  }
  if (tape::CommandCounts* const counts = tape::open_progress()) g_progress.store(counts, std::memory_order_release);
  tape::define_property(event::Table::kProcess, 0, "rocm.source", "hsa");
  if (!tape::configuration().device_counters.empty())
    tape::note(event::NoteSeverity::kWarning,
               "--device-counters needs AMD's rocprofiler-sdk, and this process is traced "
               "through HSA's interface for tools: no counters were read");
  if (tape::configuration().amd_source == event::AmdSource::kSdk && !registered)
    tape::note(
        event::NoteSeverity::kWarning,
        "this HSA runtime is built without rocprofiler-register, which rocprofiler-sdk needs, or loads tools before it "
        "registers: tacho traces through HSA's interface for tools instead of --amd-source sdk");
  atexit(finish);
  start_thread();
  return true;
}

}  // namespace

void put_functions(hsa::CoreTable& core, hsa::AmdTable& amd) {
  replace(core.hsa_queue_create, create_queue);
  replace(core.hsa_queue_destroy, destroy_queue);
  replace(core.hsa_executable_freeze, freeze);
  replace(core.hsa_memory_allocate, memory_allocate);
  replace(core.hsa_memory_free, memory_free);
  replace(amd.hsa_amd_memory_pool_allocate, pool_allocate);
  replace(amd.hsa_amd_memory_pool_free, pool_free);
  replace(amd.hsa_amd_memory_async_copy, async_copy);
  if (TACHO_HSA_HAS(amd, hsa_amd_memory_async_copy_on_engine))
    replace(amd.hsa_amd_memory_async_copy_on_engine, async_copy_on);
}

void begin_late_session(const hsa::CoreTable& core, const hsa::AmdTable& amd) {
  take_functions(core, amd);
  const bool first = g_late_begun == 0;
  const bool anew = g_late_begun != tape::late_session();
  if (anew || !same_devices()) {
    g_device_count.store(0, std::memory_order_relaxed);
    g_devices_found.store(false, std::memory_order_relaxed);
    read_kernel_filter();
    forget_streams();
    forget_kernels();
    forget_queues();
    forget_copies();
    find_devices();
  }
  g_late_begun = tape::late_session();
  g_pid = getpid();
  if (!learn_loaded_kernels())
    tape::note(
        event::NoteSeverity::kWarning,
        "this HSA runtime does not tell which code it has loaded: kernels that were loaded before tacho attached "
        "have no names");
  begin_old_queues(anew);
  call<sig::CopyEnable>(g_runtime.amd.hsa_amd_profiling_async_copy_enable, true);
  g_finished.store(0, std::memory_order_release);
  start_thread();
  if (first) atexit(finish);
}

void close_late_session(int64_t patience) {
  close_old_queues();
  // No dispatch and no copy is taken up from here on.
  g_pid = 0;
  wait_for_work(patience);
  for (uint32_t at = 0; at < device_count(); ++at) define_clock(g_devices[at]);
}

void end_late_session() {
  constexpr timespec kMoment{0, 200'000};
  if (g_finished.exchange(1) != 0) return;
  while (g_followers.load(std::memory_order_acquire) != 0) nanosleep(&kMoment, nullptr);
  end_old_queues();
  end_queues(event::LossReason::kUnmatched);
  end_copies(event::LossReason::kUnmatched);
}

tape::CommandCounts& progress() {
  return *g_progress.load(std::memory_order_acquire);
}

// OpenCL programs are traced by the OpenCL layer, which sees what HSA does not: calls, buffers, kernels' arguments.
bool only_opencl() {
  const auto loaded = [](const char* name) {
    void* const found = dlopen(name, RTLD_NOLOAD | RTLD_LAZY);
    if (found != nullptr) dlclose(found);
    return found != nullptr;
  };
  const bool opencl = loaded("libamdocl64.so") || loaded("libamdocl64.so.2") || loaded("libamdocl64.so.1");
  return opencl && !loaded("libamdhip64.so.7") && !loaded("libamdhip64.so.6") && !loaded("libamdhip64.so.5") &&
         !loaded("libamdhip64.so");
}

bool active() {
  return g_pid != 0 && getpid() == g_pid && g_finished.load(std::memory_order_relaxed) == 0;
}

void find_devices() {
  if (g_devices_found.load(std::memory_order_acquire)) return;
  const Guard lock(g_devices_lock);
  if (g_devices_found.load(std::memory_order_relaxed)) return;
  call<sig::IterateAgents>(g_runtime.core.hsa_iterate_agents, add_device, nullptr);
  g_devices_found.store(true, std::memory_order_release);
}

uint32_t device_count() {
  return g_device_count.load(std::memory_order_acquire);
}
HsaDevice& device_at(uint32_t index) {
  return g_devices[index];
}
HsaDevice* device_of(hsa::Agent agent) {
  find_devices();
  for (uint32_t at = 0; at < device_count(); ++at)
    if (g_devices[at].agent == agent) return &g_devices[at];
  return nullptr;
}

}  // namespace tacho::capture::rocm

namespace tacho::capture {
void finish_rocm_before_exit() {
  rocm::finish();
}
}  // namespace tacho::capture

// For the runtime (hsa_api_trace.h). False would make it unload the library.
extern "C" __attribute__((visibility("default"))) bool OnLoad(void* tables, uint64_t, uint64_t, const char* const*) {
  return tacho::capture::rocm::start(static_cast<tacho::vendor::hsa::Tables*>(tables));
}
extern "C" __attribute__((visibility("default"))) void OnUnload() {
  tacho::capture::rocm::finish();
}
