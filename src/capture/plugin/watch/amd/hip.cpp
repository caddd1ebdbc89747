// HIP under `tacho watch`: this library exports the functions that libamdhip64 exports, and comes first in every
// library's search; programs that ask dlsym() or hipGetProcAddress() get ours, too. Every call is counted; 1 of N is
// timed by two events of our own on its stream (event_timing.h). In a program that ran before tacho came, words of its
// libraries lead here instead (slots.h).
//
// All functions are called alike, as by the AMD source of tacho trace: arguments that are integers, pointers or structs
// lie in six registers and then on the stack, in words, and words that a function does not have are handed on unread.
//
// HIP keeps the last error of a thread, which programs ask for behind a launch. So nothing of ours is called behind a
// call that failed, nor while an error waits to be asked for, and an error of our own calls is taken back at once.

#include "capture/plugin/watch/amd/hip.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <iterator>
#include <string_view>
#include <utility>

#include "capture/own_thread.h"
#include "capture/plugin/watch/hooks.h"
#include "capture/plugin/watch/patches.h"
#include "capture/room/handle_map.h"
#include "capture/room/pages.h"
#include "event/schema.h"
#include "tape/sleep.h"

namespace tacho::capture::watch {
namespace {

constexpr auto kDomain = static_cast<uint32_t>(event::Domain::kHipRuntime);
constexpr int kSuccess = 0, kNotReady = 600;

using Word = uint64_t;
using Words = const Word*;
#define TACHO_WORDS                                                                                                    \
  uint64_t r0, uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5, uint64_t s0, uint64_t s1, uint64_t s2, \
      uint64_t s3, uint64_t s4, uint64_t s5, uint64_t s6, uint64_t s7
using Function = Word(TACHO_WORDS);

// Our own calls of HIP. Missing ones are null: an older HIP.
struct Hip {
  int (*hipPeekAtLastError)();
  int (*hipGetLastError)();
  int (*hipGetDevice)(int*);
  int (*hipSetDevice)(int);
  int (*hipStreamGetDevice)(Stream, int*);
  int (*hipStreamIsCapturing)(Stream, int*);
  int (*hipStreamIsCapturing_spt)(Stream, int*);
  int (*hipThreadExchangeStreamCaptureMode)(int*);
  int (*hipEventCreateWithFlags)(Event*, unsigned);
  int (*hipEventDestroy)(Event);
  int (*hipEventRecord)(Event, Stream);
  int (*hipEventRecord_spt)(Event, Stream);
  int (*hipEventQuery)(Event);
  int (*hipEventElapsedTime)(float*, Event, Event);
  int (*hipArrayGetInfo)(int*, size_t*, unsigned*, const void*);
  const char* (*hipKernelNameRef)(const void*);
  const char* (*hipKernelNameRefByPtr)(const void*, Stream);

