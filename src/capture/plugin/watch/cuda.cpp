// CUDA under `tacho watch`, without CUPTI: the driver's entry points are replaced where programs get them from (dlsym,
// cuGetProcAddress, and the symbols that this library exports for programs that are linked to the driver). Every call
// is counted; 1 of N is timed by two events of our own on its stream. While a stream is being captured nothing is
// timed: no event of ours may get into a graph, and asking for an event would end the capture.
#include "capture/plugin/watch/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <iterator>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "capture/plugin/watch/graph_parts.h"
#include "capture/plugin/watch/hooks.h"
#include "capture/plugin/watch/patches.h"
#include "capture/room/handle_map.h"
#include "capture/room/lock.h"
#include "capture/room/pages.h"
#include "event/schema.h"

#ifdef TACHO_WATCH_PAST
// A library for measurements (tests/device/watch.py): not 0: calls go past tacho.
extern "C" {
__attribute__((visibility("default"))) TACHO_READ_OFTEN constinit volatile int tacho_watch_past = 0;
}
#define TACHO_GO_PAST(next, ...) \
  if (tacho_watch_past != 0 && next != nullptr) return next(__VA_ARGS__)
#else
#define TACHO_GO_PAST(next, ...) static_cast<void>(0)
#endif

namespace tacho::capture::watch {
namespace {

constexpr auto kDomain = static_cast<uint32_t>(event::Domain::kCudaDriver);
constexpr int kSuccess = 0, kNotReady = 600;

using Function = void*;  // CUfunction, or CUkernel in its place
using Context = void*;
using Address = unsigned long long;  // CUdeviceptr

// CUstreamBatchMemOpParams, as far as it describes a barrier
struct BatchOperation {
  uint32_t operation, flags;
  uint64_t unused[5];
};

// Our own calls of the driver. Missing ones are null: an older driver.
struct Driver {
  int (*cuCtxGetCurrent)(Context*);
  int (*cuStreamIsCapturing)(Stream, int*);
  int (*cuStreamIsCapturing_ptsz)(Stream, int*);
  int (*cuEventCreate)(Event*, unsigned);
  int (*cuEventDestroy_v2)(Event);
  int (*cuEventRecord)(Event, Stream);
  int (*cuEventRecord_ptsz)(Event, Stream);
  int (*cuEventQuery)(Event);
  int (*cuEventElapsedTime)(float*, Event, Event);
  int (*cuStreamBatchMemOp_v2)(Stream, unsigned, BatchOperation*, unsigned);
  int (*cuStreamBatchMemOp_v2_ptsz)(Stream, unsigned, BatchOperation*, unsigned);
  int (*cuCtxGetDevice)(int*);
  int (*cuDeviceGetAttribute)(int*, int, int);
  int (*cuCtxFromGreenCtx)(Context*, Context);
  int (*cuFuncGetName)(const char**, Function);
  int (*cuKernelGetName)(const char**, Function);
  int (*cuCtxSetCurrent)(Context);
  int (*cuThreadExchangeStreamCaptureMode)(int*);
  int (*cuDeviceGetName)(char*, int, int);
  int (*cuDeviceTotalMem_v2)(size_t*, int);

