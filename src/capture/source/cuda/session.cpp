// The CUDA source when it traces (injection.cpp starts it inside cuInit()): CUPTI writes its activity records into pool
// blocks (buffers.h). This file sets CUPTI up, follows pause and resume, flushes once in a period and at exit, and
// warns in one sentence if something fails.
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>
#include <string_view>

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/own_thread.h"
#include "capture/room/lock.h"
#include "capture/room/say.h"
#include "capture/source/cuda/buffers.h"
#include "capture/source/cuda/cupti_api.h"
#include "capture/source/cuda/ending.h"
#include "capture/source/cuda/graphs.h"
#include "capture/source/cuda/other_profiler.h"
#include "capture/source/cuda/own_call.h"
#include "capture/source/cuda/own_subscriber.h"
#include "capture/source/sampler/counts.h"
#include "capture/source/sampler/sampler.h"
#include "tape/gate.h"
#include "tape/writer.h"
#include "vendor/nvidia/call_parameters.h"

namespace tacho::capture::cuda {
namespace {

constinit Cupti g_cupti{};
constinit uint32_t g_version = 0;
constinit abi::Subscriber g_subscriber = nullptr;
constinit pid_t g_pid = 0;  // of the process image that runs the session
constinit std::atomic<uint32_t> g_started{0};
constinit std::atomic<uint32_t> g_finished{0};
constinit std::atomic<uint64_t> g_active{0};  // source bits whose kinds are enabled now
constinit std::atomic<uint32_t> g_switch_lock{0};
constinit bool g_driver_all = false;
constinit bool g_all_calls = false;
constinit bool g_driver_started = false;
constinit bool g_graph_nodes = false;
constinit bool g_synchronization = false;
constinit bool g_profiler_api = false;
// Beside another profiler (other_profiler.h), which keeps the subscriber: there are records, but no callbacks.
constinit bool g_beside = false;
constinit bool g_others_clock = false;  // another profiler was at CUPTI before, whose clock stays

void say_and_note(event::NoteSeverity severity, const char* sentence) {
  if (!tape::attached_late()) say(sentence);  // the program's output is its own
  tape::note(severity, sentence);
}

const char* result_text(abi::Result result) {
  const char* text = nullptr;
  if (g_cupti.get_result_string == nullptr || g_cupti.get_result_string(result, &text) != abi::kSuccess ||
      text == nullptr)
    return "unknown error";
  return text;
}

// Refusals with a known cause: the cause and the advice. Null for others.
struct Refusal {
  const char *cause, *advice;
};
Refusal refusal(abi::Result result) {
  switch (result) {
    case abi::kInsufficientPrivileges:
      return {"the NVIDIA driver lets only administrators profile",
              "see NVreg_RestrictProfilingToAdminUsers (developer.nvidia.com/ERR_NVGPUCTRPERM)"};
    case abi::kVirtualNotSupported:
    case abi::kVirtualPrivileges:
      return {"this is a virtual GPU (vGPU) on which the host does not allow profiling",
              "the host's administrator can allow it (enable_profiling of the vGPU's plugin)"};
    case abi::kMigNotSupported:
      return {"CUPTI cannot trace this MIG instance", "use a newer toolkit's CUPTI (CUDA_HOME), or a whole GPU"};
    case abi::kConfidential:
      return {"the GPU is in confidential computing mode, in which CUPTI does not trace", "use a GPU without it"};
    case abi::kWslNotSupported:
      return {"CUPTI cannot trace under this version of WSL", "update Windows' NVIDIA driver"};
    default:
      return {};
  }
}
void say_refusal(const Refusal& why) {
  char line[512];
  snprintf(line, sizeof line, "%s: the program runs, its CUDA activity is not traced; %s", why.cause, why.advice);
  say_and_note(event::NoteSeverity::kWarning, line);
}

// Time
// CUPTI wants nanoseconds. They come from the host clock by one fixed multiplication that the drainer's side inverts
// exactly (BlockClockRecord), so that conversion to CLOCK_MONOTONIC_RAW is as good as the clock tuples there.

constexpr int kClockShift = 32;
constinit uint64_t g_base_ticks = 0, g_base_ns = 0, g_multiplier = 0;
constinit bool g_pairs = false;  // CUPTI uses its own clock
// Up to CUPTI 13.0 every new registration spoils the times of one more record: once in a process's life.
constinit bool g_clock_registered = false;

uint64_t timestamp_from_tsc() {
  const uint64_t ticks = __rdtsc() - g_base_ticks;
  return g_base_ns + static_cast<uint64_t>((static_cast<unsigned __int128>(ticks) * g_multiplier) >> kClockShift);
}
uint64_t timestamp_from_raw() {
  return static_cast<uint64_t>(raw_now());
}

// The same moment in CUPTI's clock and ours, the best of a few tries.
void define_clock_pair() {
  event::ClockPairRecord best{};
  best.uncertainty = ~0ull;
  for (int attempt = 0; attempt < 5; ++attempt) {
    uint64_t theirs = 0;
    const int64_t raw = raw_now();
    const uint64_t before = host_ticks();
    if (g_cupti.get_timestamp(&theirs) != abi::kSuccess) return;
    const uint64_t after = host_ticks();
    const auto uncertainty = static_cast<uint64_t>(raw_now() - raw) / 2;
    if (uncertainty < best.uncertainty) {
      best.host = before + (after - before) / 2;
      best.device = theirs;
      best.uncertainty = uncertainty;
    }
  }
  best.header = {event::RecordKind::kClockPair, static_cast<uint8_t>(kBlocks), sizeof best, 0};
  tape::define(&best.header);
}

// Whether the callback that an earlier session registered is still CUPTI's clock: a profiler of the program's own may
// have registered another since.
bool clock_is_ours() {
  uint64_t theirs = 0;
  if (g_cupti.get_timestamp(&theirs) != abi::kSuccess) return false;
  const uint64_t ours = host_clock_is_tsc() ? timestamp_from_tsc() : timestamp_from_raw();
  constexpr uint64_t kSlack = 10'000'000;  // ns
  return theirs <= ours && ours - theirs < kSlack;
}

void define_clock(event::BlockClock kind) {
  event::BlockClockRecord record{};
  record.header = {event::RecordKind::kBlockClock, static_cast<uint8_t>(kBlocks), sizeof record,
                   static_cast<uint32_t>(kind)};
  record.base_ticks = g_base_ticks;
  record.base_ns = g_base_ns;
  record.multiplier = g_multiplier;
  record.shift = kClockShift;
  tape::define(&record.header);
  if (g_pairs) define_clock_pair();
}

void setup_clock() {
  if (g_others_clock) {
    // Its ticks may be no nanoseconds: two pairs tell how long they last.
    g_pairs = true;
    define_clock(event::BlockClock::kPaired);
    const timespec between{0, 20'000'000};
    nanosleep(&between, nullptr);
    return define_clock_pair();
  }
  if (g_clock_registered) {
    g_pairs = tape::configuration().cupti_clock || !clock_is_ours();
    return define_clock(g_pairs               ? event::BlockClock::kPaired
                        : host_clock_is_tsc() ? event::BlockClock::kScaled
                                              : event::BlockClock::kMonotonicRaw);
  }
  auto kind = event::BlockClock::kPaired;
  abi::Result result = abi::kNotSupported;
  if (tape::configuration().cupti_clock) {
    kind = event::BlockClock::kPaired;
  } else if (host_clock_is_tsc()) {
    const ClockTuple first = sample_clocks();
    ClockTuple second = sample_clocks();
    while (second.raw - first.raw < 50'000) second = sample_clocks();
    const double ns_per_tick =
        static_cast<double>(second.raw - first.raw) / static_cast<double>(second.tsc - first.tsc);
    g_multiplier = static_cast<uint64_t>(ns_per_tick * static_cast<double>(1ull << kClockShift));
    g_base_ticks = first.tsc;
    g_base_ns = static_cast<uint64_t>(first.raw);
    kind = event::BlockClock::kScaled;
    if (g_cupti.register_timestamp != nullptr) result = g_cupti.register_timestamp(timestamp_from_tsc);
  } else {
    kind = event::BlockClock::kMonotonicRaw;
    if (g_cupti.register_timestamp != nullptr) result = g_cupti.register_timestamp(timestamp_from_raw);
  }
  g_clock_registered = result == abi::kSuccess;
  if (result != abi::kSuccess) kind = event::BlockClock::kPaired;
  g_pairs = result != abi::kSuccess;
  define_clock(kind);
}

// Kinds

struct KindOfSource {
  uint64_t source;
  int kind;
};
constexpr KindOfSource kKinds[] = {
    {tape::source_bit::kDispatch, abi::kind::kKernel},     {tape::source_bit::kCopy, abi::kind::kCopy},
    {tape::source_bit::kCopy, abi::kind::kPeerCopy},       {tape::source_bit::kCopy, abi::kind::kFill},
    {tape::source_bit::kApi, abi::kind::kRuntime},         {tape::source_bit::kApi, abi::kind::kDriver},
    {tape::source_bit::kAllocation, abi::kind::kMemory2},  {tape::source_bit::kSync, abi::kind::kSynchronization},
    {tape::source_bit::kOverhead, abi::kind::kOverhead},   {tape::source_bit::kOverhead, abi::kind::kJit},
    {tape::source_bit::kDispatch, abi::kind::kHostLaunch}, {tape::source_bit::kDispatch, abi::kind::kGraphHostNode},
};

// CUPTI can switch single functions. Off at any time; on only before the driver starts (later it has no effect, seen
// with CUPTI 13.0), and then the functions left off cost nothing. So `few`, when it is early enough, are switched on by
// themselves; otherwise all are switched on and then some off.
using SwitchFunction = abi::Result (*)(uint32_t, uint8_t);
using Wanted = bool (*)(const char* name);

void switch_functions(int domain, int kind, SwitchFunction switch_one, Wanted wanted, bool few, bool on) {
  const bool early = few && on && switch_one != nullptr && !g_driver_started;
  if (!on)
    g_cupti.activity_disable(kind);
  else if (!early)
    g_cupti.activity_enable(kind);
  if (switch_one == nullptr) return;
  for (uint32_t id = 1; id < 2048; ++id) {
    const char* name = nullptr;
    if (g_cupti.get_callback_name(domain, id, &name) != abi::kSuccess || name == nullptr) continue;
    if (early ? wanted(name) : on ? !wanted(name) : wanted(name)) switch_one(id, early ? 1 : 0);
  }
}

// Driver calls that launch work: traced also when other driver calls are not, because libraries such as Triton call
// them without the runtime.
bool launches_from_driver(const char* name) {
  return strncmp(name, "cuLaunch", 8) == 0 || strncmp(name, "cuGraphLaunch", 13) == 0;
}

// Runtime calls that only ask, are over in nanoseconds and come by the thousand (PyTorch asks for the device ten times
// for every kernel it launches): tracing them costs more than all other calls together.
constexpr const char* kQuestions[] = {"cudaGetDevice_v",          "cudaGetLastError_v",
                                      "cudaPeekAtLastError_v",    "cudaDeviceGetAttribute_v",
                                      "cudaGetDeviceFlags_v",     "cudaStreamIsCapturing",
                                      "cudaStreamGetCaptureInfo", "cudaThreadExchangeStreamCaptureMode",
                                      "cudaDriverGetVersion_v",   "cudaRuntimeGetVersion_v",
                                      "cudaStreamGetPriority",    "cudaStreamGetFlags",
                                      "cudaStreamGetId",          "cudaStreamGetDevice"};

bool does_something(const char* name) {
  for (const char* question : kQuestions)
    if (strncmp(name, question, strlen(question)) == 0) return false;
  return true;
}

// Spans of graphs are never switched: the driver (580, CUPTI 13.0) dies in the launch of a graph that was instantiated
// while CUPTI did not make them and is launched while it does. They are on from the start, and the decoder drops those
// that nobody wants. In a program that ran before they come too late: its graphs are recorded node by node.
bool wants_spans() {
  return !g_graph_nodes && !tape::attached_late() && (tape::pool()->sources & tape::source_bit::kDispatch) != 0;
}
void define_span_window(bool wanted) {
  if (wants_spans())
    tape::define_fact(kBlocks, wanted ? event::BlockFact::kSpansStart : event::BlockFact::kSpansStop, host_ticks());
}

// Kinds of CUDA 13.1: functions of the host in streams and in graphs, green contexts. Older ones count fewer kinds.
bool has_host_functions() {
  return g_version >= 130100;
}

constinit bool g_driver_kind = false;  // calls of the driver's are recorded

void switch_kind(int kind, bool on) {
  if (kind == abi::kind::kDriver) g_driver_kind = on;
  if ((kind == abi::kind::kHostLaunch || kind == abi::kind::kGraphHostNode) && !has_host_functions()) return;
  if (kind == abi::kind::kSynchronization && !g_synchronization) return;
  if (kind == abi::kind::kRuntime && !g_all_calls)
    return switch_functions(abi::domain::kRuntime, kind, g_cupti.enable_runtime_api, does_something, false, on);
  if (kind == abi::kind::kDriver && !g_driver_all)
    return switch_functions(abi::domain::kDriver, kind, g_cupti.enable_driver_api, launches_from_driver, true, on);
  const abi::Result result = on ? g_cupti.activity_enable(kind) : g_cupti.activity_disable(kind);
  if (on && result != abi::kSuccess && kind == abi::kind::kKernel) {
    if (const Refusal why = refusal(result); why.cause != nullptr) return say_refusal(why);
    char line[256];
    snprintf(line, sizeof line, "CUPTI cannot trace kernels here (%s): the trace has none", result_text(result));
    say_and_note(event::NoteSeverity::kError, line);
  }
}

// CUPTI forgets work in flight when its kind is disabled: wait for it, but not for long.
void wait_for_device(int64_t patience_ns) {
  const int64_t begin = raw_now();
  g_cupti.flush_all(0);
  while (incomplete_records() != 0 && raw_now() - begin < patience_ns) {
    const timespec moment{0, 200'000};
    nanosleep(&moment, nullptr);
    g_cupti.flush_all(0);
  }
}

uint32_t number_of_now();

// In a program that ran before, work goes on while CUPTI is switched. The number of a call of our own separates what
// was launched before from the rest: CUPTI hands over only some of what is launched while its kinds are switched.
// The number, or 0.
constinit bool g_stopped_at_number = false;
// Without callbacks the call itself has been recorded, and belongs to neither side.
void define_switch(event::BlockFact fact, uint32_t number) {
  tape::define_fact(kBlocks, fact, g_beside && fact == event::BlockFact::kRecordingStarts ? number + 1 : number);
}
uint32_t mark_switch(event::BlockFact fact) {
  if (!tape::attached_late() || (fact == event::BlockFact::kRecordingStarts && !g_stopped_at_number)) return 0;
  const uint32_t now = number_of_now();
  if (now == 0) return 0;
  g_stopped_at_number = fact == event::BlockFact::kRecordingStops;
  define_switch(fact, now);
  return now;
}

constinit std::atomic<bool> g_yields{false};  // the session ends because another profiler begins

// Finalising CUPTI waits for all that runs on the device, and the program's calls with it (seen with CUPTI 13.0): for a
// kernel that ends only when the program tells it to, for ever. True: when CUPTI was switched off in a program that ran
// before, something was running for long.
constinit bool g_runs_long = false;

// False if kernels or copies of calls below `number` have not ended after 0.5 s.
bool wait_for_launched_before(uint32_t number) {
  constexpr int64_t kPatience = 500'000'000;
  const int64_t begin = raw_now();
  g_cupti.flush_all(0);
  while (incomplete_records_before(number) != 0) {
    if (raw_now() - begin > kPatience) return false;
    const timespec moment{0, 200'000};
    nanosleep(&moment, nullptr);
    g_cupti.flush_all(0);
  }
  return true;
}

// Makes the kinds that are enabled follow `wanted` (source bits).
void apply_sources(uint64_t wanted) {
  const Guard guard(g_switch_lock);
  const uint64_t active = g_active.load(std::memory_order_relaxed);
  if (wanted != active) {
    constexpr uint64_t kOnDevice = tape::source_bit::kDispatch | tape::source_bit::kCopy;
    const uint32_t number = wanted == 0 ? mark_switch(event::BlockFact::kRecordingStops) : 0;
    g_runs_long = false;
    const bool others = g_others_clock || g_yields.load();  // CUPTI is left to them
    if (number != 0 && (active & kOnDevice) != 0 && !others)
      g_runs_long = !wait_for_launched_before(number);
    else if ((active & ~wanted & kOnDevice) != 0)
      wait_for_device(50'000'000);
    for (const KindOfSource& entry : kKinds) {
      const bool now = (active & entry.source) != 0, then = (wanted & entry.source) != 0;
      if (now != then) switch_kind(entry.kind, then);
    }
    if (active == 0) mark_switch(event::BlockFact::kRecordingStarts);
    if (((active ^ wanted) & tape::source_bit::kDispatch) != 0)
      define_span_window((wanted & tape::source_bit::kDispatch) != 0);
    g_active.store(wanted, std::memory_order_relaxed);
  }
}

void define_driver() {
  int version = 0;
  using GetVersion = int (*)(int*);
  if (const auto get = reinterpret_cast<GetVersion>(find_in_driver("cuDriverGetVersion"));
      get != nullptr && get(&version) == 0) {
    char text[48];
    snprintf(text, sizeof text, "CUDA driver %d.%d", version / 1000, version % 1000 / 10);
    tape::define_fact(kBlocks, event::BlockFact::kDriver, 0, text);
  }
}

// Inside cuInit, once the driver can be asked.
void on_driver_ready() {
  g_driver_started = true;
  define_driver();
  const abi::Result result = g_cupti.enable_hw_trace == nullptr ? abi::kNotSupported : g_cupti.enable_hw_trace(1);
  tape::define_property(event::Table::kProcess, 0, "cupti.hw_trace",
                        result == abi::kSuccess ? "used" : result_text(result));
}

// Callbacks

// Recording stops or starts with the call whose callback this is. Inside a call CUPTI completes nothing, so only our
// own thread can wait for work in flight: it disables the kinds of device work a little later. The number of the call
// separates work launched meanwhile from the rest (BlockFact::kRecordingStarts and kRecordingStops).
void set_open(uint32_t gate, bool open, uint32_t correlation) {
  tape::PoolHeader* const pool = tape::pool();
  if (!tape::set_gate(*pool, gate, open)) return;
  const uint64_t sources = pool->enabled.load(std::memory_order_relaxed);
  tape::define_fact(kBlocks, sources != 0 ? event::BlockFact::kRecordingStarts : event::BlockFact::kRecordingStops,
                    correlation);
  if (sources != 0) {
    apply_sources(sources);
  } else {
    g_cupti.activity_disable(abi::kind::kRuntime);
    g_cupti.activity_disable(abi::kind::kDriver);
  }
  syscall(SYS_futex, &pool->enabled, FUTEX_WAKE, 1 << 20, nullptr, nullptr, 0);
}

// CUPTI's number of a call that tacho makes; earlier calls of the program have lower ones. 0 = unknown.
constinit std::atomic<uint32_t> g_number_now{0};
// Launching calls are watched only when --start-on or --stop-on counts them.
constinit uint64_t g_start_launch = 0, g_stop_launch = 0;
// In a program that runs already, launches count from when their kernels are recorded.
constinit std::atomic<bool> g_counts_launches{false};

// Where another profiler has the callbacks: all of the driver's calls are recorded for the moment of the call.
uint32_t number_by_record() {
  const uint32_t function = number_of_own_function(g_cupti);
  if (function == 0) return 0;
  newest_call(function);
  g_cupti.activity_enable(abi::kind::kDriver);
  call_own_function();
  if (g_driver_kind)
    switch_kind(abi::kind::kDriver, true);
  else
    g_cupti.activity_disable(abi::kind::kDriver);
  g_counts_launches.store(true, std::memory_order_release);
  return newest_call(function);
}

uint32_t number_of_now() {
  if (g_beside) return number_by_record();
  g_number_now.store(0, std::memory_order_relaxed);
  make_own_call(g_cupti, g_subscriber, [](const abi::CallbackData& call) {
    g_number_now.store(call.correlation, std::memory_order_relaxed);
    g_counts_launches.store(true, std::memory_order_release);
    return true;
  });
  return g_number_now.load(std::memory_order_relaxed);
}

// The runtime launches through the driver: both calls come, with the same number.
constinit std::atomic<uint32_t> g_counted[256] = {};

void count_launch(uint32_t correlation) {
  if (g_counted[correlation % 256].exchange(correlation, std::memory_order_relaxed) == correlation) return;
  const tape::LaunchTriggers triggers = tape::count_run_launch(*tape::pool(), 0);
  if (triggers.starts) set_open(tape::gate::kTrigger, true, correlation);
  if (triggers.stops) set_open(tape::gate::kTrigger, false, correlation);
}

// Without callbacks launches are counted by their records, before tacho gets these. CUPTI may hand over those of one
// thread before earlier ones of another; the numbers are exact where it has one buffer for all.
constinit uint32_t g_first_launch = 0;
void count_recorded_launch(uint32_t number) {
  if (static_cast<int32_t>(number - g_first_launch) < 0) return;
  tape::PoolHeader* const pool = tape::pool();
  if (!tape::count_run_launch(*pool, 0).stops || !tape::set_gate(*pool, tape::gate::kTrigger, false)) return;
  tape::define_fact(kBlocks, event::BlockFact::kRecordingStops, number);
  syscall(SYS_futex, &pool->enabled, FUTEX_WAKE, 1 << 20, nullptr, nullptr, 0);  // our thread switches the kinds
}

bool launches(const char* function) {
  if (function == nullptr || strstr(function, "HostFunc") != nullptr) return false;
  return strncmp(function, "cudaLaunch", 10) == 0 || strncmp(function, "cuLaunch", 8) == 0;
}
// True for calls that cause device work: their Python stack is recorded (sampler.h).
bool causes_work(const char* function) {
  if (function == nullptr) return false;
  const bool runtime = strncmp(function, "cuda", 4) == 0;
  const char* const rest = function + (runtime ? 4 : 2);
  for (const char* what : {"Launch", "Memcpy", "Memset", "GraphLaunch"})
    if (strncmp(rest, what, strlen(what)) == 0) return true;
  return false;
}
bool allocates(const char* function) {
  if (function == nullptr) return false;
  const bool runtime = strncmp(function, "cuda", 4) == 0;
  const char* const rest = function + (runtime ? 4 : 2);
  for (const char* what : {"Malloc", "HostAlloc", "MemAlloc", "MemHostAlloc", "MemCreate"})
    if (strncmp(rest, what, strlen(what)) == 0) return true;
  return false;
}
// Whether calls that allocate leave their stacks.
bool allocation_stacks() {
  return tape::configuration().memory && sampler::g_launch_stacks.load(std::memory_order_relaxed);
}
bool launches_graph(const char* function) {
  return function != nullptr && strncmp(function, "cuGraphLaunch", 13) == 0;
}
// While kernels are recorded in a program that runs already.
constinit std::atomic<uint64_t> g_graph_launches{0};

bool instantiates(const char* function) {
  return function != nullptr &&
         (strncmp(function, "cudaGraphInstantiate", 20) == 0 || strncmp(function, "cuGraphInstantiate", 18) == 0);
}

// Arguments (configuration: api_args)

struct Parameters {
  uint32_t name;   // string: the callback's
  uint32_t bytes;  // 0 = not recorded
};
constinit Parameters g_parameters[2][kCallbacks] = {};  // runtime, driver

void learn_parameters(bool driver, uint32_t id, const char* name) {
  const vendor::CallParameters* const call = vendor::nvidia::find_call_parameters(name);
  if (call != nullptr) g_parameters[driver][id] = {tape::intern(name), static_cast<uint32_t>(vendor::bytes_of(*call))};
}

// At the call's end. Records where the outputs are, not the values that the call wrote there.
void write_parameters(bool driver, uint32_t id, const abi::CallbackData& call) {
  const Parameters& of = g_parameters[driver][id];
  if (of.bytes == 0 || call.parameters == nullptr || !tape::enabled(tape::source_bit::kApi)) return;
  auto* const record = tape::begin<event::ArgumentsRecord>(
      event::RecordKind::kArguments, event::Table::kApi, static_cast<uint32_t>(kBlocks),
      static_cast<uint8_t>(event::ArgumentsOf::kVendorCall), 2 * sizeof(uint64_t) + of.bytes);
  if (record == nullptr) return;
  record->correlation = call.correlation;
  auto* const words = reinterpret_cast<uint64_t*>(record + 1);
  words[0] = of.name;
  words[1] = driver;
  memcpy(words + 2, call.parameters, of.bytes);
  tape::commit();
}

void on_callback(void*, int domain, uint32_t id, const void* data) {
  const bool is_call = domain == abi::domain::kRuntime || domain == abi::domain::kDriver;
  if (is_call && see_own_call(*static_cast<const abi::CallbackData*>(data))) return;
  see_graph_call(domain, id);
  if (!session_active()) return;
  if (domain == abi::domain::kResource) {
    if (id == abi::callback::kInitFinished) on_driver_ready();
    if (id == abi::callback::kGraphCreated || id == abi::callback::kGraphNodeCreated ||
        id == abi::callback::kGraphNodeCloned)
      if (const auto* const graph =
              static_cast<const abi::GraphData*>(static_cast<const abi::ResourceData*>(data)->descriptor);
          graph != nullptr) {
        if (id == abi::callback::kGraphCreated)
          number_graph(g_cupti, graph->graph);
        else
          mark_graph_node(g_cupti, graph->node, id == abi::callback::kGraphNodeCloned ? graph->original_node : nullptr);
      }
    return;
  }
  if (!is_call) return;
  const auto* const call = static_cast<const abi::CallbackData*>(data);
  if (call->site == abi::kEnter && sampler::g_launch_stacks.load(std::memory_order_relaxed) &&
      causes_work(call->function))
    sampler::launch_stack(call->correlation);
  if (call->site == abi::kEnter && allocation_stacks() && allocates(call->function))
    sampler::allocation_stack(call->correlation, host_ticks(), false);
  if (sampler::counts_calls() && causes_work(call->function)) {
    if (call->site == abi::kEnter)
      sampler::begin_call_counts();
    else
      sampler::end_call_counts(call->correlation, host_ticks());
  }
  if (call->site == abi::kExit && id < kCallbacks) write_parameters(domain == abi::domain::kDriver, id, *call);
  if (domain == abi::domain::kRuntime && id == abi::callback::kProfilerStart) {
    if (call->site == abi::kExit && g_profiler_api) set_open(tape::gate::kProgram, true, call->correlation);
  } else if (domain == abi::domain::kRuntime && id == abi::callback::kProfilerStop) {
    if (call->site == abi::kEnter && g_profiler_api) set_open(tape::gate::kProgram, false, call->correlation);
  } else if (domain == abi::domain::kRuntime && id == abi::callback::kDeviceReset) {
    if (call->site == abi::kEnter) g_cupti.flush_all(0);
  } else if ((g_start_launch != 0 || g_stop_launch != 0) && launches(call->function)) {
    if (call->site == abi::kEnter && g_counts_launches.load(std::memory_order_acquire)) count_launch(call->correlation);
  } else if (launches_graph(call->function)) {
    if (call->site == abi::kEnter && (g_active.load(std::memory_order_relaxed) & tape::source_bit::kDispatch) != 0)
      g_graph_launches.fetch_add(1, std::memory_order_relaxed);
  } else if (instantiates(call->function) && call->site == abi::kExit && call->parameters != nullptr) {
    // Every version's parameters begin with where the executable graph goes and the graph.
    const auto* const parameters = static_cast<void* const*>(call->parameters);
    const bool worked = call->result != nullptr && *static_cast<const int*>(call->result) == 0;
    if (worked && parameters[0] != nullptr) describe_graph(g_cupti, parameters[1], *static_cast<void**>(parameters[0]));
  }
}

void enable_callbacks() {
  memset(static_cast<void*>(g_parameters), 0, sizeof g_parameters);
  for (const uint32_t id : {abi::callback::kProfilerStart, abi::callback::kProfilerStop, abi::callback::kDeviceReset})
    g_cupti.enable_callback(1, g_subscriber, abi::domain::kRuntime, id);
  g_cupti.enable_callback(1, g_subscriber, abi::domain::kResource, abi::callback::kInitFinished);
  // Nodes of graphs belong to what made them. Nothing happens at launches.
  if (g_graph_nodes)
    for (const uint32_t id :
         {abi::callback::kGraphCreated, abi::callback::kGraphNodeCreated, abi::callback::kGraphNodeCloned})
      g_cupti.enable_callback(1, g_subscriber, abi::domain::kResource, id);
  const bool count = g_start_launch != 0 || g_stop_launch != 0;
  for (const int domain : {abi::domain::kRuntime, abi::domain::kDriver})
    for (uint32_t id = 1; id < kCallbacks; ++id) {
      const char* name = nullptr;
      if (g_cupti.get_callback_name(domain, id, &name) != abi::kSuccess || name == nullptr) continue;
      if (tape::configuration().api_args) learn_parameters(domain == abi::domain::kDriver, id, name);
      // The runtime instantiates through the driver: only one of the two may describe the graph.
      if ((count && launches(name)) || g_parameters[domain == abi::domain::kDriver][id].bytes != 0 ||
          ((sampler::g_launch_stacks.load(std::memory_order_relaxed) || sampler::counts_calls()) &&
           causes_work(name)) ||
          (allocation_stacks() && allocates(name)) || (tape::attached_late() && launches_graph(name)) ||
          (instantiates(name) && domain == abi::domain::kRuntime))
        g_cupti.enable_callback(1, g_subscriber, domain, id);
    }
}

// Flushing

// Set while the thread of ours is inside CUPTI: at exit CUPTI takes itself down, so finish() waits for it.
constinit std::atomic<uint32_t> g_inside{0};

class Inside {
 public:
  Inside() { g_inside.store(1); }
  ~Inside() { g_inside.store(0); }
  bool allowed() const { return g_finished.load() == 0; }
};

void finish_work();
constinit std::atomic<uint32_t> g_following{0};  // our thread runs
constinit std::atomic<uint32_t> g_exit_asked{0}, g_exit_done{0};

void* follow(void*) {
  pthread_setname_np(pthread_self(), "tacho-cupti");
  tape::PoolHeader* const pool = tape::pool();
  const uint32_t period = pool->flush_period_ms == 0 ? 1000 : pool->flush_period_ms;
  int64_t last_flush = raw_now();
  int early_pairs = g_others_clock ? 20 : 0;  // of the clocks, until the length of a tick is well known
  while (g_finished.load(std::memory_order_relaxed) == 0) {
    // Wakes at once when the launcher changes `enabled` and wakes its waiters, otherwise soon.
    const uint64_t seen = pool->enabled.load(std::memory_order_relaxed);
    if (seen == g_active.load(std::memory_order_relaxed) && g_exit_asked.load() == 0) {
      const timespec wait{0, 50'000'000};
      syscall(SYS_futex, &pool->enabled, FUTEX_WAIT, static_cast<uint32_t>(seen), &wait, nullptr, 0);
    }
    if (g_exit_asked.load() != 0) {
      if (g_finished.exchange(1) == 0) finish_work();
      g_exit_done.store(1);
      break;
    }
    const Inside inside;
    if (!inside.allowed()) break;
    const uint64_t wanted = pool->enabled.load(std::memory_order_relaxed);
    if (wanted != g_active.load(std::memory_order_relaxed)) apply_sources(wanted);
    look_for_names();
    if (g_beside && g_stop_launch != 0) g_cupti.flush_all(0);
    if (early_pairs > 0 && --early_pairs >= 0) define_clock_pair();
    const int64_t now = raw_now();
    if (now - last_flush >= int64_t{period} * 1'000'000 || pool->closing.load(std::memory_order_relaxed) != 0) {
      g_cupti.flush_all(0);
      if (g_pairs) define_clock_pair();
      last_flush = raw_now();
    }
  }
  g_following.store(0);
  return nullptr;
}

void start_thread() {
  g_following.store(1);
  if (start_own_thread(follow)) return;
  g_following.store(0);
  say_and_note(event::NoteSeverity::kWarning,
               "no thread could be started to flush CUPTI's records: a killed program loses more of them");
}

// At exit: takes the work that the device has finished, then the rest. Waits a moment for work that the program did not
// wait for.
void finish() {
  if (g_started.load() == 0 || getpid() != g_pid || g_finished.exchange(1) != 0) return;
  finish_work();
}

void finish_work() {
  const int64_t begin = raw_now();
  constexpr int64_t kPatience = 5'000'000'000;  // our thread may itself be waiting for the device
  while (g_inside.load() != 0 && raw_now() - begin < kPatience) {
    const timespec moment{0, 50'000};
    nanosleep(&moment, nullptr);
  }
  wait_for_device(200'000'000);
  if (g_pairs) define_clock_pair();
  mark_last_buffers();
  g_cupti.flush_all(abi::kFlushForced);
  count_dropped_records();
  char text[32];
  snprintf(text, sizeof text, "%lld", static_cast<long long>(raw_now() - begin));
  tape::define_property(event::Table::kProcess, 0, "cupti.exit_ns", text);
}

// Start

// The driver's major version from the kernel module's own words, 0 = unknown.
unsigned driver_major() {
  const char* file = getenv("TACHO_NVIDIA_VERSION_FILE");  // for tests
  FILE* const from = fopen(file != nullptr ? file : "/proc/driver/nvidia/version", "re");
  if (from == nullptr) return 0;
  char line[512];
  unsigned major = 0;
  if (fgets(line, sizeof line, from) != nullptr)
    for (const char* at = line; (at = strstr(at, "  ")) != nullptr && major == 0; ++at) {
      unsigned minor = 0;
      if (sscanf(at, "  %u.%u", &major, &minor) != 2) major = 0;
    }
  fclose(from);
  return major;
}

// The oldest driver for a CUPTI of that CUDA version (130001 = 13.0), by NVIDIA's compatibility table; 0 = unknown.
unsigned needed_driver(uint32_t cupti) {
  switch (cupti / 10000) {
    case 11:
      return 450;
    case 12:
      return 525;
    case 13:
      return 580;
    default:
      return 0;
  }
}

constinit int g_others_thread_ids = -1;  // what was set before, -1 = nothing was changed

// In a program that ran before.
void give_back_cupti() {
  if (g_others_thread_ids >= 0) g_cupti.set_thread_id_type(g_others_thread_ids);
  g_others_thread_ids = -1;
  // A client of several leaves with its subscriber, and nothing of CUPTI's is left (docs/attach.md).
  if (has_own_subscriber())
    g_cupti.unsubscribe(g_subscriber);
  else if (g_others_clock || g_yields.load())
    leave_cupti_to_others(g_cupti, g_subscriber);
  else
    leave_cupti(g_cupti, g_subscriber,
                g_inside.load() != 0 ? "a call of tacho's into it has not returned"
                : g_runs_long
                    ? "kernels or copies that had been launched 0.5 s before had not ended, and to finalise it "
                      "would have kept the program's calls waiting for them"
                    : nullptr);
  forget_own_subscriber();
  g_subscriber = nullptr;
}

// While it does tacho waits (look_late()).
constinit bool g_waits = false;
constinit int64_t g_waits_since = 0;  // raw ns, 0 = it has not waited

void wait_for_other() {
  g_waits = true;
  if (g_waits_since != 0) return;
  g_waits_since = raw_now();
  char line[256];
  snprintf(line, sizeof line,
           "PyTorch's profiler records in process %d now: its CUDA activity is in this trace only from the profiler's "
           "end on",
           static_cast<int>(getpid()));
  say_and_note(event::NoteSeverity::kWarning, line);
}

// What needs callbacks and was asked for.
void tell_beside() {
  char line[640];
  int size =
      snprintf(line, sizeof line,
               "PyTorch's profiler was used in the program before and keeps CUPTI's callbacks: tacho records CUDA "
               "until the profiler is used again");
  const auto add = [&](bool asked, const char* what) {
    if (!asked || size < 0 || static_cast<size_t>(size) >= sizeof line) return;
    size += snprintf(line + size, sizeof line - static_cast<size_t>(size), "; %s", what);
  };
  add(g_start_launch != 0, "launches are not counted before it records, so that no number of them starts it");
  add(tape::configuration().api_args, "calls come without arguments (--api-args)");
  add(g_profiler_api, "cudaProfilerStart and cudaProfilerStop have no effect");
  add(sampler::g_launch_stacks.load(std::memory_order_relaxed), "launches come without call stacks");
  add(sampler::counts_calls(), "calls come without counters of the processor");
  tape::note(event::NoteSeverity::kInfo, line);
  tape::define_property(event::Table::kProcess, 0, "cupti.subscriber", "another profiler's");
}

// `other`: who holds CUPTI already, where that is told.
abi::Result subscribe_to_all(char* other, size_t bytes) {
  if (g_cupti.subscribe_v2 == nullptr) return g_cupti.subscribe(&g_subscriber, on_callback, nullptr);
  abi::SubscriberParameters parameters = {offsetof(abi::SubscriberParameters, several), "tacho", other, bytes, 0, {}};
  return g_cupti.subscribe_v2(&g_subscriber, on_callback, nullptr, &parameters);
}

bool subscribe() {
  g_beside = g_others_clock = false;
  if (take_own_subscriber(g_cupti, g_version, driver_major(), on_callback, g_subscriber)) return true;
  const OtherProfiler profiler = tape::attached_late() ? ask_other_profiler(g_cupti) : OtherProfiler::kNone;
  if (profiler == OtherProfiler::kRecords) {
    wait_for_other();
    return false;
  }
  if (profiler == OtherProfiler::kUnknown) {
    say_and_note(
        event::NoteSeverity::kWarning,
        "another profiler, PyTorch's in a form that tacho does not know, already uses CUPTI in the program, and "
        "may be recording now: the CUDA activity is not in this trace");
    return false;
  }
  g_others_clock = profiler == OtherProfiler::kIdle;
  char other[128] = {};
  abi::Result result = subscribe_to_all(other, sizeof other);
  // What the profiler would do within tacho's recording it does before.
  if (result == abi::kMultipleSubscribers && g_others_clock && let_other_finalize())
    result = subscribe_to_all(other, sizeof other);
  if (result == abi::kSuccess) return true;
  g_beside = result == abi::kMultipleSubscribers && profiler == OtherProfiler::kIdle && !others_hold_cupti(g_cupti);
  if (g_beside) return true;
  char line[1024];
  if (result == abi::kMultipleSubscribers) {
    snprintf(line, sizeof line,
             "another profiler%s%s already uses CUPTI in process %d and keeps its GPU records; tacho traces the rest",
             other[0] != '\0' ? ", " : "", other, static_cast<int>(getpid()));
  } else if (const Refusal why = refusal(result); why.cause != nullptr) {
    say_refusal(why);
    return false;
  } else if (const unsigned driver = driver_major(), needed = needed_driver(g_version);
             driver != 0 && driver < needed) {
    snprintf(line, sizeof line,
             "the NVIDIA driver (%u) is too old for CUPTI %u.%u (%s), which needs %u or newer: the program runs, its "
             "CUDA activity is not traced; update the driver or let "
             "CUDA_HOME name the toolkit that the driver came with",
             driver, g_version / 10000, g_version / 100 % 100, g_cupti.path, needed);
  } else {
    snprintf(line, sizeof line, "CUPTI (%s) refuses to start: %s; the program runs, its CUDA activity is not traced",
             g_cupti.path, result_text(result));
  }
  say_and_note(event::NoteSeverity::kWarning, line);
  return false;
}

// With a buffer per thread, the buffer identifies a record's thread. Writing the kernel's thread id into every record
// would cost CUPTI a system call each time.
void choose_thread_ids() {
  uint8_t per_thread = 0;
  size_t attribute_size = sizeof per_thread;
  const bool by_buffer =
      g_cupti.get_attribute != nullptr &&
      g_cupti.get_attribute(abi::attribute::kPerThreadBuffer, &attribute_size, &per_thread) == abi::kSuccess &&
      per_thread == 1;
  int before = 0;
  const bool restorable = g_cupti.get_thread_id_type != nullptr && g_cupti.get_thread_id_type(&before) == abi::kSuccess;
  const bool thread_ids = !by_buffer && g_cupti.set_thread_id_type != nullptr && (restorable || !g_others_clock) &&
                          g_cupti.set_thread_id_type(abi::kThreadIdSystem) == abi::kSuccess;
  if (thread_ids && g_others_clock) g_others_thread_ids = before;
  tape::define_fact(kBlocks, event::BlockFact::kThreadIds, thread_ids ? 1 : 0);
}

}  // namespace

namespace {

// The turn of who starts a session in a program that runs, or ends it: one waits for the other, but not for ever.
constinit LockWord g_turn{0};
class Turn {
 public:
  explicit Turn(int64_t patience) {
    const int64_t begin = raw_now();
    while (!(has_ = try_lock(g_turn)) && raw_now() - begin < patience) {
      const timespec moment{0, 200'000};
      nanosleep(&moment, nullptr);
    }
  }
  ~Turn() {
    if (has_) unlock(g_turn);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool has() const { return has_; }

 private:
  bool has_ = false;
};

constinit bool g_watched = false;  // calls of other profilers come to yield_to_other()
constinit int64_t g_came = 0;      // raw ns

void yield_to_other(const char* function);

// Sees the other profiler's calls from here on. False where it records, or where it may begin to without tacho's being
// told: the trace says so.
bool watch_others() {
  g_came = raw_now();
  if (has_own_subscriber()) return true;
  const uint64_t calls = calls_of_others();
  g_watched = watch_other_profiler(g_cupti, yield_to_other, g_others_clock);
  if (!g_others_clock) return true;
  if (!g_watched && g_beside) {
    say_and_note(event::NoteSeverity::kWarning,
                 "PyTorch's profiler already uses CUPTI in the program, and its calls cannot be followed; tacho traces "
                 "the rest");
    return false;
  }
  // A window that is being opened has been registered already, but says so a little later.
  const timespec moment{0, 50'000'000};
  nanosleep(&moment, nullptr);
  if (ask_other_profiler(g_cupti) == OtherProfiler::kIdle && calls_of_others() == calls) return true;
  wait_for_other();
  return false;
}

}  // namespace

bool start_session() {
  const event::ConfigurationView& configuration = tape::configuration();
  if (configuration.yield_to_app) {
    tape::note(event::NoteSeverity::kInfo,
               "CUPTI was left to the program (--yield-to-app): no CUDA activity in this trace");
    return false;
  }
  char tried[1024];
  if (!load_cupti(g_cupti, tried, sizeof tried)) {
    char line[1280];
    snprintf(line, sizeof line,
             "CUPTI (libcupti.so) was not found (looked at %s): the program runs, its CUDA activity is not traced; "
             "install the toolkit's CUPTI or set CUDA_HOME",
             tried);
    say_and_note(event::NoteSeverity::kWarning, line);
    return false;
  }
  g_cupti.get_version(&g_version);
  g_driver_all = configuration.all_driver_calls;
  g_all_calls = configuration.all_api_calls;
  g_graph_nodes = configuration.graph_nodes;
  // These records alone make a PyTorch step a fifth longer (H200, CUPTI 13.0); the waiting calls are API rows anyway.
  g_synchronization = configuration.sync_trace;
  g_profiler_api = configuration.profiler_api;
  g_start_launch = tape::pool()->start_launch;
  g_stop_launch = tape::pool()->stop_launch;
  g_pid = getpid();
  if (!subscribe()) return false;
  if (tape::attached_late() && !has_own_subscriber() && !g_beside) begin_to_follow_graphs(g_cupti, g_subscriber);
  if (tape::attached_late() && !watch_others()) {
    give_back_cupti();
    return false;
  }
  if (g_beside) tell_beside();
  char text[64];
  snprintf(text, sizeof text, "%u", g_version);
  tape::define_property(event::Table::kProcess, 0, "cupti.version", text);
  tape::define_property(event::Table::kProcess, 0, "cupti.path", g_cupti.path);
  tape::define_property(event::Table::kProcess, 0, "cupti.found", g_cupti.found_by);
  if (has_own_subscriber()) tape::define_property(event::Table::kProcess, 0, "cupti.subscriber", "beside others");
  if (!g_all_calls && g_cupti.enable_runtime_api != nullptr)
    tape::define_property(event::Table::kProcess, 0, "cupti.calls_left_out",
                          "runtime calls that only ask (cudaGetDevice, cudaGetLastError, cudaDeviceGetAttribute, "
                          "cudaStreamIsCapturing and the like); --all-api-calls records them");
  // CUPTI cannot choose kernels by name: the decoder of its records does.
  if (!configuration.kernel_include.empty())
    tape::define_fact(kBlocks, event::BlockFact::kKernelInclude, 0, configuration.kernel_include);
  if (!configuration.kernel_exclude.empty())
    tape::define_fact(kBlocks, event::BlockFact::kKernelExclude, 0, configuration.kernel_exclude);
  setup_clock();
  choose_thread_ids();
  if (size_t buffers = configuration.cupti_device_buffers; buffers != 0 && !g_others_clock) {
    size_t size = sizeof buffers;
    g_cupti.set_attribute(abi::attribute::kDeviceBufferPoolLimit, &size, &buffers);
  }
  constexpr uint32_t kBlocksPerBuffer = 4;
  setup_buffers(g_cupti, g_version, kBlocksPerBuffer);
  abi::Result result = g_cupti.register_callbacks(buffer_requested, buffer_completed);
  if (result != abi::kSuccess) {
    char line[256];
    snprintf(line, sizeof line, "CUPTI takes no buffers from tacho (%s): the CUDA activity is not traced",
             result_text(result));
    say_and_note(event::NoteSeverity::kError, line);
    if (tape::attached_late()) give_back_cupti();
    return false;
  }
  g_started.store(1);
  g_counts_launches.store(!tape::attached_late(), std::memory_order_release);
  if (!g_beside) enable_callbacks();
  // Always enabled: devices, contexts and streams identify the owner of the work in the records.
  for (const int kind : {abi::kind::kDevice, abi::kind::kContext, abi::kind::kStream, abi::kind::kName})
    g_cupti.activity_enable(kind);
  if (has_host_functions()) g_cupti.activity_enable(abi::kind::kGreenContext);
  if (wants_spans()) {
    define_span_window(false);
    g_cupti.activity_enable(abi::kind::kGraphTrace);
  }
  if (tape::attached_late()) define_driver();
  apply_sources(tape::pool()->enabled.load(std::memory_order_relaxed));
  // What was launched before is left out: it may come without times, for CUPTI has not followed it.
  if (tape::attached_late())
    if (const uint32_t now = number_of_now(); now != 0) {
      tape::define_fact(kBlocks, event::BlockFact::kRecordingStops, 0);
      define_switch(event::BlockFact::kRecordingStarts, now);
      g_first_launch = now;
    }
  if (g_beside && g_stop_launch != 0) watch_launches(count_recorded_launch);
  g_counts_launches.store(true, std::memory_order_release);
  // A buffer for each of some hundred threads: starting CUDA takes much longer than backing it.
  tape::want_blocks((64 << 20) / tape::kBlockSize);
  static constinit bool exit_watched = false;
  if (!exit_watched) atexit(finish);
  exit_watched = true;
  start_thread();
  tape::define_attached(event::Domain::kCudaRuntime);
  tape::define_property(event::Table::kProcess, 0, "cuda.attached", "1");
  return true;
}

namespace {

// What CUPTI is asked to do in a program that already runs happens on a thread of its own: a call of CUPTI's that does
// not return (seen at an end in a flood of kernels of graphs) must not keep tacho in the program.
constinit std::atomic<uint32_t> g_at_work{0};   // 1: such a thread runs
constinit std::atomic<uint32_t> g_given_up{0};  // 1: nobody waits for it any more; it has to end the session
using Work = void (*)();
constinit Work g_work = nullptr;
constexpr int64_t kPatienceToStart = 5'000'000'000, kPatienceToLeave = 3'000'000'000, kMoment = 1'000'000;  // ns

// Graphs that an earlier recording followed give no records in a later one (seen with CUPTI 13.0).
void tell_silent_graphs() {
  const uint64_t launches = g_graph_launches.load(std::memory_order_relaxed);
  if (launches == 0 || saw_graph_kernels()) return;
  char line[320];
  snprintf(line, sizeof line,
           "%llu launches of CUDA graphs left no records of their kernels: CUPTI does not follow again the graphs that "
           "an earlier attach has recorded; graphs that the program makes anew are recorded",
           static_cast<unsigned long long>(launches));
  tape::note(event::NoteSeverity::kWarning, line);
  tape::loss(event::Table::kDispatch, event::LossReason::kVendor, launches);
}

// A thread that was about to record when the kinds went off may have asked for a buffer since the last flush. The next
// client of CUPTI would get it, and its record would be lost.
void take_last_buffers() {
  constexpr int64_t kPatience = 100'000'000;
  const int64_t begin = raw_now();
  do {
    const timespec moment{0, 1'000'000};
    nanosleep(&moment, nullptr);
    if (!holds_buffers()) return;
    g_cupti.flush_all(abi::kFlushForced);
  } while (raw_now() - begin < kPatience);
}

void end_session() {
  // First no more records: CUPTI could never hand over all of those that a program makes meanwhile.
  apply_sources(0);
  for (const int kind : {abi::kind::kDevice, abi::kind::kContext, abi::kind::kStream, abi::kind::kName})
    g_cupti.activity_disable(kind);
  finish_work();
  take_last_buffers();
  tell_silent_graphs();
  if (g_others_clock || g_yields.load())
    tape::define_property(event::Table::kProcess, 0, "cupti.left", "to another profiler");
  give_back_cupti();
  g_active.store(0);
  g_started.store(0);
}

void* work(void*) {
  g_work();
  if (g_given_up.exchange(0) != 0 && g_started.load() != 0 && g_finished.exchange(1) == 0) end_session();
  g_at_work.store(0, std::memory_order_release);
  return nullptr;
}

bool wait_for_work(int64_t patience) {
  const int64_t begin = raw_now();
  while (g_at_work.load(std::memory_order_acquire) != 0) {
    if (raw_now() - begin > patience) return false;
    const timespec moment{0, 200'000};
    nanosleep(&moment, nullptr);
  }
  return true;
}

// False if `function` has not returned after `patience`.
bool do_within(Work function, int64_t patience) {
  g_work = function;
  g_given_up.store(0);
  g_at_work.store(1, std::memory_order_release);
  if (!start_own_thread(work)) work(nullptr);
  return wait_for_work(patience);
}

void give_up() {
  tape::note(event::NoteSeverity::kWarning,
             "CUPTI did not hand over its last records within 3 s: they are not in this trace, and the program's CUDA "
             "activity can be recorded again once it has");
}

// Ends a running session, on another thread; false if that takes too long. With the turn.
bool finish_late() {
  g_finished.store(1);
  syscall(SYS_futex, &tape::pool()->enabled, FUTEX_WAKE, 1 << 20, nullptr, nullptr, 0);
  const int64_t begin = raw_now();
  while (g_following.load() != 0 && raw_now() - begin < kPatienceToLeave) {
    const timespec moment{0, 200'000};
    nanosleep(&moment, nullptr);
  }
  return do_within(end_session, kPatienceToLeave);
}

constinit uint32_t g_yielded_in = 0;  // tape::late_session()

// On a thread of the program's, within its call of `function` and before CUPTI gets that: the session ends first, so
// that the other profiler finds CUPTI as it would have without tacho.
void yield_to_other(const char* function) {
  if (getpid() != g_pid) return;
  const Turn turn(kPatienceToStart);
  if (!turn.has() || g_started.load() == 0 || g_finished.load() != 0) return;
  if (!wait_for_work(kPatienceToLeave)) return give_up();
  g_yields.store(true);
  g_yielded_in = tape::late_session();
  char line[320];
  snprintf(line, sizeof line,
           "a profiler in the program began to use CUPTI (%s) %.1f s after tacho: CUDA activity is in this trace until "
           "then only, so that the other recording is whole; attach again when that profiler has ended",
           function, static_cast<double>(raw_now() - g_came) * 1e-9);
  tape::note(event::NoteSeverity::kWarning, line);
  char text[32];
  snprintf(text, sizeof text, "%lld", static_cast<long long>(raw_now()));
  tape::define_property(event::Table::kProcess, 0, "cuda.ended", text);
  if (!finish_late()) give_up();
}

constinit bool g_tried_in_vain = false;
constinit uint32_t g_tried_in = 0;  // tape::late_session()

void start_late_session() {
  const Turn turn(kPatienceToStart);
  g_tried_in_vain = !turn.has() || !start_session();
  if (g_tried_in_vain) return stop_watching();
  if (g_waits_since != 0) {
    char line[160];
    snprintf(line, sizeof line, "PyTorch's profiler ended %.1f s after tacho came: CUDA activity is recorded since",
             static_cast<double>(raw_now() - g_waits_since) * 1e-9);
    tape::note(event::NoteSeverity::kInfo, line);
  }
  tape::note(event::NoteSeverity::kInfo,
             "CUDA graphs that the program had made before are recorded node by node, and contexts, streams and "
             "devices appear when they are used");
  if (getenv("CUDA_MPS_PIPE_DIRECTORY") != nullptr)
    tape::note(event::NoteSeverity::kInfo,
               "CUDA_MPS_PIPE_DIRECTORY is set in the program: where it shares its GPU with others through MPS, their "
               "kernels run beside its own and make these longer");
}

}  // namespace

void start_late() {
  if (g_started.load() != 0 && g_finished.load() == 0) {
    if (g_watched) watch_other_profiler(g_cupti, yield_to_other, g_others_clock);  // of libraries that have come since
    return;
  }
  if (g_yields.load() && g_yielded_in == tape::late_session()) return;
  if (g_tried_in != tape::late_session()) g_waits_since = 0;
  if (find_in_driver("cuInit") == nullptr) return;
  if (g_tried_in_vain && g_tried_in == tape::late_session()) return;
  g_tried_in = tape::late_session();
  g_tried_in_vain = true;
  g_waits = false;
  if (g_at_work.load(std::memory_order_acquire) != 0)
    return tape::note(event::NoteSeverity::kWarning,
                      "CUPTI has not come back from the end of the last recording: no CUDA activity in this one");
  g_started.store(0);
  g_finished.store(0);
  g_exit_asked.store(0);
  g_exit_done.store(0);
  g_active.store(0);
  g_subscriber = nullptr;
  g_graph_launches.store(0);
  g_yields.store(false);
  for (std::atomic<uint32_t>& number : g_counted) number.store(0, std::memory_order_relaxed);  // CUPTI may count anew
  g_stopped_at_number = false;
  g_runs_long = false;
  g_driver_started = true;  // functions cannot be switched on one by one any more
  forget_buffers();
  if (!do_within(start_late_session, kPatienceToStart))
    tape::note(event::NoteSeverity::kWarning,
               "CUPTI has not started within 5 s: the CUDA activity is not traced, unless it still comes");
}

void look_late() {
  if (!g_waits || g_tried_in != tape::late_session() || g_at_work.load(std::memory_order_acquire) != 0 ||
      ask_other_profiler(g_cupti) != OtherProfiler::kIdle)
    return;
  g_tried_in_vain = false;
  start_late();
}

void end_late() {
  if (!wait_for_work(kPatienceToLeave)) {  // it has not even started
    g_given_up.store(1);
    if (!wait_for_work(kMoment)) return give_up();
    if (g_given_up.exchange(0) == 0) return;  // the thread has ended the session
  }
  const Turn turn(kPatienceToLeave);  // unless it yields to another profiler just now
  if (!turn.has()) give_up();
  if (!turn.has() || g_started.load() == 0 || g_finished.load() != 0) return;
  if (!finish_late()) give_up();
}

void leave_late() {
  end_late();
  if (g_watched) stop_watching();
  g_watched = false;
}

void leave_in_child() {
  g_started.store(0);
  g_finished.store(1);
}

const Cupti* session_cupti() {
  return g_started.load(std::memory_order_acquire) != 0 ? &g_cupti : nullptr;
}
bool session_active() {
  return g_started.load(std::memory_order_acquire) != 0 && g_finished.load(std::memory_order_relaxed) == 0 &&
         getpid() == g_pid;
}
void finish_before_exit() {
  if (!session_active()) return;
  // By our thread: the caller may be anywhere, in a signal handler inside CUPTI too, and is not kept waiting for long.
  constexpr int64_t kPatience = 1'000'000'000;
  const int64_t begin = raw_now();
  g_exit_asked.store(1);
  syscall(SYS_futex, &tape::pool()->enabled, FUTEX_WAKE, 1 << 20, nullptr, nullptr, 0);
  while (g_exit_done.load() == 0 && raw_now() - begin < kPatience) {
    const timespec moment{0, 100'000};
    nanosleep(&moment, nullptr);
  }
}
void say_warning(const char* sentence) {
  say_and_note(event::NoteSeverity::kWarning, sentence);
}

}  // namespace tacho::capture::cuda
