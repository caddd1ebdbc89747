// The CUDA source: the driver loads libtacho.so because CUDA_INJECTION64_PATH names it and calls InitializeInjection()
// inside cuInit(). From there on CUPTI writes its activity records into pool blocks (buffers.h); this file sets it up,
// follows pause and resume, flushes once in a period and at exit, and says in one sentence what cannot be done.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <linux/futex.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include <atomic>
#include <string_view>

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/source/cuda/buffers.h"
#include "capture/source/cuda/cupti_api.h"
#include "tape/writer.h"

namespace tacho::capture::cuda {
namespace {

constinit Cupti g_cupti{};
constinit uint32_t g_version = 0;
constinit CUpti_SubscriberHandle g_subscriber = nullptr;
constinit pid_t g_pid = 0;                        // of the process image that runs the session
constinit std::atomic<uint32_t> g_started{0};
constinit std::atomic<uint32_t> g_finished{0};
constinit std::atomic<uint64_t> g_active{0};      // source bits whose kinds are enabled now
constinit std::atomic<uint32_t> g_switch_lock{0};
constinit bool g_driver_all = false;
constinit bool g_graph_nodes = false;
constinit bool g_profiler_api = false;

// One line for the user while the target runs, and a note in the trace.
void say(event::NoteSeverity severity, const char* sentence) {
  char line[1024];
  const int size = snprintf(line, sizeof line, "tacho: %s\n", sentence);
  if (size > 0) {
    const auto length = static_cast<size_t>(size) < sizeof line ? static_cast<size_t>(size) : sizeof line - 1;
    const ssize_t ignored = write(STDERR_FILENO, line, length);
    static_cast<void>(ignored);
  }
  tape::note(severity, sentence);
}

const char* result_text(CUptiResult result) {
  const char* text = nullptr;
  if (g_cupti.get_result_string == nullptr || g_cupti.get_result_string(result, &text) != CUPTI_SUCCESS || text == nullptr)
    return "unknown error";
  return text;
}

// ---- time -----------------------------------------------------------------------------------------------------------
// CUPTI wants nanoseconds. They come from the host clock by one fixed multiplication that the drainer's side inverts
// exactly (property cupti.clock), so that conversion to CLOCK_MONOTONIC_RAW is as good as the clock tuples there.

constexpr int kClockShift = 32;
constinit uint64_t g_base_ticks = 0, g_base_ns = 0, g_multiplier = 0;

uint64_t timestamp_from_tsc() {
  const uint64_t ticks = __rdtsc() - g_base_ticks;
  return g_base_ns + static_cast<uint64_t>((static_cast<unsigned __int128>(ticks) * g_multiplier) >> kClockShift);
}
uint64_t timestamp_from_raw() { return static_cast<uint64_t>(raw_now()); }

void setup_clock() {
  char text[128];
  const char* kind = "cupti";
  CUptiResult result = CUPTI_ERROR_NOT_SUPPORTED;
  if (tape::config("cupti_clock") == "cupti") {
    kind = "cupti";
  } else if (host_clock_is_tsc()) {
    const ClockTuple first = sample_clocks();
    ClockTuple second = sample_clocks();
    while (second.raw - first.raw < 50'000) second = sample_clocks();
    const double ns_per_tick = static_cast<double>(second.raw - first.raw) / static_cast<double>(second.tsc - first.tsc);
    g_multiplier = static_cast<uint64_t>(ns_per_tick * static_cast<double>(1ull << kClockShift));
    g_base_ticks = first.tsc;
    g_base_ns = static_cast<uint64_t>(first.raw);
    kind = "tsc";
    if (g_cupti.register_timestamp != nullptr) result = g_cupti.register_timestamp(timestamp_from_tsc);
  } else {
    kind = "raw";
    if (g_cupti.register_timestamp != nullptr) result = g_cupti.register_timestamp(timestamp_from_raw);
  }
  if (result != CUPTI_SUCCESS) kind = "cupti";
  snprintf(text, sizeof text, "%s %llu %llu %llu %d", kind, static_cast<unsigned long long>(g_base_ticks),
           static_cast<unsigned long long>(g_base_ns), static_cast<unsigned long long>(g_multiplier), kClockShift);
  tape::define_property(event::Table::kProcess, 0, "cupti.clock", text);
}

// ---- kinds ----------------------------------------------------------------------------------------------------------

struct KindOfSource {
  uint64_t source;
  CUpti_ActivityKind kind;
};
constexpr KindOfSource kKinds[] = {
    {tape::source_bit::kDispatch, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL},
    {tape::source_bit::kDispatch, CUPTI_ACTIVITY_KIND_GRAPH_TRACE},
    {tape::source_bit::kCopy, CUPTI_ACTIVITY_KIND_MEMCPY},
    {tape::source_bit::kCopy, CUPTI_ACTIVITY_KIND_MEMCPY2},
    {tape::source_bit::kCopy, CUPTI_ACTIVITY_KIND_MEMSET},
    {tape::source_bit::kApi, CUPTI_ACTIVITY_KIND_RUNTIME},
    {tape::source_bit::kApi, CUPTI_ACTIVITY_KIND_DRIVER},
    {tape::source_bit::kAllocation, CUPTI_ACTIVITY_KIND_MEMORY2},
    {tape::source_bit::kSync, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION},
    {tape::source_bit::kOverhead, CUPTI_ACTIVITY_KIND_OVERHEAD},
    {tape::source_bit::kOverhead, CUPTI_ACTIVITY_KIND_JIT},
};

// Driver calls that launch work: traced also when other driver calls are not, because libraries such as Triton call
// them without the runtime.
void switch_launching_driver_calls(bool on) {
  if (g_cupti.enable_driver_api == nullptr) {
    if (on) g_cupti.activity_enable(CUPTI_ACTIVITY_KIND_DRIVER);
    else g_cupti.activity_disable(CUPTI_ACTIVITY_KIND_DRIVER);
    return;
  }
  for (uint32_t id = 1; id < 2048; ++id) {
    const char* name = nullptr;
    if (g_cupti.get_callback_name(CUPTI_CB_DOMAIN_DRIVER_API, id, &name) != CUPTI_SUCCESS || name == nullptr) continue;
    if (strncmp(name, "cuLaunch", 8) == 0 || strncmp(name, "cuGraphLaunch", 13) == 0)
      g_cupti.enable_driver_api(id, on ? 1 : 0);
  }
}

void switch_kind(CUpti_ActivityKind kind, bool on) {
  if (kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE && g_graph_nodes) return;
  if (kind == CUPTI_ACTIVITY_KIND_DRIVER && !g_driver_all) return switch_launching_driver_calls(on);
  const CUptiResult result = on ? g_cupti.activity_enable(kind) : g_cupti.activity_disable(kind);
  if (on && result != CUPTI_SUCCESS && kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    char line[256];
    snprintf(line, sizeof line, "CUPTI cannot trace kernels here (%s): the trace has none", result_text(result));
    say(event::NoteSeverity::kError, line);
  }
}

// Makes the kinds that are enabled follow `wanted` (source bits).
void apply_sources(uint64_t wanted) {
  while (g_switch_lock.exchange(1, std::memory_order_acquire) != 0) sched_yield();
  const uint64_t active = g_active.load(std::memory_order_relaxed);
  if (wanted != active) {
    for (const KindOfSource& entry : kKinds) {
      const bool now = (active & entry.source) != 0, then = (wanted & entry.source) != 0;
      if (now != then) switch_kind(entry.kind, then);
    }
    g_active.store(wanted, std::memory_order_relaxed);
  }
  g_switch_lock.store(0, std::memory_order_release);
}

// ---- callbacks ------------------------------------------------------------------------------------------------------

void set_enabled(uint64_t sources) {
  tape::pool()->enabled.store(sources, std::memory_order_relaxed);
  apply_sources(sources);
}

void on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  if (g_finished.load(std::memory_order_relaxed) != 0) return;
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
    const auto* const call = static_cast<const CUpti_CallbackData*>(data);
    if (id == CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStart_v4000 && call->callbackSite == CUPTI_API_EXIT && g_profiler_api)
      set_enabled(tape::pool()->sources);
    else if (id == CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStop_v4000 && call->callbackSite == CUPTI_API_ENTER && g_profiler_api)
      set_enabled(0);
    else if (id == CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020 && call->callbackSite == CUPTI_API_ENTER)
      g_cupti.flush_all(0);
  }
}

void enable_callbacks() {
  for (const uint32_t id : {CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStart_v4000, CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStop_v4000,
                            CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020})
    g_cupti.enable_callback(1, g_subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, id);
}

// ---- flushing -------------------------------------------------------------------------------------------------------

void* follow(void*) {
  pthread_setname_np(pthread_self(), "tacho-cupti");
  tape::PoolHeader* const pool = tape::pool();
  const uint32_t period = pool->flush_period_ms == 0 ? 1000 : pool->flush_period_ms;
  int64_t last_flush = raw_now();
  while (g_finished.load(std::memory_order_relaxed) == 0) {
    // Wakes at once when the launcher changes `enabled` and wakes its waiters, otherwise soon.
    const uint64_t seen = pool->enabled.load(std::memory_order_relaxed);
    if (seen == g_active.load(std::memory_order_relaxed)) {
      const timespec wait{0, 50'000'000};
      syscall(SYS_futex, &pool->enabled, FUTEX_WAIT, static_cast<uint32_t>(seen), &wait, nullptr, 0);
    }
    if (g_finished.load(std::memory_order_relaxed) != 0) break;
    const uint64_t wanted = pool->enabled.load(std::memory_order_relaxed);
    if (wanted != g_active.load(std::memory_order_relaxed)) apply_sources(wanted);
    const int64_t now = raw_now();
    if (now - last_flush >= int64_t{period} * 1'000'000 || pool->closing.load(std::memory_order_relaxed) != 0) {
      g_cupti.flush_all(0);
      last_flush = raw_now();
    }
  }
  return nullptr;
}

void start_thread() {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 256 * 1024);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, follow, nullptr) != 0)
    say(event::NoteSeverity::kWarning, "no thread could be started to flush CUPTI's records: a killed program loses more of them");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
}