  bool times() const {
    return cuCtxGetCurrent != nullptr && cuStreamIsCapturing != nullptr && cuEventCreate != nullptr &&
           cuEventRecord != nullptr && cuEventQuery != nullptr && cuEventElapsedTime != nullptr;
  }
};
constinit Driver g_driver = {};
TACHO_READ_OFTEN constinit std::atomic<bool> g_ready{false};

// A forked child finds it zeroed.
struct OwnState {
  LockWord objects;
};
constinit OwnState* g_own = nullptr;
TACHO_READ_OFTEN constinit EventTimer g_timer;
TACHO_READ_OFTEN constinit HandleMap g_kernels;                             // CUfunction, CUkernel -> WatchedKernel
constinit HandleMap g_graphs;                                               // CUgraphExec -> WatchRow
constinit HandleMap g_contexts;                                             // CUcontext -> itself, when the ring has it
TACHO_READ_OFTEN constinit std::atomic<Context> g_newest_context{nullptr};  // of those
constinit GraphFunctions g_graph_functions = {};
constinit BatchOperation g_barriers[kMostHeld] = {};

bool exchange_mode(int* mode) {
  return g_driver.cuThreadExchangeStreamCaptureMode != nullptr &&
         g_driver.cuThreadExchangeStreamCaptureMode(mode) == kSuccess;
}

Context current_context() {
  Context context = nullptr;
  return g_driver.cuCtxGetCurrent(&context) == kSuccess ? context : nullptr;
}
uint64_t current_place() {
  return reinterpret_cast<uint64_t>(current_context());
}
TACHO_RUN_SELDOM bool is_capturing(Stream stream, bool per_thread) {
  if (g_driver.cuStreamIsCapturing == nullptr) return false;
  int state = 0;  // CU_STREAM_CAPTURE_STATUS_NONE
  auto* const ask = per_thread && g_driver.cuStreamIsCapturing_ptsz != nullptr ? g_driver.cuStreamIsCapturing_ptsz
                                                                               : g_driver.cuStreamIsCapturing;
  return ask(stream, &state) == kSuccess && state != 0;
}

// The section begins with it, so that all of it lies in two lines.
alignas(128) TACHO_READ_OFTEN constinit UnknownCaptures g_unknown_captures;

uint64_t place_of(Stream stream, bool per_thread) {
  if (!g_driver.times()) return kNoPlace;
  if (g_late && is_capturing(stream, per_thread)) {
    g_unknown_captures.begin();
    return kNoPlace;
  }
  return current_place();
}
bool create_event(uint64_t, Event* event) {
  constexpr unsigned kTimed = 0;  // CU_EVENT_DEFAULT
  const BesideCaptures<exchange_mode> beside;
  return g_driver.cuEventCreate(event, kTimed) == kSuccess;
}
void destroy_event(Event event) {
  if (g_driver.cuEventDestroy_v2 != nullptr) g_driver.cuEventDestroy_v2(event);
}
bool record_event(Event event, Stream stream, bool per_thread) {
  auto* const record =
      per_thread && g_driver.cuEventRecord_ptsz != nullptr ? g_driver.cuEventRecord_ptsz : g_driver.cuEventRecord;
  return record(event, stream) == kSuccess;
}
EventState query_event(Event event) {
  const BesideCaptures<exchange_mode> beside;
  const int state = g_driver.cuEventQuery(event);
  return state == kSuccess ? EventState::kEnded : state == kNotReady ? EventState::kPending : EventState::kFailed;
}
bool elapsed(Event from, Event to, float* milliseconds) {
  return g_driver.cuEventElapsedTime(milliseconds, from, to) == kSuccess;
}
// By barriers of memory: a call for many of them takes the host less time than it takes the device.
bool hold(Stream stream, bool per_thread, uint32_t count) {
  auto* const batch = per_thread && g_driver.cuStreamBatchMemOp_v2_ptsz != nullptr ? g_driver.cuStreamBatchMemOp_v2_ptsz
                                                                                   : g_driver.cuStreamBatchMemOp_v2;
  return batch != nullptr && batch(stream, count, g_barriers, 0) == kSuccess;
}
// Measured beside CUPTI's times on that architecture. No program can measure it about itself without a kernel of its
// own, and to load one may wait for the program's kernels, which may wait for each other.
BesideEvents beside() {
  constexpr BesideEvents kHopper = {650, 1850, 16'000, 550, 400};
  constexpr int kMajor = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
  int device = 0, major = 0;
  const bool known = g_driver.cuCtxGetDevice != nullptr && g_driver.cuDeviceGetAttribute != nullptr &&
                     g_driver.cuCtxGetDevice(&device) == kSuccess &&
                     g_driver.cuDeviceGetAttribute(&major, kMajor, device) == kSuccess;
  return known && major == 9 ? kHopper : BesideEvents{};
}
constexpr EventRuntime kRuntime = {kDomain,      place_of,    current_place, create_event, destroy_event,
                                   record_event, query_event, elapsed,       hold,         beside};

// Before the first hook does anything. False: nobody watches, or there is no memory.
bool start() {
  if (g_ready.load(std::memory_order_acquire)) return true;
  if (!g_watched.load(std::memory_order_acquire)) return false;
  static constinit LockWord starting{0};
  const Guard guard(starting);
  if (g_ready.load(std::memory_order_relaxed)) return true;
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
#define TACHO_FIND(name) g_driver.name = reinterpret_cast<decltype(g_driver.name)>(real_dlsym(library, #name))
  TACHO_FIND(cuCtxGetCurrent);
  TACHO_FIND(cuStreamIsCapturing);
  TACHO_FIND(cuStreamIsCapturing_ptsz);
  TACHO_FIND(cuEventCreate);
  TACHO_FIND(cuEventDestroy_v2);
  TACHO_FIND(cuEventRecord);
  TACHO_FIND(cuEventRecord_ptsz);
  TACHO_FIND(cuEventQuery);
  TACHO_FIND(cuEventElapsedTime);
  TACHO_FIND(cuStreamBatchMemOp_v2);
  TACHO_FIND(cuStreamBatchMemOp_v2_ptsz);
  TACHO_FIND(cuCtxGetDevice);
  TACHO_FIND(cuDeviceGetAttribute);
  TACHO_FIND(cuCtxFromGreenCtx);
  TACHO_FIND(cuFuncGetName);
  TACHO_FIND(cuKernelGetName);
  TACHO_FIND(cuCtxSetCurrent);
  TACHO_FIND(cuThreadExchangeStreamCaptureMode);
  TACHO_FIND(cuDeviceGetName);
  TACHO_FIND(cuDeviceTotalMem_v2);
#undef TACHO_FIND
#define TACHO_FIND(name) \
  g_graph_functions.name = reinterpret_cast<decltype(g_graph_functions.name)>(real_dlsym(library, #name))
  TACHO_FIND(cuGraphGetNodes);
  TACHO_FIND(cuGraphNodeGetType);
  TACHO_FIND(cuGraphKernelNodeGetParams);
  TACHO_FIND(cuGraphKernelNodeGetParams_v2);
  TACHO_FIND(cuGraphChildGraphNodeGetGraph);
#undef TACHO_FIND
  if (g_own == nullptr) {
    auto* const own = static_cast<OwnState*>(map_pages(sizeof(OwnState)));
    if (own == nullptr) return false;
    madvise(own, sizeof(OwnState), MADV_WIPEONFORK);
    constexpr uint32_t kBarrier = 6;  // CU_STREAM_MEM_OP_BARRIER, of the whole system
    for (BatchOperation& each : g_barriers) each.operation = kBarrier;
    if (!g_timer.start(kRuntime)) return false;
    g_own = own;
    atexit([] { g_timer.read_last(); });
  }
  note_domain(kDomain);
  g_ready.store(true, std::memory_order_release);
  return true;
}

// The calling thread's context, which the ring has then.
uint64_t kept_context() {
  if (g_driver.cuCtxGetCurrent == nullptr) return 0;
  Context const context = current_context();
  if (context == g_newest_context.load(std::memory_order_relaxed) || context == nullptr ||
      g_contexts.find(context) != nullptr)
    return reinterpret_cast<uint64_t>(context);
  int device = 0;
  char name[64] = "";
  size_t memory = 0;
  if (g_driver.cuCtxGetDevice != nullptr && g_driver.cuCtxGetDevice(&device) == kSuccess) {
    if (g_driver.cuDeviceGetName == nullptr || g_driver.cuDeviceGetName(name, sizeof name, device) != kSuccess)
      name[0] = '\0';
    if (g_driver.cuDeviceTotalMem_v2 == nullptr || g_driver.cuDeviceTotalMem_v2(&memory, device) != kSuccess)
      memory = 0;
  }
  const Guard guard(g_own->objects);
  keep_object({.handle = context,
               .device = static_cast<uint32_t>(device),
               .memory = memory,
               .domain = event::Domain::kCudaDriver,
               .kind = event::DeviceKind::kGpu,
               .name = name,
               .vendor = "NVIDIA"});
  g_contexts.set(context, context);
  g_newest_context.store(context, std::memory_order_relaxed);
  return reinterpret_cast<uint64_t>(context);
}
// A context goes, or all (null) go.
void forget_context(Context context) {
  g_timer.forget(context != nullptr ? reinterpret_cast<uint64_t>(context) : kAnyPlace);
  const Guard guard(g_own->objects);
  g_newest_context.store(nullptr, std::memory_order_relaxed);
  if (context == nullptr)
    g_contexts.clear();
  else
    g_contexts.erase(context);
}

// Whether what is put into the stream now becomes a node of a graph rather than work.
TACHO_RUN_OFTEN bool captured(Stream stream, bool per_thread) {
  return __builtin_expect(g_unknown_captures.possible() || g_timer.capturing(), 0) && is_capturing(stream, per_thread);
}

// Names

TACHO_RUN_SELDOM WatchedKernel* name_kernel(Function function) {
  const OnceTime once;
  const char* name = nullptr;
  const bool named =
      (g_driver.cuFuncGetName != nullptr && g_driver.cuFuncGetName(&name, function) == kSuccess && name != nullptr) ||
      (g_driver.cuKernelGetName != nullptr && g_driver.cuKernelGetName(&name, function) == kSuccess && name != nullptr);
  const Guard guard(g_own->objects);
  WatchedKernel* const kernel = kernel_named(named ? name : "(unnamed kernel)", kDomain);
  g_kernels.set(function, kernel);
  return kernel;
}
TACHO_RUN_OFTEN WatchedKernel* kernel_of(Function function) {
  void* const known = g_kernels.find(function);
  return __builtin_expect(known != nullptr, 1) ? static_cast<WatchedKernel*>(known) : name_kernel(function);
}
// The driver has given out a handle, perhaps one that meant another kernel before.
void keep_name(Function function, const char* name) {
  if (function == nullptr || name == nullptr) return;
  const Guard guard(g_own->objects);
  if (g_driver.cuFuncGetName != nullptr)
    g_kernels.erase(function);  // asked for at the first launch: programs load more kernels than they launch
  else
    g_kernels.set(function, kernel_named(name, kDomain));
}

TACHO_RUN_SELDOM WatchRow* make_graph_row(void* graph) {
  const Guard guard(g_own->objects);
  WatchRow* const row = name_graph(kDomain);
  if (row != nullptr) g_graphs.set(graph, row);
  return row;
}
TACHO_RUN_OFTEN WatchRow* graph_row(void* graph) {
  void* const known = g_graphs.find(graph);
  return __builtin_expect(known != nullptr, 1) ? static_cast<WatchRow*>(known) : make_graph_row(graph);
}
void set_graph(void* exec, WatchRow* row) {
  const Guard guard(g_own->objects);
  if (row != nullptr)
    g_graphs.set(exec, row);
  else
    g_graphs.erase(exec);
}
// `exec` launches what is in `graph` from now on.
void keep_graph(void* exec, void* graph) {
  const OnceTime once;
  set_graph(exec, read_graph(g_graph_functions, kDomain, graph, [](Function function, const WatchedShape& shape) {
              return kernel_of(function)->row(shape);
            }));
}
// `exec` launches something else from now on, and the driver does not tell what in all.
void change_graph(void* exec) {
  set_graph(exec, TACHO_ROW(kGraph, "(changed graphs)"));
}

// What a call puts into a stream

#define TACHO_TO_DEVICE TACHO_ROW(kCopy, "host to device")
#define TACHO_TO_HOST TACHO_ROW(kCopy, "device to host")
#define TACHO_ON_DEVICE TACHO_ROW(kCopy, "device to device")
#define TACHO_ANY_COPY TACHO_ROW(kCopy, "between pointers")
#define TACHO_FILL TACHO_ROW(kFill, "fill")

// CUlaunchConfig
struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  Stream stream;
};

// CUDA_MEMCPY2D and CUDA_MEMCPY3D
struct Copy2D {
  size_t from_x, from_y;
  int from_kind;
  const void* from_host;
  Address from_device;
  void* from_array;
  size_t from_pitch, to_x, to_y;
  int to_kind;
  void* to_host;
  Address to_device;
  void* to_array;
  size_t to_pitch, width, height;
};
struct Copy3D {
  size_t from_x, from_y, from_z, from_level;
  int from_kind;
  const void* from_host;
  Address from_device;
  void* from_array;
  void* reserved_from;
  size_t from_pitch, from_height, to_x, to_y, to_z, to_level;
  int to_kind;
  void* to_host;
  Address to_device;
  void* to_array;
  void* reserved_to;
  size_t to_pitch, to_height, width, height, depth;
};
WatchRow* direction(int from, int to) {
  constexpr int kHost = 1, kUnified = 4;
  if (from == kUnified || to == kUnified) return TACHO_ANY_COPY;
  if (from == kHost) return to == kHost ? TACHO_ROW(kCopy, "host to host") : TACHO_TO_DEVICE;
  return to == kHost ? TACHO_TO_HOST : TACHO_ON_DEVICE;
}

// One struct a function: its name with version, the suffix of its form for per-thread default streams ("" = there is
// none), and what it puts into a stream.
#define TACHO_ENTRY(entry, version, thread)        \
  static constexpr const char* kBase = #entry;     \
  static constexpr const char* kVersion = version; \
  static constexpr const char* kThread = thread

struct LaunchKernel {
  TACHO_ENTRY(cuLaunchKernel, "", "_ptsz");
  TACHO_RUN_OFTEN static WatchedOperation describe(Function function, unsigned gx, unsigned gy, unsigned gz,
                                                   unsigned bx, unsigned by, unsigned bz, unsigned, Stream stream,
                                                   void**, void**) {
    const WatchedShape shape = {{threads(gx, bx), threads(gy, by), threads(gz, bz)}, {bx, by, bz}};
    return {kernel_of(function)->row(shape), 0, stream, false};
  }
};
struct LaunchCooperative {
  TACHO_ENTRY(cuLaunchCooperativeKernel, "", "_ptsz");
  TACHO_RUN_OFTEN static WatchedOperation describe(Function function, unsigned gx, unsigned gy, unsigned gz,
                                                   unsigned bx, unsigned by, unsigned bz, unsigned, Stream stream,
                                                   void**) {
    const WatchedShape shape = {{threads(gx, bx), threads(gy, by), threads(gz, bz)}, {bx, by, bz}};
    return {kernel_of(function)->row(shape), 0, stream, false};
  }
};
struct LaunchKernelEx {
  TACHO_ENTRY(cuLaunchKernelEx, "", "_ptsz");
  TACHO_RUN_OFTEN static WatchedOperation describe(const LaunchConfig* config, Function function, void**, void**) {
    if (config == nullptr) return {kernel_of(function)->row({}), 0, nullptr, false};
    WatchedShape shape;
    for (size_t i = 0; i < 3; ++i) {
      shape.grid[i] = threads(config->grid[i], config->block[i]);
      shape.group[i] = config->block[i];
    }
    return {kernel_of(function)->row(shape), 0, config->stream, false};
  }
};
struct LaunchGraph {
  TACHO_ENTRY(cuGraphLaunch, "", "_ptsz");
  TACHO_RUN_OFTEN static WatchedOperation describe(void* graph, Stream stream) {
    return {graph_row(graph), 0, stream, false};
  }
};
struct CopyAny {
  TACHO_ENTRY(cuMemcpy, "", "_ptds");
  TACHO_RUN_OFTEN static WatchedOperation describe(Address, Address, size_t bytes) {
    return {TACHO_ANY_COPY, bytes, nullptr, true};
  }
};
struct CopyAnyAsync {
  TACHO_ENTRY(cuMemcpyAsync, "", "_ptsz");
  TACHO_RUN_OFTEN static WatchedOperation describe(Address, Address, size_t bytes, Stream stream) {
    return {TACHO_ANY_COPY, bytes, stream, false};
  }
};
struct CopyPeer {
  TACHO_ENTRY(cuMemcpyPeer, "", "_ptds");
  TACHO_RUN_OFTEN static WatchedOperation describe(Address, Context, Address, Context, size_t bytes) {
    return {TACHO_ROW(kCopy, "device to peer"), bytes, nullptr, true};
  }
};
struct CopyPeerAsync {
  TACHO_ENTRY(cuMemcpyPeerAsync, "", "_ptsz");
  TACHO_RUN_OFTEN static WatchedOperation describe(Address, Context, Address, Context, size_t bytes, Stream stream) {
    return {TACHO_ROW(kCopy, "device to peer"), bytes, stream, false};
  }
};
struct CopyToDevice {
  TACHO_ENTRY(cuMemcpyHtoD, "_v2", "_ptds");
  TACHO_RUN_OFTEN static WatchedOperation describe(Address, const void*, size_t bytes) {
    return {TACHO_TO_DEVICE, bytes, nullptr, true};
  }
};
struct CopyToDeviceAsync {
  TACHO_ENTRY(cuMemcpyHtoDAsync, "_v2", "_ptsz");
  TACHO_RUN_OFTEN static WatchedOperation describe(Address, const void*, size_t bytes, Stream stream) {
    return {TACHO_TO_DEVICE, bytes, stream, false};
  }
};
struct CopyToHost {
  TACHO_ENTRY(cuMemcpyDtoH, "_v2", "_ptds");
  TACHO_RUN_OFTEN static WatchedOperation describe(void*, Address, size_t bytes) {
    return {TACHO_TO_HOST, bytes, nullptr, true};
  }
};
struct CopyToHostAsync {
  TACHO_ENTRY(cuMemcpyDtoHAsync, "_v2", "_ptsz");
  TACHO_RUN_OFTEN static WatchedOperation describe(void*, Address, size_t bytes, Stream stream) {
    return {TACHO_TO_HOST, bytes, stream, false};
  }
};
struct CopyOnDevice {
  TACHO_ENTRY(cuMemcpyDtoD, "_v2", "_ptds");
  TACHO_RUN_OFTEN static WatchedOperation describe(Address, Address, size_t bytes) {
    return {TACHO_ON_DEVICE, bytes, nullptr, false};
  }
};
struct CopyOnDeviceAsync {
  TACHO_ENTRY(cuMemcpyDtoDAsync, "_v2", "_ptsz");
  TACHO_RUN_OFTEN static WatchedOperation describe(Address, Address, size_t bytes, Stream stream) {
    return {TACHO_ON_DEVICE, bytes, stream, false};
  }
};
struct CopyPlane {
  TACHO_ENTRY(cuMemcpy2D, "_v2", "_ptds");
  TACHO_RUN_OFTEN static WatchedOperation describe(const Copy2D* copy) {
    if (copy == nullptr) return {TACHO_ANY_COPY, 0, nullptr, true};
    return {direction(copy->from_kind, copy->to_kind), copy->width * copy->height, nullptr, true};
  }
};
struct CopyPlaneUnaligned : CopyPlane {
  TACHO_ENTRY(cuMemcpy2DUnaligned, "_v2", "_ptds");
};
struct CopyPlaneAsync {
  TACHO_ENTRY(cuMemcpy2DAsync, "_v2", "_ptsz");
  TACHO_RUN_OFTEN static WatchedOperation describe(const Copy2D* copy, Stream stream) {
    if (copy == nullptr) return {TACHO_ANY_COPY, 0, stream, false};
    return {direction(copy->from_kind, copy->to_kind), copy->width * copy->height, stream, false};
  }
};
struct CopyVolume {
  TACHO_ENTRY(cuMemcpy3D, "_v2", "_ptds");
  TACHO_RUN_OFTEN static WatchedOperation describe(const Copy3D* copy) {
    if (copy == nullptr) return {TACHO_ANY_COPY, 0, nullptr, true};
    return {direction(copy->from_kind, copy->to_kind), copy->width * copy->height * copy->depth, nullptr, true};
  }
};
struct CopyVolumeAsync {
  TACHO_ENTRY(cuMemcpy3DAsync, "_v2", "_ptsz");
  TACHO_RUN_OFTEN static WatchedOperation describe(const Copy3D* copy, Stream stream) {
    if (copy == nullptr) return {TACHO_ANY_COPY, 0, stream, false};
    return {direction(copy->from_kind, copy->to_kind), copy->width * copy->height * copy->depth, stream, false};
  }
};
struct Fill8 {
  TACHO_ENTRY(cuMemsetD8, "_v2", "_ptds");
  TACHO_RUN_OFTEN static WatchedOperation describe(Address, unsigned char, size_t count) {
    return {TACHO_FILL, count, nullptr, false};
  }
};
struct Fill16 {
  TACHO_ENTRY(cuMemsetD16, "_v2", "_ptds");
  TACHO_RUN_OFTEN static WatchedOperation describe(Address, unsigned short, size_t count) {
    return {TACHO_FILL, count * 2, nullptr, false};
  }
};
struct Fill32 {
  TACHO_ENTRY(cuMemsetD32, "_v2", "_ptds");
  TACHO_RUN_OFTEN static WatchedOperation describe(Address, unsigned, size_t count) {
    return {TACHO_FILL, count * 4, nullptr, false};
  }
};
struct Fill8Async {
  TACHO_ENTRY(cuMemsetD8Async, "", "_ptsz");
  TACHO_RUN_OFTEN static WatchedOperation describe(Address, unsigned char, size_t count, Stream stream) {
    return {TACHO_FILL, count, stream, false};
  }
};
struct Fill16Async {
  TACHO_ENTRY(cuMemsetD16Async, "", "_ptsz");
  TACHO_RUN_OFTEN static WatchedOperation describe(Address, unsigned short, size_t count, Stream stream) {
    return {TACHO_FILL, count * 2, stream, false};
  }
};
struct Fill32Async {
  TACHO_ENTRY(cuMemsetD32Async, "", "_ptsz");
  TACHO_RUN_OFTEN static WatchedOperation describe(Address, unsigned, size_t count, Stream stream) {
    return {TACHO_FILL, count * 4, stream, false};
  }
};

// Hooks

// The driver's function that a program or library which is linked to the driver would have called.
void* linked_function(const char* symbol) {
  if (void* const found = real_dlsym(RTLD_NEXT, symbol)) return found;
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);  // loaded out of the global scope
  return library != nullptr ? real_dlsym(library, symbol) : nullptr;
}

// The function that the program would have called, for each of the two forms, and its number in the ring: both are read
// in each call.
template <typename Entry, int Thread, typename F>
struct Next {
  struct alignas(2 * sizeof(uint64_t)) Known {
    std::atomic<F> function{nullptr};
    CallNumber number;
  };
  static inline constinit Known known{};
  static uint16_t number() { return known.number.find(event::Domain::kCudaDriver, Entry::kBase, Entry::kVersion); }
  static F get() {
    F found = known.function.load(std::memory_order_relaxed);
    return __builtin_expect(found != nullptr, 1) ? found : find_linked();
  }

 private:
  // The program is linked to the driver.
  TACHO_RUN_SELDOM static F find_linked() {
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s%s%s", Entry::kBase, Entry::kVersion, Thread != 0 ? Entry::kThread : "");
    const F found = reinterpret_cast<F>(linked_function(symbol));
    known.function.store(found, std::memory_order_relaxed);
    return found;
  }
};
constexpr int kNotInitialized = 3;

// Where the driver's functions are patched, its own calls of each other come here, too: they are a part of the
// program's call, and counted with it.
template <typename Call, typename... A>
TACHO_RUN_OFTEN int forward(Call next, A... args) {
  ++t_watching.forwarded;
  const int result = next(args...);
  --t_watching.forwarded;
  return result;
}

template <typename Entry, int Thread, typename F = decltype(&Entry::describe)>
struct Work;
template <typename Entry, int Thread, typename... A>
struct Work<Entry, Thread, WatchedOperation (*)(A...)> {
  using Call = int (*)(A...);
  using Real = Next<Entry, Thread, Call>;
  static int call(A... args) {
    const Call next = Real::known.function.load(std::memory_order_relaxed);
    TACHO_GO_PAST(next, args...);
    const bool plain = next != nullptr && t_watching.forwarded == 0 && g_ready.load(std::memory_order_acquire);
    if (__builtin_expect(!plain, 0)) return begin(args...);
    OwnTime own;
    const WatchedOperation operation = Entry::describe(args...);
    if (__builtin_expect(operation.row == nullptr, 0)) return lose(next, args...);
    // Counted when its graph is launched.
    if (captured(operation.stream, Thread != 0)) return leave_out(next, args...);
    return watch_work(
        g_timer, own, operation, Thread != 0,
        [] {
          return KeptBy{Real::number(), kept_context};
        },
        [=] { return forward(next, args...); });
  }

 private:
  TACHO_RUN_SELDOM static int begin(A... args) {
    const Call next = Real::get();
    if (next == nullptr) return kNotInitialized;
    return t_watching.forwarded != 0 || !start() ? forward(next, args...) : call(args...);
  }
  TACHO_RUN_SELDOM static int lose(Call next, A... args) {
    lose_operations(1);
    return forward(next, args...);
  }
  TACHO_RUN_SELDOM static int leave_out(Call next, A... args) { return forward(next, args...); }
};

// Calls that wait

struct StreamSynchronize {
  TACHO_ENTRY(cuStreamSynchronize, "", "_ptsz");
  using Call = int (*)(Stream);
  static WatchRow* row() { return TACHO_ROW(kWait, "cuStreamSynchronize"); }
  static constexpr uint8_t kEnds = event::kWatchWaitsForQueue;
  static Stream stream(Stream stream) { return stream; }
};
struct ContextSynchronize {
  TACHO_ENTRY(cuCtxSynchronize, "", "");
  using Call = int (*)();
  static WatchRow* row() { return TACHO_ROW(kWait, "cuCtxSynchronize"); }
  static constexpr uint8_t kEnds = event::kWatchWaitsForAll;
  static Stream stream() { return nullptr; }
};
// From CUDA 13 on; its parameter is the context.
struct SynchronizeContext : ContextSynchronize {
  TACHO_ENTRY(cuCtxSynchronize, "_v2", "");
  using Call = int (*)(Context);
  static Stream stream(Context) { return nullptr; }
};
struct EventSynchronize {
  TACHO_ENTRY(cuEventSynchronize, "", "");
  using Call = int (*)(Event);
  static WatchRow* row() { return TACHO_ROW(kWait, "cuEventSynchronize"); }
  static constexpr uint8_t kEnds = 0;
  static Stream stream(Event) { return nullptr; }
};
template <typename Entry, int Thread, typename F = typename Entry::Call>
struct Wait;
template <typename Entry, int Thread, typename... A>
struct Wait<Entry, Thread, int (*)(A...)> {
  using Call = int (*)(A...);
  static int call(A... args) {
    const Call next = Next<Entry, Thread, Call>::get();
    if (next == nullptr) return kNotInitialized;
    TACHO_GO_PAST(next, args...);
    if (t_watching.forwarded != 0 || !start()) return forward(next, args...);
    const KeptBy by = {Next<Entry, Thread, Call>::number(), kept_context, Entry::stream(args...), Entry::kEnds};
    return watch_wait(
        g_timer, Entry::row(), by, [&] { return forward(next, args...); },
        [&] {
          if (Entry::kEnds != 0) g_timer.relate_clocks(by.stream, Thread != 0);
        });
  }
};

// Calls after or before which something is to be known

// Memory: `bytes` is the parameter that says how many.
struct Allocate {
  TACHO_ENTRY(cuMemAlloc, "_v2", "");
  static uint64_t bytes(Address*, size_t bytes) { return bytes; }
};
struct AllocateAsync {
  TACHO_ENTRY(cuMemAllocAsync, "", "_ptsz");
  static uint64_t bytes(Address*, size_t bytes, Stream) { return bytes; }
};
struct AllocateFromPool {
  TACHO_ENTRY(cuMemAllocFromPoolAsync, "", "_ptsz");
  static uint64_t bytes(Address*, size_t bytes, void*, Stream) { return bytes; }
};
struct AllocateManaged {
  TACHO_ENTRY(cuMemAllocManaged, "", "");
  static uint64_t bytes(Address*, size_t bytes, unsigned) { return bytes; }
};
struct CreateMemory {
  TACHO_ENTRY(cuMemCreate, "", "");
  static uint64_t bytes(Address*, size_t bytes, const void*, unsigned long long) { return bytes; }
};
template <typename Entry, int Thread, typename F = decltype(&Entry::bytes)>
struct Allocation;
template <typename Entry, int Thread, typename... A>
struct Allocation<Entry, Thread, uint64_t (*)(A...)> {
  using Call = int (*)(A...);
  static int call(A... args) {
    const Call next = Next<Entry, Thread, Call>::get();
    if (next == nullptr) return kNotInitialized;
    const KeptCall keeping;
    const int result = forward(next, args...);
    if (t_watching.forwarded != 0 || !start()) return result;
    WatchRow* const row = TACHO_ROW(kAllocation, "device memory");
    const Address* const at = std::get<0>(std::tie(args...));
    if (keeping.kept())
      keeping.end({.kind = WatchRecordKind::kAllocate,
                   .call = Next<Entry, Thread, Call>::number(),
                   .row = row != nullptr ? row_number(*row) : event::kWatchNoRow,
                   .object = result == kSuccess && at != nullptr ? *at : 0,
                   .amount = Entry::bytes(args...),
                   .context = kept_context(),
                   .result = result});
    if (result != kSuccess) return result;
    if (row != nullptr)
      count_operation(*row, Entry::bytes(args...));
    else
      lose_operations(1);
    return result;
  }
};

// Memory that is given back. The address of memory of cuMemCreate is its handle.
struct Free {
  TACHO_ENTRY(cuMemFree, "_v2", "");
  static Address address(Address at) { return at; }
};
struct FreeAsync {
  TACHO_ENTRY(cuMemFreeAsync, "", "_ptsz");
  static Address address(Address at, Stream) { return at; }
};
struct ReleaseMemory {
  TACHO_ENTRY(cuMemRelease, "", "");
  static Address address(unsigned long long handle) { return handle; }
};
template <typename Entry, int Thread, typename F = decltype(&Entry::address)>
struct Freeing;
template <typename Entry, int Thread, typename... A>
struct Freeing<Entry, Thread, Address (*)(A...)> {
  using Call = int (*)(A...);
  static int call(A... args) {
    const Call next = Next<Entry, Thread, Call>::get();
    if (next == nullptr) return kNotInitialized;
    const KeptCall keeping;
    const int result = forward(next, args...);
    if (keeping.kept() && t_watching.forwarded == 0 && start())
      keeping.end({.kind = WatchRecordKind::kFree,
                   .call = Next<Entry, Thread, Call>::number(),
                   .object = Entry::address(args...),
                   .context = kept_context(),
                   .result = result});
    return result;
  }
};

// Names of kernels, when the driver gives out their handles.
struct ModuleGetFunction {
  TACHO_ENTRY(cuModuleGetFunction, "", "");
  static void after(int result, Function* function, void*, const char* name) {
    if (result == kSuccess && function != nullptr) keep_name(*function, name);
  }
};
struct LibraryGetKernel {
  TACHO_ENTRY(cuLibraryGetKernel, "", "");
  static void after(int result, Function* kernel, void*, const char* name) {
    if (result == kSuccess && kernel != nullptr) keep_name(*kernel, name);
  }
};
struct KernelGetFunction {
  TACHO_ENTRY(cuKernelGetFunction, "", "");
  static void after(int result, Function* function, Function kernel) {
    if (result != kSuccess || function == nullptr) return;
    void* const known = g_kernels.find(kernel);
    const Guard guard(g_own->objects);
    if (known != nullptr)
      g_kernels.set(*function, known);
    else
      g_kernels.erase(*function);
  }
};
struct GraphDestroy {
  TACHO_ENTRY(cuGraphExecDestroy, "", "");
  static void after(int result, void* graph) {
    if (result != kSuccess) return;
    const Guard guard(g_own->objects);
    g_graphs.erase(graph);
  }
};
struct InstantiateWithFlags {
  TACHO_ENTRY(cuGraphInstantiateWithFlags, "", "");
  static void after(int result, void** exec, void* graph, unsigned long long) {
    if (result == kSuccess && exec != nullptr) keep_graph(*exec, graph);
  }
};
// Until CUDA 11; from 12 on cuGetProcAddress gives the one above by this name.
struct Instantiate {
  TACHO_ENTRY(cuGraphInstantiate, "_v2", "");
  static void after(int result, void** exec, void* graph, void**, char*, size_t) {
    if (result == kSuccess && exec != nullptr) keep_graph(*exec, graph);
  }
};
struct InstantiateWithParams {
  TACHO_ENTRY(cuGraphInstantiateWithParams, "", "_ptsz");
  static void after(int result, void** exec, void* graph, void*) {
    if (result == kSuccess && exec != nullptr) keep_graph(*exec, graph);
  }
};
struct UpdateGraph {
  TACHO_ENTRY(cuGraphExecUpdate, "_v2", "");
  static void after(int result, void* exec, void* graph, void*) {
    if (result == kSuccess) keep_graph(exec, graph);
  }
};
struct SetKernelNode {
  TACHO_ENTRY(cuGraphExecKernelNodeSetParams, "_v2", "");
  // Most calls change arguments, and neither the kernel nor its shape.
  static void after(int result, void* exec, void* node, const GraphKernelNode* now) {
    if (result != kSuccess || now == nullptr) return;
    GraphKernelNode before{};
    if (!read_kernel_node(g_graph_functions, node, before) || !same_launch(before, *now)) change_graph(exec);
  }
};
struct SetKernelNodeFirst : SetKernelNode {
  TACHO_ENTRY(cuGraphExecKernelNodeSetParams, "", "");
};
struct EnableNode {
  TACHO_ENTRY(cuGraphNodeSetEnabled, "", "");
  static void after(int result, void* exec, void*, unsigned) {
    if (result == kSuccess) change_graph(exec);
  }
};
struct EndCapture {
  TACHO_ENTRY(cuStreamEndCapture, "", "_ptsz");
  // It ends a capture that is no longer valid, too.
  static void after(int, Stream, void**) { g_timer.end_capture(); }
};
template <typename Entry, int Thread, typename F = decltype(&Entry::after)>
struct After;
template <typename Entry, int Thread, typename... A>
struct After<Entry, Thread, void (*)(int, A...)> {
  using Call = int (*)(A...);
  static int call(A... args) {
    const Call next = Next<Entry, Thread, Call>::get();
    if (next == nullptr) return kNotInitialized;
    const int result = forward(next, args...);
    if (start()) Entry::after(result, args...);
    return result;
  }
};

struct BeginCapture {
  TACHO_ENTRY(cuStreamBeginCapture, "_v2", "_ptsz");
  static void before(Stream, int) { g_timer.begin_capture(); }
  static void failed() { g_timer.end_capture(); }
};
struct BeginCaptureToGraph {
  TACHO_ENTRY(cuStreamBeginCaptureToGraph, "", "_ptsz");
  static void before(Stream, void*, const void*, const void*, size_t, int) { g_timer.begin_capture(); }
  static void failed() { g_timer.end_capture(); }
};
struct DestroyContext {
  TACHO_ENTRY(cuCtxDestroy, "_v2", "");
  static void before(Context context) { forget_context(context); }
  static void failed() {}
};
// Functions of another module may get the same handles.
void forget_names() {
  const Guard guard(g_own->objects);
  g_kernels.clear();
}
struct ResetPrimary {
  TACHO_ENTRY(cuDevicePrimaryCtxReset, "_v2", "");
  static void before(int) {
    forget_context(nullptr);
    forget_names();
  }
  static void failed() {}
};
struct DestroyGreen {
  TACHO_ENTRY(cuGreenCtxDestroy, "", "");
  static void before(Context green) {
    Context context = nullptr;
    const bool known = g_driver.cuCtxFromGreenCtx != nullptr && g_driver.cuCtxFromGreenCtx(&context, green) == kSuccess;
    forget_context(known ? context : nullptr);
  }
  static void failed() {}
};
struct UnloadModule {
  TACHO_ENTRY(cuModuleUnload, "", "");
  static void before(void*) { forget_names(); }
  static void failed() {}
};
struct UnloadLibrary {
  TACHO_ENTRY(cuLibraryUnload, "", "");
  static void before(void*) { forget_names(); }
  static void failed() {}
};
struct ReleasePrimary {
  TACHO_ENTRY(cuDevicePrimaryCtxRelease, "_v2", "");
  static void before(int) { forget_context(nullptr); }
  static void failed() {}
};
template <typename Entry, int Thread, typename F = decltype(&Entry::before)>
struct Before;
template <typename Entry, int Thread, typename... A>
struct Before<Entry, Thread, void (*)(A...)> {
  using Call = int (*)(A...);
  static int call(A... args) {
    const Call next = Next<Entry, Thread, Call>::get();
    if (next == nullptr) return kNotInitialized;
    const bool watched = start();
    if (watched) Entry::before(args...);
    const int result = forward(next, args...);
    if (watched && result != kSuccess) Entry::failed();
    return result;
  }
};

// All of them

struct HookedEntry {
  const char *base, *version, *thread;
  // [0] is the plain form, [1] that for per-thread default streams.
  void* hooks[2];
  void (*set_next[2])(void*);
  void* next[2];
};
template <typename Hook, typename Entry, int Thread>
void set_next(void* found) {
  using Call = typename Hook::Call;
  Next<Entry, Thread, Call>::known.function.store(reinterpret_cast<Call>(found), std::memory_order_relaxed);
}
template <typename Plain, typename PerThread, typename Entry>
HookedEntry entry() {
  return {Entry::kBase,
          Entry::kVersion,
          Entry::kThread,
          {reinterpret_cast<void*>(&Plain::call), reinterpret_cast<void*>(&PerThread::call)},
          {set_next<Plain, Entry, 0>, set_next<PerThread, Entry, 1>},
          {&Next<Entry, 0, typename Plain::Call>::known.function,
           &Next<Entry, 1, typename PerThread::Call>::known.function}};
}
const HookedEntry* entries(size_t& count) {
#define TACHO_CUDA_ENTRY(symbol, kind, name) entry<kind<name, 0>, kind<name, 1>, name>(),
#define TACHO_CUDA_ENTRIES(symbol, thread, kind, name) TACHO_CUDA_ENTRY(symbol, kind, name)
  static const HookedEntry kEntries[] = {
#include "capture/plugin/watch/cuda_entries.def"
  };
  count = std::size(kEntries);
  return kEntries;
}

// cuGetProcAddress, which gives out most of the others

constexpr unsigned long long kPerThreadFlag = 2;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

struct GetProcAddress {
  static constexpr const char *kBase = "cuGetProcAddress", *kVersion = "", *kThread = "";
};
struct GetProcAddressV2 {
  static constexpr const char *kBase = "cuGetProcAddress", *kVersion = "_v2", *kThread = "";
};
int get_proc_address(const char* symbol, void** found, int version, unsigned long long flags);
int get_proc_address_v2(const char* symbol, void** found, int version, unsigned long long flags, int* status);

// What to give out for the driver's function `found` of that name.
void* replaced(const char* symbol, bool per_thread, int version, void* found) {
  if (is_patched(found)) return found;
  constexpr int kSecondForm = 12000;
  if (strcmp(symbol, "cuGetProcAddress") == 0) {
    if (version >= kSecondForm) {
      Next<GetProcAddressV2, 0, decltype(&get_proc_address_v2)>::known.function.store(
          reinterpret_cast<decltype(&get_proc_address_v2)>(found), std::memory_order_relaxed);
      return reinterpret_cast<void*>(&get_proc_address_v2);
    }
    Next<GetProcAddress, 0, decltype(&get_proc_address)>::known.function.store(
        reinterpret_cast<decltype(&get_proc_address)>(found), std::memory_order_relaxed);
    return reinterpret_cast<void*>(&get_proc_address);
  }
  // Functions that have other parameters from CUDA 12 on.
  if (strcmp(symbol, "cuGraphInstantiate") == 0 && version >= kSecondForm) symbol = "cuGraphInstantiateWithFlags";
  if (strcmp(symbol, "cuGraphExecUpdate") == 0 && version < kSecondForm) return found;
  // A function of that name that has a parameter more from CUDA 13 on.
  constexpr int kThirdForm = 13000;
  const bool of_context = strcmp(symbol, "cuCtxSynchronize") == 0 && version >= kThirdForm;
  size_t count = 0;
  const HookedEntry* const all = entries(count);
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(all[i].base, symbol) != 0 || (of_context && *all[i].version == '\0')) continue;
    const int form = per_thread && *all[i].thread != '\0' ? 1 : 0;
    all[i].set_next[form](found);
    return all[i].hooks[form];
  }
  return found;
}

int get_proc_address(const char* symbol, void** found, int version, unsigned long long flags) {
  const auto next = Next<GetProcAddress, 0, decltype(&get_proc_address)>::get();
  if (next == nullptr) return kNotInitialized;
  const int result = next(symbol, found, version, flags);
  if (g_watched.load(std::memory_order_relaxed) && result == kSuccess && symbol != nullptr && found != nullptr &&
      *found != nullptr && !is_own(*found))
    *found = replaced(symbol, (flags & kPerThreadFlag) != 0, version, *found);
  return result;
}
int get_proc_address_v2(const char* symbol, void** found, int version, unsigned long long flags, int* status) {
  const auto next = Next<GetProcAddressV2, 0, decltype(&get_proc_address_v2)>::get();
  if (next == nullptr) return kNotInitialized;
  const int result = next(symbol, found, version, flags, status);
  if (g_watched.load(std::memory_order_relaxed) && result == kSuccess && symbol != nullptr && found != nullptr &&
      *found != nullptr && !is_own(*found))
    *found = replaced(symbol, (flags & kPerThreadFlag) != 0, version, *found);
  return result;
}

}  // namespace