  bool times() const {
    return hipPeekAtLastError != nullptr && hipGetLastError != nullptr && hipGetDevice != nullptr &&
           hipSetDevice != nullptr && hipStreamIsCapturing != nullptr && hipEventCreateWithFlags != nullptr &&
           hipEventDestroy != nullptr && hipEventRecord != nullptr && hipEventQuery != nullptr &&
           hipEventElapsedTime != nullptr;
  }
};
constinit Hip g_hip = {};
TACHO_READ_OFTEN constinit std::atomic<bool> g_ready{false};
TACHO_READ_OFTEN constinit std::atomic<bool> g_reads_at_exit{false};
TACHO_READ_OFTEN constinit EventTimer g_timer;
// hipFunction_t and functions of the host that stand for kernels -> WatchedKernel
TACHO_READ_OFTEN constinit HandleMap g_kernels;
TACHO_READ_OFTEN constinit HandleMap g_graphs;  // hipGraphExec_t -> WatchRow
constinit uint32_t g_graph_names = 0;

// A forked child finds it zeroed.
struct OwnState {
  LockWord objects;
};
constinit OwnState* g_own = nullptr;

// HIP calls some of its exported functions itself.
struct Inside {
  TACHO_RUN_OFTEN Inside() { ++t_watching.in_hip; }
  TACHO_RUN_OFTEN ~Inside() { --t_watching.in_hip; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

constexpr const char* kLibraries[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"};

// HIP's function of that name; `near` lies in a library that uses HIP or is HIP.
void* find_function(const char* name, const void* near) {
  void* found = real_dlsym(RTLD_NEXT, name);
  const auto look = [&](const char* library) {
    if (found != nullptr || library == nullptr) return;
    if (void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD)) {
      found = real_dlsym(handle, name);
      dlclose(handle);
    }
  };
  for (const char* const library : kLibraries) look(library);
  Dl_info at{};
  if (near != nullptr && dladdr(near, &at) != 0) look(at.dli_fname);
  return found != nullptr && is_own(found) ? nullptr : found;
}

// The function that the program would call without us; nullptr when there is none.
Function* next_of(std::atomic<void*>& slot, const char* name, const void* caller) {
  void* found = slot.load(std::memory_order_acquire);
  if (__builtin_expect(found == nullptr, 0)) {
    found = find_function(name, caller);
    slot.store(found, std::memory_order_release);
  }
  return reinterpret_cast<Function*>(found);
}
Word call(Function* next, Words w) {
  return next(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13]);
}

// Events

int settled(int result) {
  if (result != kSuccess) g_hip.hipGetLastError();
  return result;
}
// No error of the program's waits to be asked for. That an event was not ready is none.
bool undisturbed() {
  const int pending = g_hip.hipPeekAtLastError();
  return pending == kSuccess || pending == kNotReady;
}

bool exchange_mode(int* mode) {
  return g_hip.hipThreadExchangeStreamCaptureMode != nullptr &&
         settled(g_hip.hipThreadExchangeStreamCaptureMode(mode)) == kSuccess;
}
alignas(128) TACHO_READ_OFTEN constinit UnknownCaptures g_unknown_captures;

bool is_capturing(Stream stream, bool per_thread) {
  int state = 0;  // hipStreamCaptureStatusNone
  auto* const ask = per_thread && g_hip.hipStreamIsCapturing_spt != nullptr ? g_hip.hipStreamIsCapturing_spt
                                                                            : g_hip.hipStreamIsCapturing;
  const bool clear = undisturbed();
  const int result = ask(stream, &state);
  if (result != kSuccess && clear) g_hip.hipGetLastError();
  return result == kSuccess && state != 0;
}

uint64_t place_of_device(int device) {
  return static_cast<uint64_t>(device) + 1;
}
uint64_t place_of(Stream stream, bool per_thread) {
  if (!g_hip.times() || !undisturbed()) return kNoPlace;
  if (g_late && is_capturing(stream, per_thread)) {
    g_unknown_captures.begin();
    return kNoPlace;
  }
  constexpr uintptr_t kNamed = 2;  // the default streams' names: 0, hipStreamLegacy, hipStreamPerThread
  int device = 0;
  const bool own = reinterpret_cast<uintptr_t>(stream) > kNamed && g_hip.hipStreamGetDevice != nullptr;
  if (settled(own ? g_hip.hipStreamGetDevice(stream, &device) : g_hip.hipGetDevice(&device)) != kSuccess)
    return kNoPlace;
  return place_of_device(device);
}
uint64_t readable_place() {
  return undisturbed() ? kAnyPlace : kNoPlace;
}
bool create_event(uint64_t place, Event* event) {
  const auto wanted = static_cast<int>(place - 1);
  const BesideCaptures<exchange_mode> beside;
  int current = 0;
  if (settled(g_hip.hipGetDevice(&current)) != kSuccess) return false;
  if (current != wanted && settled(g_hip.hipSetDevice(wanted)) != kSuccess) return false;
  constexpr unsigned kTimed = 0, kNoFence = 0x20000000;  // hipEventDefault, hipEventDisableSystemFence
  const bool made = settled(g_hip.hipEventCreateWithFlags(event, kNoFence)) == kSuccess ||
                    settled(g_hip.hipEventCreateWithFlags(event, kTimed)) == kSuccess;
  if (current != wanted) settled(g_hip.hipSetDevice(current));
  return made;
}
void destroy_event(Event event) {
  settled(g_hip.hipEventDestroy(event));
}
bool record_event(Event event, Stream stream, bool per_thread) {
  auto* const record =
      per_thread && g_hip.hipEventRecord_spt != nullptr ? g_hip.hipEventRecord_spt : g_hip.hipEventRecord;
  return settled(record(event, stream)) == kSuccess;
}
EventState query_event(Event event) {
  const BesideCaptures<exchange_mode> beside;
  const int state = settled(g_hip.hipEventQuery(event));
  return state == kSuccess ? EventState::kEnded : state == kNotReady ? EventState::kPending : EventState::kFailed;
}
bool elapsed(Event from, Event to, float* milliseconds) {
  return settled(g_hip.hipEventElapsedTime(milliseconds, from, to)) == kSuccess;
}
constexpr EventRuntime kRuntime = {kDomain,      place_of,    readable_place, create_event, destroy_event,
                                   record_event, query_event, elapsed,        nullptr,      nullptr};

// Before the first hook does anything. False: nobody watches, or there is no memory.
bool start(const void* near) {
  if (g_ready.load(std::memory_order_acquire)) return true;
  static constinit LockWord starting{0};
  const Guard guard(starting);
  if (g_ready.load(std::memory_order_relaxed)) return true;
  if (!g_watched.load(std::memory_order_acquire)) return false;
#define TACHO_FIND(name) g_hip.name = reinterpret_cast<decltype(g_hip.name)>(find_function(#name, near))
  TACHO_FIND(hipPeekAtLastError);
  TACHO_FIND(hipGetLastError);
  TACHO_FIND(hipGetDevice);
  TACHO_FIND(hipSetDevice);
  TACHO_FIND(hipStreamGetDevice);
  TACHO_FIND(hipStreamIsCapturing);
  TACHO_FIND(hipStreamIsCapturing_spt);
  TACHO_FIND(hipThreadExchangeStreamCaptureMode);
  TACHO_FIND(hipEventCreateWithFlags);
  TACHO_FIND(hipEventDestroy);
  TACHO_FIND(hipEventRecord);
  TACHO_FIND(hipEventRecord_spt);
  TACHO_FIND(hipEventQuery);
  TACHO_FIND(hipEventElapsedTime);
  TACHO_FIND(hipArrayGetInfo);
  TACHO_FIND(hipKernelNameRef);
  TACHO_FIND(hipKernelNameRefByPtr);
#undef TACHO_FIND
  if (g_own == nullptr) {
    auto* const own = static_cast<OwnState*>(map_pages(sizeof(OwnState)));
    if (own == nullptr || !g_timer.start(kRuntime)) return false;
    madvise(own, sizeof(OwnState), MADV_WIPEONFORK);
    g_own = own;
  }
  note_domain(kDomain);
  g_ready.store(true, std::memory_order_release);
  return true;
}

constinit std::atomic<uint32_t> g_last_read{0};

void* read_last_times(void*) {
  pthread_setname_np(pthread_self(), "tacho-watch");
  g_timer.read_last();
  g_timer.destroy_events();  // the HSA runtime complains of signals that are still in use
  g_last_read.store(1, std::memory_order_release);
  tape::wake_all(g_last_read);
  return nullptr;
}

// HIP's own end is registered while it starts: ours has to come before it, so it is registered after. exit() first
// destroys the thread-local objects of the thread that calls it, HIP's among them: another thread asks for the times.
void read_at_exit() {
  if (g_reads_at_exit.load(std::memory_order_relaxed) || g_reads_at_exit.exchange(true)) return;
  atexit([] {
    // exit() may have been called by a function of the program's that HIP calls under a lock of its own.
    constexpr int64_t kPatience = 1'000'000'000;
    if (!start_own_thread(read_last_times)) return;
    const int64_t end = read_clock(CLOCK_MONOTONIC) + kPatience;
    while (g_last_read.load(std::memory_order_acquire) == 0 && read_clock(CLOCK_MONOTONIC) < end)
      tape::wait_on(g_last_read, 0, kPatience);
  });
}

TACHO_RUN_SELDOM bool ask_whether_captured(Stream stream, bool per_thread, bool known) {
  // Behind an error that waits to be asked for, only a capture that is known is worth a call.
  return g_hip.times() && (known || undisturbed()) && is_capturing(stream, per_thread);
}
// Whether what is put into the stream now becomes a node of a graph rather than work.
TACHO_RUN_OFTEN bool captured(Stream stream, bool per_thread) {
  const bool known = g_timer.capturing();
  return __builtin_expect(known || g_unknown_captures.possible(), 0) && ask_whether_captured(stream, per_thread, known);
}

// Names

TACHO_RUN_SELDOM WatchedKernel* name_kernel(const void* handle, bool by_host, Stream stream) {
  const char* name = nullptr;
  if (handle != nullptr && by_host && g_hip.hipKernelNameRefByPtr != nullptr)
    name = g_hip.hipKernelNameRefByPtr(handle, stream);
  else if (handle != nullptr && !by_host && g_hip.hipKernelNameRef != nullptr)
    name = g_hip.hipKernelNameRef(handle);
  const Guard guard(g_own->objects);
  WatchedKernel* const kernel = kernel_named(name != nullptr ? name : "(unnamed kernel)", kDomain);
  if (name != nullptr) g_kernels.set(handle, kernel);
  return kernel;
}
TACHO_RUN_OFTEN WatchedKernel* kernel_of(const void* handle, bool by_host, Stream stream) {
  void* const known = g_kernels.find(handle);
  return __builtin_expect(known != nullptr, 1) ? static_cast<WatchedKernel*>(known)
                                               : name_kernel(handle, by_host, stream);
}
// HIP has given the handle a meaning, perhaps another one than before.
void forget_kernel(Word handle) {
  const Guard guard(g_own->objects);
  g_kernels.erase(reinterpret_cast<const void*>(handle));
}

TACHO_RUN_SELDOM WatchRow* make_graph_row(void* graph) {
  constexpr uint32_t kMostGraphs = 64;
  const Guard guard(g_own->objects);
  char name[24] = "(other graphs)";
  if (g_graph_names < kMostGraphs) snprintf(name, sizeof name, "graph %u", ++g_graph_names);
  WatchRow* const row = find_row(WatchKind::kGraph, kDomain, name);
  if (row != nullptr) g_graphs.set(graph, row);
  return row;
}

TACHO_RUN_OFTEN WatchRow* graph_row(void* graph) {
  void* const known = g_graphs.find(graph);
  return __builtin_expect(known != nullptr, 1) ? static_cast<WatchRow*>(known) : make_graph_row(graph);
}

// What a call puts into a stream

TACHO_RUN_OFTEN Stream as_stream(Word word) {
  return reinterpret_cast<Stream>(word);
}
Word value_at(Word address, size_t index = 0) {
  return address != 0 ? reinterpret_cast<const Word*>(address)[index] : 0;
}

TACHO_RUN_OFTEN WatchedShape shape_of(const uint32_t (&grid)[3], const uint32_t (&group)[3]) {
  return {{threads(grid[0], group[0]), threads(grid[1], group[1]), threads(grid[2], group[2])},
          {group[0], group[1], group[2]}};
}
TACHO_RUN_OFTEN uint32_t low(Word word) {
  return static_cast<uint32_t>(word);
}
TACHO_RUN_OFTEN uint32_t high(Word word) {
  return static_cast<uint32_t>(word >> 32);
}
// Two dim3, of blocks and of threads of each, in words 1 to 4.
TACHO_RUN_OFTEN WatchedShape blocks_packed(Words w) {
  return shape_of({low(w[1]), high(w[1]), low(w[2])}, {low(w[3]), high(w[3]), low(w[4])});
}
// The same numbers in a word each.
TACHO_RUN_OFTEN WatchedShape blocks(Words w) {
  return shape_of({low(w[1]), low(w[2]), low(w[3])}, {low(w[4]), low(w[5]), low(w[6])});
}
// Work-items in all, and of a work-group.
TACHO_RUN_OFTEN WatchedShape work_items(Words w) {
  return {{low(w[1]), low(w[2]), low(w[3])}, {low(w[4]), low(w[5]), low(w[6])}};
}
// The beginning of hipLaunchConfig_t and of HIP_LAUNCH_CONFIG.
struct LaunchConfig {
  uint32_t grid[3], block[3];
  Word shared_bytes;
  Stream stream;
};
TACHO_RUN_OFTEN WatchedShape configured(Word config) {
  auto* const given = reinterpret_cast<const LaunchConfig*>(config);
  return given != nullptr ? shape_of(given->grid, given->block) : WatchedShape{};
}
TACHO_RUN_OFTEN Word configured_stream(Word config) {
  auto* const given = reinterpret_cast<const LaunchConfig*>(config);
  return given != nullptr ? reinterpret_cast<Word>(given->stream) : 0;
}

TACHO_RUN_OFTEN WatchedOperation launch_of_host(Word function, const WatchedShape& shape, Word stream) {
  auto* const handle = reinterpret_cast<const void*>(function);
  return {kernel_of(handle, true, as_stream(stream))->row(shape), 0, as_stream(stream), false};
}
TACHO_RUN_OFTEN WatchedOperation launch_of_function(Word function, const WatchedShape& shape, Word stream) {
  auto* const handle = reinterpret_cast<const void*>(function);
  return {kernel_of(handle, false, as_stream(stream))->row(shape), 0, as_stream(stream), false};
}
TACHO_RUN_OFTEN WatchedOperation launch_of_graph(Word graph, Word stream) {
  return {graph_row(reinterpret_cast<void*>(graph)), 0, as_stream(stream), false};
}

// hipMemcpyKind, and one more.
constexpr Word kOnHost = 0, kToDevice = 1, kToHost = 2, kOnDevice = 3, kAny = 4, kOnDeviceByEngine = 1024,
               kToPeer = 1025;
WatchRow* copy_row(Word kind) {
  switch (low(kind)) {
    case kOnHost:
      return TACHO_ROW(kCopy, "host to host");
    case kToDevice:
      return TACHO_ROW(kCopy, "host to device");
    case kToHost:
      return TACHO_ROW(kCopy, "device to host");
    case kOnDevice:
    case kOnDeviceByEngine:
      return TACHO_ROW(kCopy, "device to device");
    case kToPeer:
      return TACHO_ROW(kCopy, "device to peer");
    default:
      return TACHO_ROW(kCopy, "between pointers");
  }
}
WatchedOperation copy_on(Word stream, Word kind, Word bytes) {
  return {copy_row(kind), bytes, as_stream(stream), false};
}
WatchedOperation waiting(WatchedOperation operation) {
  operation.waits = true;
  return operation;
}
WatchedOperation copy(Word kind, Word bytes) {
  return waiting(copy_on(0, kind, bytes));
}
WatchedOperation fill(Word stream, Word bytes) {
  return {TACHO_ROW(kFill, "fill"), bytes, as_stream(stream), false};
}

// hip_Memcpy2D and HIP_MEMCPY3D end with the sizes.
Word plane_bytes(Word copy) {
  return copy != 0 ? value_at(copy, 14) * value_at(copy, 15) : 0;
}
Word volume_bytes(Word copy) {
  return copy != 0 ? value_at(copy, 20) * value_at(copy, 21) * value_at(copy, 22) : 0;
}
// A hipExtent's width is in elements where an array takes part, else in bytes.
Word extent_bytes(Word from_array, Word to_array, Word extent) {
  Word bytes = value_at(extent, 0) * value_at(extent, 1) * value_at(extent, 2);
  const Word array = from_array != 0 ? from_array : to_array;
  if (array == 0 || bytes == 0) return bytes;
  int bits[5] = {};  // hipChannelFormatDesc
  size_t size[3];
  unsigned flags = 0;
  if (g_hip.hipArrayGetInfo == nullptr || !g_hip.times() || !undisturbed() ||
      settled(g_hip.hipArrayGetInfo(bits, size, &flags, reinterpret_cast<const void*>(array))) != kSuccess)
    return 0;
  return bytes * static_cast<Word>(bits[0] + bits[1] + bits[2] + bits[3]) / 8;
}
// hipMemcpy3DParms: array, hipPos and hipPitchedPtr of the source, the same of the destination, hipExtent, kind.
WatchedOperation copy_of_extent(Stream stream, Word copy) {
  if (copy == 0) return {copy_row(kAny), 0, stream, false};
  return {copy_row(value_at(copy, 19)), extent_bytes(value_at(copy, 0), value_at(copy, 8), copy + 16 * sizeof(Word)),
          stream, false};
}
// hipMemcpy3DPeerParms: the same with a device behind each pitched pointer.
WatchedOperation copy_to_peer(Stream stream, Word copy) {
  if (copy == 0) return {copy_row(kToPeer), 0, stream, false};
  return {copy_row(kToPeer), extent_bytes(value_at(copy, 0), value_at(copy, 9), copy + 18 * sizeof(Word)), stream,
          false};
}

// Calls of several operations, which are counted: `index` from 0, false behind the last one.

bool launched_by_pointer(Words w, uint32_t index, WatchedOperation& operation) {
  if (index != 0) return false;
  operation = launch_of_host(w[0], {}, 0);  // its shape was given by hipConfigureCall
  return true;
}
struct LaunchParams {  // hipLaunchParams
  Word function;
  uint32_t grid[3], block[3];
  Word arguments, shared_bytes, stream;
};
bool launched_on_devices(Words w, uint32_t index, WatchedOperation& operation) {
  if (w[0] == 0 || index >= low(w[1])) return false;
  const LaunchParams& one = reinterpret_cast<const LaunchParams*>(w[0])[index];
  operation = launch_of_host(one.function, shape_of(one.grid, one.block), one.stream);
  return true;
}
struct FunctionLaunchParams {  // hipFunctionLaunchParams
  Word function;
  uint32_t grid[3], block[3], shared_bytes;
  Word stream, arguments;
};
bool functions_launched_on_devices(Words w, uint32_t index, WatchedOperation& operation) {
  if (w[0] == 0 || index >= low(w[1])) return false;
  const FunctionLaunchParams& one = reinterpret_cast<const FunctionLaunchParams*>(w[0])[index];
  operation = launch_of_function(one.function, shape_of(one.grid, one.block), one.stream);
  return true;
}
bool copied_in_batch(Words w, uint32_t index, WatchedOperation& operation) {
  if (w[2] == 0 || index >= w[3]) return false;
  operation = copy_on(w[8], kAny, value_at(w[2], index));
  return true;
}
// Their sizes are not read: they are among the operations that are in no count.
bool extents_copied_in_batch(Words w, uint32_t index, WatchedOperation& operation) {
  if (index >= w[0]) return false;
  operation = {nullptr, 0, as_stream(w[4]), false};
  return true;
}

// Hooks

Word hook_work(Function* next, Words w, WatchedOperation (*describe)(Words), bool per_thread) {
  if (t_watching.in_hip != 0 || !start(reinterpret_cast<const void*>(next))) return call(next, w);
  const Inside inside;
  OwnTime own;
  const WatchedOperation operation = describe(w);
  if (operation.row == nullptr) {
    lose_operations(1);
    return call(next, w);
  }
  if (captured(operation.stream, per_thread)) return call(next, w);  // counted when its graph is launched
  const int result = watch_work(
      g_timer, own, operation, per_thread, [] { return KeptBy{}; }, [&] { return static_cast<int>(call(next, w)); });
  read_at_exit();
  return static_cast<Word>(static_cast<uint32_t>(result));
}

// Whether a launch needs nothing but what hook_launch() does.
TACHO_RUN_OFTEN bool only_counts(const void* next) {
  return __builtin_expect(next != nullptr && t_watching.in_hip == 0 && g_ready.load(std::memory_order_acquire) &&
                              g_reads_at_exit.load(std::memory_order_relaxed),
                          1);
}
// The same as hook_work() in one piece of code: programs launch more often than they do anything else. `words` are all
// that the function has.
template <typename Describe, typename... A>
TACHO_RUN_OFTEN Word hook_launch(void* next, Describe describe, bool per_thread, A... words) {
  auto* const function = reinterpret_cast<Word (*)(A...)>(next);
  const Inside inside;
  OwnTime own;
  const Word given[] = {words...};
  const WatchedOperation operation = describe(given);
  if (__builtin_expect(operation.row == nullptr, 0)) {
    lose_operations(1);
    return function(words...);
  }
  if (captured(operation.stream, per_thread)) return function(words...);  // counted when its graph is launched
  const int result = watch_work(
      g_timer, own, operation, per_thread, [] { return KeptBy{}; },
      [=] { return static_cast<int>(function(words...)); });
  return static_cast<Word>(static_cast<uint32_t>(result));
}
template <typename Describe, size_t... I>
TACHO_RUN_OFTEN Word hook_launch_of(void* next, Describe describe, bool per_thread, Words w,
                                    std::index_sequence<I...>) {
  return hook_launch(next, describe, per_thread, w[I]...);
}

Word hook_several(Function* next, Words w, bool (*describe)(Words, uint32_t, WatchedOperation&)) {
  if (t_watching.in_hip != 0 || !start(reinterpret_cast<const void*>(next))) return call(next, w);
  const Inside inside;
  WatchedOperation operation;
  const bool any = describe(w, 0, operation);
  const bool into_graph = any && captured(operation.stream, false);
  const uint32_t stay = operation.stay;
  const Word result = call(next, w);
  if (stay != g_stay.load(std::memory_order_relaxed)) return result;
  const bool good = static_cast<int>(result) == kSuccess;
  for (uint32_t i = 0; any && !into_graph && describe(w, i, operation); ++i) {
    uint32_t level = 0;
    if (!good) {
      g_table->header.failed.fetch_add(1, std::memory_order_relaxed);
    } else if (operation.row == nullptr) {
      lose_operations(1);
    } else {
      if (to_be_timed(*operation.row, level)) g_table->header.lost_times.fetch_add(1, std::memory_order_relaxed);
      count_operation(*operation.row, operation.bytes);
    }
  }
  return result;
}

Word hook_wait(Function* next, Words w, WatchRow* (*row)()) {
  if (t_watching.in_hip != 0 || !start(reinterpret_cast<const void*>(next))) return call(next, w);
  const Inside inside;
  return static_cast<Word>(static_cast<uint32_t>(watch_wait(
      g_timer, row(), {}, [&] { return static_cast<int>(call(next, w)); }, [] {})));
}

Word hook_memory(Function* next, Words w, WatchRow* (*row)(), Word (*bytes)(Words)) {
  if (t_watching.in_hip != 0 || !start(reinterpret_cast<const void*>(next))) return call(next, w);
  const Inside inside;
  const uint32_t stay = g_stay.load(std::memory_order_relaxed);
  const Word result = call(next, w);
  if (static_cast<int>(result) != kSuccess || stay != g_stay.load(std::memory_order_relaxed)) return result;
  if (WatchRow* const found = row())
    count_operation(*found, bytes(w));
  else
    lose_operations(1);
  return result;
}

// Calls around which something is to be known

void function_given(int result, Words w) {
  if (result == kSuccess && value_at(w[0]) != 0) forget_kernel(value_at(w[0]));
}
void host_function_registered(int, Words w) {
  forget_kernel(w[1]);
}
void graph_destroyed(int result, Words w) {
  if (result != kSuccess) return;
  const Guard guard(g_own->objects);
  g_graphs.erase(reinterpret_cast<const void*>(w[0]));
}
// A capture that has become invalid ends, too.
void capture_ended(int result, Words) {
  constexpr int kInvalidValue = 1, kInvalidHandle = 400, kIllegalState = 401, kWrongThread = 908;
  if (result != kInvalidValue && result != kInvalidHandle && result != kIllegalState && result != kWrongThread)
    g_timer.end_capture();
}
void capture_begins(Words) {
  g_timer.begin_capture();
}
void no_capture() {
  g_timer.end_capture();
}
void nothing() {}
// A stream's capture ends with it.
void stream_goes(Words w) {
  if (captured(as_stream(w[0]), false)) g_timer.end_capture();
}
void numbered_device_goes(Words w) {
  g_timer.read_last();
  g_timer.forget(place_of_device(static_cast<int>(w[0])));
}
void device_goes(Words) {
  int device = 0;
  if (!g_hip.times() || !undisturbed() || settled(g_hip.hipGetDevice(&device)) != kSuccess) return;
  const Word number = low(static_cast<Word>(device));
  numbered_device_goes(&number);
}

void entry_given(int result, Words w);

// For __hipRegisterFunction, which runs before main(), HIP is not started.
Word hook_after(Function* next, Words w, void (*after)(int, Words), bool starts) {
  const Word result = call(next, w);
  if (t_watching.in_hip != 0 || !(starts ? start(reinterpret_cast<const void*>(next)) : g_ready.load())) return result;
  const Inside inside;
  after(static_cast<int>(result), w);
  return result;
}
Word hook_around(Function* next, Words w, void (*before)(Words), void (*failed)()) {
  if (t_watching.in_hip != 0 || !start(reinterpret_cast<const void*>(next))) return call(next, w);
  const Inside inside;
  before(w);
  const Word result = call(next, w);
  if (static_cast<int>(result) != kSuccess) failed();
  return result;
}

constexpr Word kNotFound = 302;  // hipErrorSharedObjectSymbolNotFound
consteval bool is_per_thread(std::string_view name) {
  return name.ends_with("_spt");
}

}  // namespace
}  // namespace tacho::capture::watch

// Each hook is a function that only this library knows, and has the name that programs know. In a program that ran
// before tacho came, that name means HIP's function, here too.
#define TACHO_HIP_HOOK(symbol, ...)                                                             \
  namespace tacho::capture::watch {                                                             \
  namespace {                                                                                   \
  constinit std::atomic<void*> g_next_##symbol{nullptr};                                        \
  }                                                                                             \
  }                                                                                             \
  extern "C" __attribute__((visibility("hidden"))) uint64_t tacho_watch_##symbol(TACHO_WORDS) { \
    using namespace tacho::capture::watch;                                                      \
    Function* const next = next_of(g_next_##symbol, #symbol, __builtin_return_address(0));      \
    if (next == nullptr) return kNotFound;                                                      \
    const Word words[] = {r0, r1, r2, r3, r4, r5, s0, s1, s2, s3, s4, s5, s6, s7};              \
    return __VA_ARGS__;                                                                         \
  }                                                                                             \
  extern "C" __attribute__((visibility("default"), alias("tacho_watch_" #symbol))) uint64_t symbol(TACHO_WORDS);
#define TACHO_HIP_WORK(symbol, ...) \
  TACHO_HIP_HOOK(symbol,            \
                 hook_work(         \
                     next, words, [](Words w) -> WatchedOperation { return __VA_ARGS__; }, is_per_thread(#symbol)))
// Of `count` words. What comes once lies elsewhere, and gets all words as they are.
#define TACHO_HIP_LAUNCH(symbol, count, ...)                                                                       \
  namespace tacho::capture::watch {                                                                                \
  namespace {                                                                                                      \
  TACHO_READ_OFTEN constinit std::atomic<void*> g_next_##symbol{nullptr};                                          \
  TACHO_RUN_OFTEN WatchedOperation describe_##symbol(Words w) {                                                    \
    return __VA_ARGS__;                                                                                            \
  }                                                                                                                \
  TACHO_RUN_SELDOM Word begin_##symbol(const void* caller, TACHO_WORDS) {                                          \
    Function* const next = next_of(g_next_##symbol, #symbol, caller);                                              \
    if (next == nullptr) return kNotFound;                                                                         \
    const Word words[] = {r0, r1, r2, r3, r4, r5, s0, s1, s2, s3, s4, s5, s6, s7};                                 \
    return hook_work(                                                                                              \
        next, words, [](Words w) { return describe_##symbol(w); }, is_per_thread(#symbol));                        \
  }                                                                                                                \
  }                                                                                                                \
  }                                                                                                                \
  extern "C" __attribute__((visibility("hidden"))) uint64_t tacho_watch_##symbol(TACHO_WORDS) {                    \
    using namespace tacho::capture::watch;                                                                         \
    void* const next = g_next_##symbol.load(std::memory_order_acquire);                                            \
    if (!only_counts(next))                                                                                        \
      return begin_##symbol(__builtin_return_address(0), r0, r1, r2, r3, r4, r5, s0, s1, s2, s3, s4, s5, s6, s7);  \
    const Word words[] = {r0, r1, r2, r3, r4, r5, s0, s1, s2, s3, s4, s5, s6, s7};                                 \
    return hook_launch_of(                                                                                         \
        next, [](Words w) __attribute__((always_inline)) { return describe_##symbol(w); }, is_per_thread(#symbol), \
        words, std::make_index_sequence<count>());                                                                 \
  }                                                                                                                \
  extern "C" __attribute__((visibility("default"), alias("tacho_watch_" #symbol))) uint64_t symbol(TACHO_WORDS);
#define TACHO_HIP_SEVERAL(symbol, describe) TACHO_HIP_HOOK(symbol, hook_several(next, words, describe))
#define TACHO_HIP_WAIT(symbol) TACHO_HIP_HOOK(symbol, hook_wait(next, words, [] { return TACHO_ROW(kWait, #symbol); }))
#define TACHO_HIP_MEMORY(symbol, kind, bytes)                                          \
  TACHO_HIP_HOOK(symbol, hook_memory(                                                  \
                             next, words, [] { return TACHO_ROW(kAllocation, kind); }, \
                             []([[maybe_unused]] Words w) -> Word { return bytes; }))
#define TACHO_HIP_AFTER(symbol, after) \
  TACHO_HIP_HOOK(symbol, hook_after(next, words, after, std::string_view(#symbol).starts_with("hip")))
#define TACHO_HIP_AROUND(symbol, before, failed) TACHO_HIP_HOOK(symbol, hook_around(next, words, before, failed))
#include "capture/plugin/watch/amd/hip_entries.def"

namespace tacho::capture::watch {
namespace {

struct HookedFunction {
  const char* name;
  void* hook;
  std::atomic<void*>* next;
};
#define TACHO_HIP_LINE(symbol) {#symbol, reinterpret_cast<void*>(&tacho_watch_##symbol), &g_next_##symbol},
#define TACHO_HIP_LAUNCH(symbol, count, ...) TACHO_HIP_LINE(symbol)
#define TACHO_HIP_WORK(symbol, ...) TACHO_HIP_LINE(symbol)
#define TACHO_HIP_SEVERAL(symbol, describe) TACHO_HIP_LINE(symbol)
#define TACHO_HIP_WAIT(symbol) TACHO_HIP_LINE(symbol)
#define TACHO_HIP_MEMORY(symbol, kind, bytes) TACHO_HIP_LINE(symbol)
#define TACHO_HIP_AFTER(symbol, after) TACHO_HIP_LINE(symbol)
#define TACHO_HIP_AROUND(symbol, before, failed) TACHO_HIP_LINE(symbol)
const HookedFunction* hooked_functions(size_t& count) {
  static const HookedFunction kFunctions[] = {
#include "capture/plugin/watch/amd/hip_entries.def"
  };
  count = std::size(kFunctions);
  return kFunctions;
}
const HookedFunction* hooked_function(const char* name) {
  size_t count = 0;
  const HookedFunction* const all = hooked_functions(count);
  for (size_t i = 0; i < count; ++i)
    if (strcmp(all[i].name, name) == 0) return &all[i];
  return nullptr;
}

// hipGetProcAddress and its like have given out one of HIP's functions, perhaps its form for per-thread streams.
void entry_given(int result, Words w) {
  auto* const name = reinterpret_cast<const char*>(w[0]);
  auto** const found = reinterpret_cast<void**>(w[1]);
  if (result != kSuccess || name == nullptr || found == nullptr || *found == nullptr || is_own(*found)) return;
  char per_thread[64];
  snprintf(per_thread, sizeof per_thread, "%s_spt", name);
  for (const char* const each : {name, static_cast<const char*>(per_thread)})
    if (find_function(each, *found) == *found) {
      *found = hooked_hip_symbol(each, *found);
      return;
    }
}

}  // namespace

// In a program that ran before tacho came (late.cpp)

namespace {

// The loaded HIP, or nullptr; for dlclose().
void* loaded_hip() {
  for (const char* const library : kLibraries)
    if (void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD)) return handle;
  return nullptr;
}

bool enter_device(uint64_t place) {
  return settled(g_hip.hipSetDevice(static_cast<int>(place - 1))) == kSuccess;
}

}  // namespace

size_t hip_hooks(SlotHook* into, size_t room) {
  void* const library = loaded_hip();
  if (library == nullptr) return 0;
  size_t count = 0, functions = 0;
  const HookedFunction* const all = hooked_functions(functions);
  for (size_t i = 0; i < functions && count < room; ++i) {
    void* const found = real_dlsym(library, all[i].name);
    void* known = nullptr;
    if (found == nullptr || is_own(found)) continue;
    if (!is_patched(found) && !all[i].next->compare_exchange_strong(known, found, std::memory_order_acq_rel) &&
        known != found)
      continue;
    into[count++] = {found, all[i].hook, all[i].name, all[i].next};
  }
  dlclose(library);
  return count;
}

void age_hip_captures() {
  g_unknown_captures.age();
}

void begin_hip() {
  g_timer.begin_stay();
  g_unknown_captures.begin();
  if (g_own == nullptr) return;
  const Guard guard(g_own->objects);
  g_kernels.clear();
  g_graphs.clear();
  g_graph_names = 0;
}

void drain_hip() {
  if (!g_ready.load(std::memory_order_acquire) || !g_hip.times()) return;
  const Inside inside;
  g_timer.end_stay(enter_device);
}

void end_hip() {
  g_ready.store(false, std::memory_order_release);
}

void* hooked_hip_symbol(const char* symbol, void* found) {
  if (!g_watched.load(std::memory_order_relaxed) || is_own(found) || is_patched(found)) return found;
  const HookedFunction* const function = hooked_function(symbol);
  if (function == nullptr) return found;
  void* known = nullptr;
  // A second HIP in the process has hooks of its own nowhere.
  if (!function->next->compare_exchange_strong(known, found, std::memory_order_acq_rel) && known != found) return found;
  return function->hook;
}

}  // namespace tacho::capture::watch