// At exit: what the device has finished, then what is left. Waits a moment for work that the program did not wait for.
void finish() {
  if (g_started.load() == 0 || getpid() != g_pid || g_finished.exchange(1) != 0) return;
  const int64_t begin = raw_now();
  g_cupti.flush_all(0);
  constexpr int64_t kPatience = 200'000'000;
  while (incomplete_records() != 0 && raw_now() - begin < kPatience) {
    const timespec moment{0, 1'000'000};
    nanosleep(&moment, nullptr);
    g_cupti.flush_all(0);
  }
  mark_last_buffers();
  g_cupti.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  count_dropped_records();
  char text[32];
  snprintf(text, sizeof text, "%lld", static_cast<long long>(raw_now() - begin));
  tape::define_property(event::Table::kProcess, 0, "cupti.exit_ns", text);
}

// ---- start ----------------------------------------------------------------------------------------------------------

uint32_t number_from(std::string_view text, uint32_t fallback) {
  uint32_t number = 0;
  if (text.empty()) return fallback;
  for (const char c : text) {
    if (c < '0' || c > '9' || number > 100'000'000) return fallback;
    number = number * 10 + static_cast<uint32_t>(c - '0');
  }
  return number;
}

void set_size_attribute(CUpti_ActivityAttribute attribute, std::string_view value) {
  size_t number = number_from(value, 0), size = sizeof number;
  if (number != 0) g_cupti.set_attribute(attribute, &size, &number);
}