void* hooked_driver_symbol(const char* symbol, void* found) {
  if (!g_watched.load(std::memory_order_relaxed) || is_own(found) || is_patched(found)) return found;
  if (strcmp(symbol, "cuGetProcAddress") == 0) return replaced("cuGetProcAddress", false, 0, found);
  if (strcmp(symbol, "cuGetProcAddress_v2") == 0) return replaced("cuGetProcAddress", false, 12000, found);
  size_t count = 0;
  const HookedEntry* const all = entries(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t base = strlen(all[i].base), version = strlen(all[i].version);
    if (strncmp(symbol, all[i].base, base) != 0 || strncmp(symbol + base, all[i].version, version) != 0) continue;
    const char* const rest = symbol + base + version;
    if (*rest != '\0' && strcmp(rest, all[i].thread) != 0) continue;
    const int form = *rest == '\0' ? 0 : 1;
    all[i].set_next[form](found);
    return all[i].hooks[form];
  }
  return found;
}

// In a program that ran before tacho came (late.cpp)

namespace {

// The driver's functions as dlsym and cuGetProcAddress give them, with the hooks that call them.
class HookList {
 public:
  HookList(SlotHook* into, void* library) : into_(into), library_(library) {
    auto* const version = reinterpret_cast<int (*)(int*)>(real_dlsym(library, "cuDriverGetVersion"));
    constexpr int kNewest = 13000;
    if (version == nullptr || version(&version_) != kSuccess) version_ = 11000;
    if (version_ > kNewest) version_ = kNewest;
    second_ = reinterpret_cast<decltype(second_)>(real_dlsym(library, "cuGetProcAddress_v2"));
    first_ = reinterpret_cast<decltype(first_)>(real_dlsym(library, "cuGetProcAddress"));
  }
  size_t count() const { return count_; }
  void add(const HookedEntry& entry, int form) {
    static char symbols[kMostSlotHooks][48];
    char* const symbol = symbols[count_ < kMostSlotHooks ? count_ : 0];
    snprintf(symbol, sizeof symbols[0], "%s%s%s", entry.base, entry.version, form != 0 ? entry.thread : "");
    void* const linked = real_dlsym(library_, symbol);
    // By this name CUDA 13 gives another function, which is an entry of its own.
    const bool two_functions = strcmp(symbol, "cuCtxSynchronize") == 0;
    void* const given = two_functions ? nullptr : address_of(entry.base, form);
    void* const found = linked != nullptr ? linked : given;
    if (found == nullptr) return;
    if (!is_patched(found)) entry.set_next[form](found);
    put({found, entry.hooks[form], found == linked ? symbol : nullptr, entry.next[form]});
    put({given, entry.hooks[form], nullptr});
  }
  void put(const SlotHook& hook) {
    if (hook.found == nullptr || is_own(hook.found) || count_ == kMostSlotHooks) return;
    for (size_t i = 0; i < count_; ++i)
      if (into_[i].found == hook.found) return;
    into_[count_++] = hook;
  }
  void* address_of(const char* base, int form) const {
    void* found = nullptr;
    constexpr unsigned long long kLegacyFlag = 1;
    const unsigned long long flags = form != 0 ? kPerThreadFlag : kLegacyFlag;
    int status = 0;
    const int result = second_ != nullptr  ? second_(base, &found, version_, flags, &status)
                       : first_ != nullptr ? first_(base, &found, version_, flags)
                                           : kNotInitialized;
    return result == kSuccess ? found : nullptr;
  }

 private:
  SlotHook* into_;
  void* library_;
  size_t count_ = 0;
  int version_ = 0;
  decltype(&get_proc_address) first_ = nullptr;
  decltype(&get_proc_address_v2) second_ = nullptr;
};

bool enter_context(uint64_t place) {
  return g_driver.cuCtxSetCurrent(reinterpret_cast<Context>(place)) == kSuccess;
}

}  // namespace

size_t driver_hooks(SlotHook* into) {
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  HookList list(into, library);
  size_t count = 0;
  const HookedEntry* const all = entries(count);
  for (size_t i = 0; i < count; ++i)
    for (int form = 0; form < (*all[i].thread != '\0' ? 2 : 1); ++form) list.add(all[i], form);
  const auto give = [&](void* linked, void* hook, const char* symbol) { list.put({linked, hook, symbol}); };
  if (void* const first = real_dlsym(library, "cuGetProcAddress")) {
    Next<GetProcAddress, 0, decltype(&get_proc_address)>::known.function.store(
        reinterpret_cast<decltype(&get_proc_address)>(first), std::memory_order_relaxed);
    give(first, reinterpret_cast<void*>(&get_proc_address), "cuGetProcAddress");
  }
  void* const second = real_dlsym(library, "cuGetProcAddress_v2");
  void* const given = list.address_of("cuGetProcAddress", 0);
  if (second != nullptr) {
    Next<GetProcAddressV2, 0, decltype(&get_proc_address_v2)>::known.function.store(
        reinterpret_cast<decltype(&get_proc_address_v2)>(second), std::memory_order_relaxed);
    give(second, reinterpret_cast<void*>(&get_proc_address_v2), "cuGetProcAddress_v2");
    give(given, reinterpret_cast<void*>(&get_proc_address_v2), nullptr);
  }
  dlclose(library);
  return list.count();
}