bool subscribe() {
  CUptiResult result;
  char other[128] = {};
  if (g_cupti.subscribe_v2 != nullptr) {
    // As CUpti_SubscriberParams of CUPTI 12.8 and later, which older headers lack.
    struct {
      size_t size;
      const char* name;
      char* old_name;
      size_t old_size;
    } parameters = {sizeof parameters, "tacho", other, sizeof other};
    using Subscribe = CUptiResult (*)(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*, void*);
    result = reinterpret_cast<Subscribe>(g_cupti.subscribe_v2)(&g_subscriber, on_callback, nullptr, &parameters);
  } else {
    result = g_cupti.subscribe(&g_subscriber, on_callback, nullptr);
  }
  if (result == CUPTI_SUCCESS) return true;
  char line[512];
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    snprintf(line, sizeof line, "another profiler%s%s already uses CUPTI in process %d and keeps its GPU records; tacho traces the rest",
             other[0] != '\0' ? ", " : "", other, static_cast<int>(getpid()));
  } else {
    snprintf(line, sizeof line, "CUPTI (%s) refuses to start: %s; the program runs, its CUDA activity is not traced", g_cupti.path,
             result_text(result));
  }
  say(event::NoteSeverity::kWarning, line);
  return false;
}

bool start_session() {
  if (tape::config("cuda_trace", "1") == "0") return false;
  if (tape::config("yield_to_app", "0") == "1") {
    tape::note(event::NoteSeverity::kInfo, "CUPTI was left to the program (--yield-to-app): no CUDA activity in this trace");
    return false;
  }
  char configured[512] = {}, tried[1024];
  const std::string_view file = tape::config("cupti");
  if (file.size() < sizeof configured) memcpy(configured, file.data(), file.size());
  if (!load_cupti(g_cupti, configured, tried, sizeof tried)) {
    char line[1280];
    snprintf(line, sizeof line,
             "CUPTI (libcupti.so) was not found (looked at %s): the program runs, its CUDA activity is not traced; install "
             "the toolkit's CUPTI or set CUDA_HOME", tried);
    say(event::NoteSeverity::kWarning, line);
    return false;
  }
  g_cupti.get_version(&g_version);
  g_driver_all = tape::config("driver_trace", "launch") == "all";
  g_graph_nodes = tape::config("graph_trace", "graph") == "node";
  g_profiler_api = tape::config("profiler_api", "0") == "1";
  if (!subscribe()) return false;
  g_pid = getpid();
  char text[64];
  snprintf(text, sizeof text, "%u", g_version);
  tape::define_property(event::Table::kProcess, 0, "cupti.version", text);
  tape::define_property(event::Table::kProcess, 0, "cupti.path", g_cupti.path);
  tape::define_property(event::Table::kProcess, 0, "cupti.found", g_cupti.found_by);
  setup_clock();
  if (tape::config("cupti_thread_ids", "1") == "1" && g_cupti.set_thread_id_type != nullptr) g_cupti.set_thread_id_type(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  if (const std::string_view value = tape::config("cupti_per_thread"); !value.empty()) {
    uint8_t number = value == "1";
    size_t size = sizeof number;
    g_cupti.set_attribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &number);
  }
  set_size_attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, tape::config("cupti_device_buffer"));
  set_size_attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, tape::config("cupti_device_pool"));
  const uint32_t blocks = number_from(tape::config("cupti_blocks"), 4);
  setup_buffers(g_cupti, g_version, blocks == 0 || blocks > 256 ? 4 : blocks);
  CUptiResult result = g_cupti.register_callbacks(buffer_requested, buffer_completed);
  if (result != CUPTI_SUCCESS) {
    char line[256];
    snprintf(line, sizeof line, "CUPTI takes no buffers from tacho (%s): the CUDA activity is not traced", result_text(result));
    say(event::NoteSeverity::kError, line);
    return false;
  }
  g_started.store(1);
  enable_callbacks();
  apply_sources(tape::pool()->enabled.load(std::memory_order_relaxed));
  atexit(finish);
  start_thread();
  return true;
}

}  // namespace
}  // namespace tacho::capture::cuda

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  if (!tacho::capture::start()) return 1;
  tacho::capture::cuda::start_session();
  return 1;  // never a reason for the driver to complain: the program runs in any case
}