void age_captures() {
  g_unknown_captures.age();
}

void begin_driver() {
  g_timer.begin_stay();
  g_unknown_captures.begin();
  if (g_own == nullptr) return;
  const Guard guard(g_own->objects);
  g_kernels.clear();
  g_graphs.clear();
  g_contexts.clear();
  g_newest_context.store(nullptr, std::memory_order_relaxed);
}

void drain_driver() {
  if (!g_ready.load(std::memory_order_acquire) || !g_driver.times() || g_driver.cuCtxSetCurrent == nullptr) return;
  g_timer.end_stay(enter_context);
  g_driver.cuCtxSetCurrent(nullptr);
}

void end_driver() {
  g_ready.store(false, std::memory_order_release);
}

}  // namespace tacho::capture::watch

// The driver's functions under their own names, for programs that are linked to it: each jumps to its hook.
#if defined(__x86_64__)
#define TACHO_STUB(symbol, hook)                                                                                      \
  extern "C" {                                                                                                        \
  __attribute__((visibility("hidden"), used)) void* tacho_watch_##symbol = reinterpret_cast<void*>(&(hook));          \
  }                                                                                                                   \
  asm(".text\n.globl " #symbol "\n.type " #symbol ", @function\n" #symbol ":\n  endbr64\n  jmp *tacho_watch_" #symbol \
      "(%rip)\n.size " #symbol ", .-" #symbol "\n");
#define TACHO_PLAIN(symbol, kind, entry) \
  TACHO_STUB(symbol, (tacho::capture::watch::kind<tacho::capture::watch::entry, 0>::call))
#define TACHO_BOTH(symbol, thread, kind, entry) \
  TACHO_PLAIN(symbol, kind, entry)              \
  TACHO_STUB(symbol##thread, (tacho::capture::watch::kind<tacho::capture::watch::entry, 1>::call))
#define TACHO_CUDA_ENTRY(symbol, kind, entry) TACHO_PLAIN(symbol, kind, entry)
#define TACHO_CUDA_ENTRIES(symbol, thread, kind, entry) TACHO_BOTH(symbol, thread, kind, entry)
#include "capture/plugin/watch/cuda_entries.def"
TACHO_STUB(cuGetProcAddress, (tacho::capture::watch::get_proc_address))
TACHO_STUB(cuGetProcAddress_v2, (tacho::capture::watch::get_proc_address_v2))
#endif
