// OpenCL under `tacho watch`: a layer of the ICD loader that counts what is put into queues and times 1 of N by the
// runtime's own profiling. It makes queues with profiling and hides that from the program.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include "capture/plugin/watch/opencl/opencl.h"

#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tuple>
#include <type_traits>
#include <utility>

#include "capture/plugin/watch/ring.h"
#include "capture/plugin/watch/sums.h"
#include "capture/room/handle_map.h"
#include "capture/room/lock.h"
#include "capture/room/pages.h"
#include "capture/room/slab.h"
#include "event/schema.h"

#define TACHO_EXPORT extern "C" __attribute__((visibility("default")))

namespace tacho::capture::watch {
namespace {

using D = cl_icd_dispatch;
constexpr auto kDomain = static_cast<uint32_t>(event::Domain::kOpenCL);

constinit cl_icd_dispatch g_next = {};
constinit cl_icd_dispatch g_hooks = {};
constinit HandleMap g_kernels;  // cl_kernel -> WatchedKernel
constinit HandleMap g_queues;   // cl_command_queue -> Queue
constinit HandleMap
    g_late_queues;  // in a program that ran before tacho came: cl_command_queue -> itself, when the ring has it

// A queue that tacho knows.
struct Queue {
  bool timed;   // it has profiling
  bool forced;  // the program did not ask for profiling
  uint32_t words;
  cl_queue_properties asked[32];  // the list of properties as the program gave it
};
constinit Slab<Queue> g_queue_slab;

// An operation's record in the ring, and between which moments (CLOCK_MONOTONIC_RAW, ns) the runtime took it.
struct KeptWork {
  uint64_t ticket = 0;  // 0: there is none
  int64_t from = 0, to = 0;
};

// Operations whose times are to be read when they have ended.
struct Waiting {
  cl_event event;
  WatchRow* row;
  uint32_t level;
  KeptWork kept;
};
constexpr uint32_t kMostWaiting = 4096;

// A forked child finds it zeroed: no lock is held, nothing waits.
struct OwnState {
  LockWord objects;
  LockWord waiting_lock;
  std::atomic<uint32_t> waiting_count;
  uint32_t turn;  // where to look next
  Waiting waiting[kMostWaiting];
};
constinit OwnState* g_own = nullptr;

template <typename T>
bool ask(cl_int (*question)(cl_event, cl_uint, size_t, void*, size_t*), cl_event event, cl_uint what, T& answer) {
  return question(event, what, sizeof answer, &answer, nullptr) == CL_SUCCESS;
}

// The runtime stamps an operation while it takes it: that relates its clock to the host's. Most use the host's own.
void keep_time(const Waiting& one, cl_ulong start, cl_ulong end) {
  cl_ulong queued = 0;
  if (one.kept.ticket == 0 || !ask(g_next.clGetEventProfilingInfo, one.event, CL_PROFILING_COMMAND_QUEUED, queued) ||
      queued > start)
    return;
  const auto stamp = static_cast<int64_t>(queued);
  constexpr int64_t kSame = 1000;  // ns
  if (stamp >= one.kept.from - kSame && stamp <= one.kept.to + kSame)
    return keep_times(one.kept.ticket, static_cast<int64_t>(start), end - start, 0);
  const int64_t half_width = (one.kept.to - one.kept.from + 1) / 2;
  keep_times(one.kept.ticket, one.kept.from + half_width + static_cast<int64_t>(start - queued), end - start,
             static_cast<uint64_t>(half_width));
}

// True when the operation has ended: then its time is in its row, or among those lost.
bool read_time(const Waiting& one) {
  cl_int status = CL_QUEUED;
  const bool known = ask(g_next.clGetEventInfo, one.event, CL_EVENT_COMMAND_EXECUTION_STATUS, status);
  if (known && status > CL_COMPLETE) return false;
  cl_ulong start = 0, end = 0;
  if (known && status == CL_COMPLETE &&
      ask(g_next.clGetEventProfilingInfo, one.event, CL_PROFILING_COMMAND_START, start) &&
      ask(g_next.clGetEventProfilingInfo, one.event, CL_PROFILING_COMMAND_END, end) && end >= start) {
    add_time(*one.row, one.level, end - start);
    keep_time(one, start, end);
  } else {
    g_table->header.lost_times.fetch_add(1, std::memory_order_relaxed);
  }
  g_next.clReleaseEvent(one.event);
  g_table->header.pending.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

// Reads the times of operations that have ended, looking at `most` at most.
void read_times(uint32_t most) {
  if (g_own->waiting_count.load(std::memory_order_relaxed) == 0 || !try_lock(g_own->waiting_lock)) return;
  uint32_t count = g_own->waiting_count.load(std::memory_order_relaxed);
  for (uint32_t looked = 0; looked < most && count > 0; ++looked) {
    if (g_own->turn >= count) g_own->turn = 0;
    if (read_time(g_own->waiting[g_own->turn]))
      g_own->waiting[g_own->turn] = g_own->waiting[--count];
    else
      ++g_own->turn;
  }
  g_own->waiting_count.store(count, std::memory_order_relaxed);
  unlock(g_own->waiting_lock);
}

// After the program has waited for its device.
void read_after_wait() {
  if (g_own->waiting_count.load(std::memory_order_relaxed) == 0) return;
  const int64_t from = read_clock(CLOCK_MONOTONIC);
  read_times(kMostWaiting);
  g_table->header.prepared_time.fetch_add(static_cast<uint64_t>(read_clock(CLOCK_MONOTONIC) - from),
                                          std::memory_order_relaxed);
}

// Takes the event over, a reference of it.
void wait_for_time(cl_event event, WatchRow& row, uint32_t level, const KeptWork& kept) {
  read_times(8);
  lock(g_own->waiting_lock);
  const uint32_t count = g_own->waiting_count.load(std::memory_order_relaxed);
  const bool room = count < kMostWaiting;
  if (room) {
    g_own->waiting[count] = {event, &row, level, kept};
    g_own->waiting_count.store(count + 1, std::memory_order_relaxed);
    g_table->header.pending.fetch_add(1, std::memory_order_relaxed);
  }
  unlock(g_own->waiting_lock);
  if (room) return;
  g_next.clReleaseEvent(event);
  g_table->header.lost_times.fetch_add(1, std::memory_order_relaxed);
}

// Rows

struct Operation {
  WatchRow* row;
  uint64_t bytes;
  bool blocking;
};

WatchedKernel* kernel_of(cl_kernel handle) {
  if (void* const known = g_kernels.find(handle)) return static_cast<WatchedKernel*>(known);
  char name[4096];
  size_t size = 0;
  if (g_next.clGetKernelInfo(handle, CL_KERNEL_FUNCTION_NAME, sizeof name, name, &size) != CL_SUCCESS || size == 0)
    size = 1;
  const Guard guard(g_own->objects);
  WatchedKernel* const kernel = kernel_named({name, size - 1}, kDomain);
  g_kernels.set(handle, kernel);
  return kernel;
}

// A handle that the runtime has given out anew means another kernel than before.
void forget_kernel(cl_kernel handle) {
  if (handle == nullptr) return;
  const Guard guard(g_own->objects);
  g_kernels.erase(handle);
}

uint32_t word(size_t value) {
  return value < UINT32_MAX ? static_cast<uint32_t>(value) : UINT32_MAX;
}

uint64_t volume(const size_t* region) {
  return region == nullptr ? 0 : static_cast<uint64_t>(region[0]) * region[1] * region[2];
}
uint64_t image_bytes(cl_mem image, const size_t* region) {
  size_t element = 0;
  g_next.clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, nullptr);
  return volume(region) * element;
}
uint64_t size_of(cl_mem object) {
  size_t bytes = 0;
  g_next.clGetMemObjectInfo(object, CL_MEM_SIZE, sizeof bytes, &bytes, nullptr);
  return bytes;
}

template <auto Member>
struct Of {};

#define TACHO_TO_DEVICE TACHO_ROW(kCopy, "host to device")
#define TACHO_TO_HOST TACHO_ROW(kCopy, "device to host")
#define TACHO_ON_DEVICE TACHO_ROW(kCopy, "device to device")

Operation describe(Of<&D::clEnqueueNDRangeKernel>, cl_command_queue, cl_kernel kernel, cl_uint dimensions,
                   const size_t*, const size_t* grid, const size_t* group, cl_uint, const cl_event*, cl_event*) {
  WatchedShape shape;
  for (cl_uint i = 0; i < 3; ++i) {
    shape.grid[i] = i < dimensions && grid != nullptr ? word(grid[i]) : 1;
    shape.group[i] = group == nullptr ? 0 : i < dimensions ? word(group[i]) : 1;
  }
  return {kernel_of(kernel)->row(shape), 0, false};
}
Operation describe(Of<&D::clEnqueueTask>, cl_command_queue, cl_kernel kernel, cl_uint, const cl_event*, cl_event*) {
  return {kernel_of(kernel)->row({{1, 1, 1}, {1, 1, 1}}), 0, false};
}
Operation describe(Of<&D::clEnqueueNativeKernel>, cl_command_queue, void(CL_CALLBACK*)(void*), void*, size_t, cl_uint,
                   const cl_mem*, const void**, cl_uint, const cl_event*, cl_event*) {
  return {TACHO_ROW(kKernel, "native kernels"), 0, false};
}
Operation describe(Of<&D::clEnqueueReadBuffer>, cl_command_queue, cl_mem, cl_bool blocking, size_t, size_t bytes, void*,
                   cl_uint, const cl_event*, cl_event*) {
  return {TACHO_TO_HOST, bytes, blocking != CL_FALSE};
}
Operation describe(Of<&D::clEnqueueWriteBuffer>, cl_command_queue, cl_mem, cl_bool blocking, size_t, size_t bytes,
                   const void*, cl_uint, const cl_event*, cl_event*) {
  return {TACHO_TO_DEVICE, bytes, blocking != CL_FALSE};
}
Operation describe(Of<&D::clEnqueueReadBufferRect>, cl_command_queue, cl_mem, cl_bool blocking, const size_t*,
                   const size_t*, const size_t* region, size_t, size_t, size_t, size_t, void*, cl_uint, const cl_event*,
                   cl_event*) {
  return {TACHO_TO_HOST, volume(region), blocking != CL_FALSE};
}
Operation describe(Of<&D::clEnqueueWriteBufferRect>, cl_command_queue, cl_mem, cl_bool blocking, const size_t*,
                   const size_t*, const size_t* region, size_t, size_t, size_t, size_t, const void*, cl_uint,
                   const cl_event*, cl_event*) {
  return {TACHO_TO_DEVICE, volume(region), blocking != CL_FALSE};
}
Operation describe(Of<&D::clEnqueueCopyBuffer>, cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t bytes, cl_uint,
                   const cl_event*, cl_event*) {
  return {TACHO_ON_DEVICE, bytes, false};
}
Operation describe(Of<&D::clEnqueueCopyBufferRect>, cl_command_queue, cl_mem, cl_mem, const size_t*, const size_t*,
                   const size_t* region, size_t, size_t, size_t, size_t, cl_uint, const cl_event*, cl_event*) {
  return {TACHO_ON_DEVICE, volume(region), false};
}
Operation describe(Of<&D::clEnqueueReadImage>, cl_command_queue, cl_mem image, cl_bool blocking, const size_t*,
                   const size_t* region, size_t, size_t, void*, cl_uint, const cl_event*, cl_event*) {
  return {TACHO_TO_HOST, image_bytes(image, region), blocking != CL_FALSE};
}
Operation describe(Of<&D::clEnqueueWriteImage>, cl_command_queue, cl_mem image, cl_bool blocking, const size_t*,
                   const size_t* region, size_t, size_t, const void*, cl_uint, const cl_event*, cl_event*) {
  return {TACHO_TO_DEVICE, image_bytes(image, region), blocking != CL_FALSE};
}
Operation describe(Of<&D::clEnqueueCopyImage>, cl_command_queue, cl_mem source, cl_mem, const size_t*, const size_t*,
                   const size_t* region, cl_uint, const cl_event*, cl_event*) {
  return {TACHO_ON_DEVICE, image_bytes(source, region), false};
}
Operation describe(Of<&D::clEnqueueCopyImageToBuffer>, cl_command_queue, cl_mem source, cl_mem, const size_t*,
                   const size_t* region, size_t, cl_uint, const cl_event*, cl_event*) {
  return {TACHO_ON_DEVICE, image_bytes(source, region), false};
}
Operation describe(Of<&D::clEnqueueCopyBufferToImage>, cl_command_queue, cl_mem, cl_mem target, size_t, const size_t*,
                   const size_t* region, cl_uint, const cl_event*, cl_event*) {
  return {TACHO_ON_DEVICE, image_bytes(target, region), false};
}
Operation describe(Of<&D::clEnqueueFillBuffer>, cl_command_queue, cl_mem, const void*, size_t, size_t, size_t bytes,
                   cl_uint, const cl_event*, cl_event*) {
  return {TACHO_ROW(kFill, "fill"), bytes, false};
}
Operation describe(Of<&D::clEnqueueFillImage>, cl_command_queue, cl_mem image, const void*, const size_t*,
                   const size_t* region, cl_uint, const cl_event*, cl_event*) {
  return {TACHO_ROW(kFill, "fill"), image_bytes(image, region), false};
}
Operation describe(Of<&D::clEnqueueMigrateMemObjects>, cl_command_queue, cl_uint count, const cl_mem* objects,
                   cl_mem_migration_flags flags, cl_uint, const cl_event*, cl_event*) {
  uint64_t bytes = 0;
  if ((flags & CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED) == 0)
    for (cl_uint i = 0; objects != nullptr && i < count; ++i) bytes += size_of(objects[i]);
  return {TACHO_ROW(kCopy, "migration"), bytes, false};
}
Operation describe(Of<&D::clEnqueueMapBuffer>, cl_command_queue, cl_mem, cl_bool blocking, cl_map_flags flags, size_t,
                   size_t bytes, cl_uint, const cl_event*, cl_event*, cl_int*) {
  return {TACHO_ROW(kCopy, "map"), (flags & CL_MAP_WRITE_INVALIDATE_REGION) != 0 ? 0 : bytes, blocking != CL_FALSE};
}
Operation describe(Of<&D::clEnqueueMapImage>, cl_command_queue, cl_mem image, cl_bool blocking, cl_map_flags flags,
                   const size_t*, const size_t* region, size_t*, size_t*, cl_uint, const cl_event*, cl_event*,
                   cl_int*) {
  return {TACHO_ROW(kCopy, "map"), (flags & CL_MAP_WRITE_INVALIDATE_REGION) != 0 ? 0 : image_bytes(image, region),
          blocking != CL_FALSE};
}
Operation describe(Of<&D::clEnqueueUnmapMemObject>, cl_command_queue, cl_mem, void*, cl_uint, const cl_event*,
                   cl_event*) {
  return {TACHO_ROW(kCopy, "unmap"), 0, false};
}
Operation describe(Of<&D::clEnqueueSVMMemcpy>, cl_command_queue, cl_bool blocking, void*, const void*, size_t bytes,
                   cl_uint, const cl_event*, cl_event*) {
  return {TACHO_ROW(kCopy, "shared memory"), bytes, blocking != CL_FALSE};
}
Operation describe(Of<&D::clEnqueueSVMMemFill>, cl_command_queue, void*, const void*, size_t, size_t bytes, cl_uint,
                   const cl_event*, cl_event*) {
  return {TACHO_ROW(kFill, "fill"), bytes, false};
}

void keep_queue(cl_command_queue handle, bool forced, const cl_queue_properties* asked);

// Whether the runtime tells times of what is in the queue.
bool can_be_timed(cl_command_queue handle) {
  const auto* queue = static_cast<const Queue*>(g_queues.find(handle));
  if (queue != nullptr || !g_late) return queue != nullptr && queue->timed;
  cl_command_queue_properties properties = 0;
  if (handle == nullptr ||
      g_next.clGetCommandQueueInfo(handle, CL_QUEUE_PROPERTIES, sizeof properties, &properties, nullptr) != CL_SUCCESS)
    return false;
  keep_queue(handle, false, nullptr);
  const Guard guard(g_own->objects);
  auto* const kept = static_cast<Queue*>(g_queues.find(handle));
  if (kept == nullptr) return false;
  kept->timed = (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
  if (!kept->timed) g_process->untimed.fetch_add(1, std::memory_order_relaxed);
  return kept->timed;
}

// The hook of a function that puts an operation into a queue

// Where `cl_event*`, the event for the program, stands among the parameters.
template <typename... A>
constexpr size_t event_at() {
  size_t at = 0, found = 0;
  ((found = std::is_same_v<A, cl_event*> ? at : found, ++at), ...);
  return found;
}

template <typename F>
struct MemberOf;
template <typename F>
struct MemberOf<F D::*> {
  using Type = F;
};
template <auto Member>
using FunctionOf = typename MemberOf<decltype(Member)>::Type;

template <auto Member>
constinit const char* g_name = "";  // set by install()
#define TACHO_CALL_OF(member) TACHO_KEPT_CALL(event::Domain::kOpenCL, g_name<member>, "")

void keep_late_queue(cl_command_queue handle);

template <auto Member, typename F = FunctionOf<Member>>
struct Hook;
template <auto Member, typename R, typename... A>
struct Hook<Member, R (*)(A...)> {
  static R CL_API_CALL call(A... args) {
    if (!g_watched.load(std::memory_order_relaxed)) return (g_next.*Member)(args...);
    const uint32_t stay = g_stay.load(std::memory_order_relaxed);
    OwnTime own;
    const Operation operation = describe(Of<Member>{}, args...);
    uint32_t level = 0;
    if (operation.row == nullptr) {
      g_table->header.lost_rows.fetch_add(1, std::memory_order_relaxed);
      return (g_next.*Member)(args...);
    }
    const bool due = to_be_timed(*operation.row, level);
    if (due && can_be_timed(std::get<0>(std::tie(args...)))) return timed(own, operation, level, args...);
    KeptWork kept;
    const auto [result, good] = forward(own, operation, kept, args...);
    if (stay != g_stay.load(std::memory_order_relaxed)) return result;
    if (due && good) g_table->header.lost_times.fetch_add(1, std::memory_order_relaxed);
    finish(own, operation, good);
    return result;
  }

 private:
  // The result, and whether the runtime took the operation.
  static std::pair<R, bool> forward(OwnTime& own, const Operation& operation, KeptWork& kept, A... args) {
    const KeptCall call;
    own.pause();
    const R result = (g_next.*Member)(args...);
    own.resume();
    bool good;
    cl_int code = CL_SUCCESS;
    if constexpr (std::is_same_v<R, cl_int>) {
      code = result;
      good = result == CL_SUCCESS;
    } else {
      good = result != nullptr;
      cl_int* const told = std::get<sizeof...(A) - 1>(std::tie(args...));
      if (!good) code = told != nullptr ? *told : CL_OUT_OF_RESOURCES;
    }
    if (g_late && call.kept()) keep_late_queue(std::get<0>(std::tie(args...)));
    if (call.kept())
      kept.ticket = call.end({.call = TACHO_CALL_OF(Member),
                              .row = row_number(*operation.row),
                              .object = reinterpret_cast<uint64_t>(std::get<0>(std::tie(args...))),
                              .amount = operation.bytes,
                              .result = code,
                              .flags = operation.blocking ? event::kWatchWaitsForQueue : uint8_t{0}});
    return {result, good};
  }
  static void finish(OwnTime& own, const Operation& operation, bool good) {
    if (good)
      count_operation(*operation.row, operation.bytes);
    else
      g_table->header.failed.fetch_add(1, std::memory_order_relaxed);
    own.end();
    if (operation.blocking) read_after_wait();
  }
  __attribute__((noinline)) static R timed(OwnTime& own, const Operation& operation, uint32_t level, A... args) {
    const uint32_t stay = g_stay.load(std::memory_order_relaxed);
    own.prepare();
    cl_event event = nullptr;
    auto& wanted = std::get<event_at<A...>()>(std::tie(args...));
    const bool given = wanted != nullptr;
    if (!given) wanted = &event;
    KeptWork kept;
    if (keeps()) kept.from = raw_now();
    const auto [result, good] = forward(own, operation, kept, args...);
    if (kept.ticket != 0) kept.to = raw_now();
    if (stay != g_stay.load(std::memory_order_relaxed)) {
      if (good && !given && event != nullptr) g_next.clReleaseEvent(event);
      return result;
    }
    if (good && given) {
      event = *wanted;
      g_next.clRetainEvent(event);
    }
    if (good && event != nullptr)
      wait_for_time(event, *operation.row, level, kept);
    else if (good)
      g_table->header.lost_times.fetch_add(1, std::memory_order_relaxed);
    finish(own, operation, good);
    return result;
  }
};

// Calls that wait

// The queue whose work has ended afterwards; 0 = only some of it has.
uint64_t waited_queue(cl_command_queue queue) {
  return reinterpret_cast<uint64_t>(queue);
}
uint64_t waited_queue(cl_uint, const cl_event*) {
  return 0;
}

template <auto Member, typename F = FunctionOf<Member>>
struct Wait;
template <auto Member, typename... A>
struct Wait<Member, cl_int (*)(A...)> {
  static WatchRow* row();
  static cl_int CL_API_CALL call(A... args) {
    if (!g_watched.load(std::memory_order_relaxed)) return (g_next.*Member)(args...);
    const uint32_t stay = g_stay.load(std::memory_order_relaxed);
    const int64_t from = read_clock(CLOCK_MONOTONIC);
    const KeptCall call;
    const cl_int result = (g_next.*Member)(args...);
    const int64_t to = read_clock(CLOCK_MONOTONIC);
    if (stay != g_stay.load(std::memory_order_relaxed)) return result;
    WatchRow* const at = row();
    if (call.kept())
      call.end({.kind = WatchRecordKind::kWait,
                .call = TACHO_CALL_OF(Member),
                .row = at != nullptr ? row_number(*at) : event::kWatchNoRow,
                .object = waited_queue(args...),
                .result = result,
                .flags = waited_queue(args...) != 0 ? event::kWatchWaitsForQueue : uint8_t{0}});
    if (at == nullptr) {
      g_table->header.lost_rows.fetch_add(1, std::memory_order_relaxed);
    } else if (result == CL_SUCCESS) {
      count_operation(*at, 0);
      add_time(*at, 0, static_cast<uint64_t>(to - from));
      note_wait(to);
    }
    read_after_wait();
    return result;
  }
};
template <>
WatchRow* Wait<&D::clFinish>::row() {
  return TACHO_ROW(kWait, "clFinish");
}
template <>
WatchRow* Wait<&D::clWaitForEvents>::row() {
  return TACHO_ROW(kWait, "clWaitForEvents");
}

// Queues

void read_last_times() {
  read_times(kMostWaiting);
}

// What a queue, and the memory of its context, belong to.
void keep_device_of(cl_command_queue handle) {
  if (!keeps()) return;
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  if (g_next.clGetCommandQueueInfo(handle, CL_QUEUE_DEVICE, sizeof(cl_device_id), &device, nullptr) != CL_SUCCESS ||
      g_next.clGetCommandQueueInfo(handle, CL_QUEUE_CONTEXT, sizeof(cl_context), &context, nullptr) != CL_SUCCESS)
    return;
  char name[128] = "", vendor[64] = "";
  cl_device_type type = 0;
  cl_ulong memory = 0;
  cl_device_id devices[64] = {};
  size_t bytes = 0;
  g_next.clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, nullptr);
  g_next.clGetDeviceInfo(device, CL_DEVICE_VENDOR, sizeof vendor, vendor, nullptr);
  g_next.clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, nullptr);
  g_next.clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory, nullptr);
  KeptObject object{
      .handle = handle, .memory = memory, .domain = event::Domain::kOpenCL, .name = name, .vendor = vendor};
  if ((type & CL_DEVICE_TYPE_GPU) != 0) object.kind = event::DeviceKind::kGpu;
  if ((type & CL_DEVICE_TYPE_CPU) != 0) object.kind = event::DeviceKind::kCpu;
  if ((type & CL_DEVICE_TYPE_ACCELERATOR) != 0) object.kind = event::DeviceKind::kAccelerator;
  if (g_next.clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof devices, devices, &bytes) == CL_SUCCESS)
    for (uint32_t i = 0; i < bytes / sizeof(cl_device_id); ++i)
      if (devices[i] == device) object.device = i;
  keep_object(object);
  if (bytes != sizeof(cl_device_id)) return;  // memory of a context of several devices is no one's
  object.handle = context;
  keep_object(object);
}

// A queue that the program made before tacho came, or makes as it would without.
void keep_late_queue(cl_command_queue handle) {
  if (handle == nullptr || g_late_queues.find(handle) != nullptr) return;
  keep_device_of(handle);
  const Guard guard(g_own->objects);
  g_late_queues.set(handle, handle);
}

void keep_queue(cl_command_queue handle, bool forced, const cl_queue_properties* asked) {
  keep_device_of(handle);
  const Guard guard(g_own->objects);
  // Registered when the runtime has started, so that it runs before the runtime's own end.
  static bool registered = false;
  if (!registered) registered = atexit(read_last_times) == 0;
  auto* queue = static_cast<Queue*>(g_queues.find(handle));
  if (queue == nullptr) queue = g_queue_slab.take();
  if (queue == nullptr) return;
  queue->timed = true;
  queue->forced = forced;
  queue->words = 0;
  while (asked != nullptr && queue->words < 29 && asked[queue->words] != 0) queue->words += 2;
  for (uint32_t i = 0; i < queue->words; ++i) queue->asked[i] = asked[i];
  if (asked != nullptr) queue->asked[queue->words++] = 0;
  g_queues.set(handle, queue);
}
void forget_queue(cl_command_queue handle) {
  const Guard guard(g_own->objects);
  if (void* const queue = g_queues.erase(handle)) g_queue_slab.give(static_cast<Queue*>(queue));
  g_late_queues.erase(handle);
}

// In a program that ran before tacho came, queues stay as the program makes them: it goes on when tacho has left. So do
// they where nothing is timed, because profiling costs every command.
bool makes_queues() {
  return !g_late && g_watched.load(std::memory_order_relaxed) &&
         g_table->header.timing.load(std::memory_order_relaxed) != event::WatchTiming::kNever;
}
cl_command_queue known_anew(cl_command_queue queue) {
  if (queue != nullptr) forget_queue(queue);  // of another queue that had this handle before
  return queue;
}

cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device, cl_command_queue_properties asked,
                                          cl_int* code) {
  if (!makes_queues()) return known_anew(g_next.clCreateCommandQueue(context, device, asked, code));
  const bool forced = (asked & CL_QUEUE_PROFILING_ENABLE) == 0;
  cl_command_queue queue = g_next.clCreateCommandQueue(context, device, asked | CL_QUEUE_PROFILING_ENABLE, code);
  if (queue != nullptr) {
    keep_queue(queue, forced, nullptr);
  } else if (forced) {  // as the program asked: its queue, which cannot be timed, or its error
    queue = g_next.clCreateCommandQueue(context, device, asked, code);
    if (queue != nullptr) forget_queue(queue);
  }
  return queue;
}

cl_command_queue CL_API_CALL create_queue_with(cl_context context, cl_device_id device,
                                               const cl_queue_properties* asked, cl_int* code) {
  if (!makes_queues()) return known_anew(g_next.clCreateCommandQueueWithProperties(context, device, asked, code));
  cl_queue_properties list[32];
  uint32_t words = 0;
  cl_command_queue_properties properties = 0;
  bool found = false, fits = true;
  for (; fits && asked != nullptr && asked[words] != 0; words += 2) {
    fits = words + 5 <= 29;
    if (!fits) break;
    list[words] = asked[words];
    list[words + 1] = asked[words + 1];
    if (asked[words] != CL_QUEUE_PROPERTIES) continue;
    properties = asked[words + 1];
    list[words + 1] |= CL_QUEUE_PROFILING_ENABLE;
    found = true;
  }
  const bool forced = (properties & CL_QUEUE_PROFILING_ENABLE) == 0;
  cl_command_queue queue = nullptr;
  if (fits && (properties & CL_QUEUE_ON_DEVICE) == 0) {
    if (!found) {
      list[words++] = CL_QUEUE_PROPERTIES;
      list[words++] = CL_QUEUE_PROFILING_ENABLE;
    }
    list[words] = 0;
    queue = g_next.clCreateCommandQueueWithProperties(context, device, list, code);
    if (queue != nullptr) keep_queue(queue, forced, asked);
    if (queue != nullptr || !forced) return queue;
  }
  queue = g_next.clCreateCommandQueueWithProperties(context, device, asked, code);
  if (queue != nullptr) forget_queue(queue);
  return queue;
}

cl_int CL_API_CALL get_queue_info(cl_command_queue handle, cl_command_queue_info what, size_t size, void* value,
                                  size_t* size_ret) {
  if (what == CL_QUEUE_REFERENCE_COUNT) read_times(kMostWaiting);
  cl_int result = g_next.clGetCommandQueueInfo(handle, what, size, value, size_ret);
  const auto* const queue = static_cast<const Queue*>(g_queues.find(handle));
  if (queue == nullptr || !queue->forced || (result != CL_SUCCESS && result != CL_INVALID_VALUE)) return result;
  if (what == CL_QUEUE_PROPERTIES && result == CL_SUCCESS && value != nullptr) {
    cl_command_queue_properties properties;
    memcpy(&properties, value, sizeof properties);
    properties &= ~static_cast<cl_command_queue_properties>(CL_QUEUE_PROFILING_ENABLE);
    memcpy(value, &properties, sizeof properties);
  }
  if (what == CL_QUEUE_PROPERTIES_ARRAY) {
    // The list as the program gave it. Whether the runtime knows the question at all, it says itself.
    size_t real = 0;
    result = g_next.clGetCommandQueueInfo(handle, what, 0, nullptr, &real);
    if (result != CL_SUCCESS) return result;
    const size_t bytes = queue->words * sizeof queue->asked[0];
    if (value != nullptr && size < bytes) return CL_INVALID_VALUE;
    if (value != nullptr && bytes != 0) memcpy(value, queue->asked, bytes);
    if (size_ret != nullptr) *size_ret = bytes;
  }
  return result;
}

cl_int CL_API_CALL get_profiling(cl_event event, cl_profiling_info what, size_t size, void* value, size_t* size_ret) {
  cl_command_queue handle = nullptr;
  if (event != nullptr && ask(g_next.clGetEventInfo, event, CL_EVENT_COMMAND_QUEUE, handle)) {
    const auto* const queue = static_cast<const Queue*>(g_queues.find(handle));
    if (queue != nullptr && queue->forced) return CL_PROFILING_INFO_NOT_AVAILABLE;
  }
  return g_next.clGetEventProfilingInfo(event, what, size, value, size_ret);
}

cl_int CL_API_CALL release_queue(cl_command_queue handle) {
  read_times(kMostWaiting);
  return g_next.clReleaseCommandQueue(handle);
}
cl_int CL_API_CALL release_context(cl_context context) {
  read_times(kMostWaiting);
  return g_next.clReleaseContext(context);
}

cl_int CL_API_CALL get_context_info(cl_context context, cl_context_info what, size_t size, void* value,
                                    size_t* size_ret) {
  if (what == CL_CONTEXT_REFERENCE_COUNT) read_times(kMostWaiting);
  return g_next.clGetContextInfo(context, what, size, value, size_ret);
}

// While a time is to be read its event has one reference more, which the program does not see.
cl_int CL_API_CALL get_event_info(cl_event event, cl_event_info what, size_t size, void* value, size_t* size_ret) {
  if (what == CL_EVENT_REFERENCE_COUNT) read_times(kMostWaiting);
  const cl_int result = g_next.clGetEventInfo(event, what, size, value, size_ret);
  if (what != CL_EVENT_REFERENCE_COUNT || result != CL_SUCCESS || value == nullptr) return result;
  const Guard guard(g_own->waiting_lock);
  const uint32_t count = g_own->waiting_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i) {
    if (g_own->waiting[i].event != event) continue;
    cl_uint references;
    memcpy(&references, value, sizeof references);
    --references;
    memcpy(value, &references, sizeof references);
  }
  return result;
}

// Kernels

cl_kernel CL_API_CALL create_kernel(cl_program program, const char* name, cl_int* code) {
  cl_kernel const kernel = g_next.clCreateKernel(program, name, code);
  forget_kernel(kernel);
  return kernel;
}
cl_int CL_API_CALL create_kernels(cl_program program, cl_uint most, cl_kernel* kernels, cl_uint* count) {
  cl_uint made = 0;
  if (count == nullptr) count = &made;
  const cl_int result = g_next.clCreateKernelsInProgram(program, most, kernels, count);
  for (cl_uint i = 0; result == CL_SUCCESS && kernels != nullptr && i < *count; ++i) forget_kernel(kernels[i]);
  return result;
}
cl_kernel CL_API_CALL clone_kernel(cl_kernel from, cl_int* code) {
  cl_kernel const kernel = g_next.clCloneKernel(from, code);
  forget_kernel(kernel);
  return kernel;
}

// Command buffers: an extension, whose function the program asks each platform for

constexpr size_t kPlatforms = 8;
constinit clEnqueueCommandBufferKHR_fn g_next_buffer[kPlatforms] = {};

template <size_t Place>
cl_int CL_API_CALL enqueue_buffer(cl_uint count, cl_command_queue* queues, cl_command_buffer_khr buffer, cl_uint waits,
                                  const cl_event* wait_list, cl_event* event) {
  if (!g_watched.load(std::memory_order_relaxed))
    return g_next_buffer[Place](count, queues, buffer, waits, wait_list, event);
  const uint32_t stay = g_stay.load(std::memory_order_relaxed);
  OwnTime own;
  WatchRow* const row = TACHO_ROW(kGraph, "command buffers");
  uint32_t level = 0;
  cl_event mine = nullptr;
  const bool due = row != nullptr && to_be_timed(*row, level);
  const bool timed = due && (!g_late || (count == 1 && queues != nullptr && can_be_timed(queues[0])));
  if (due && !timed) g_table->header.lost_times.fetch_add(1, std::memory_order_relaxed);
  if (timed) own.prepare();
  cl_event* const where = timed && event == nullptr ? &mine : event;
  KeptWork kept;
  if (timed && keeps()) kept.from = raw_now();
  const KeptCall call;
  own.pause();
  const cl_int result = g_next_buffer[Place](count, queues, buffer, waits, wait_list, where);
  own.resume();
  if (call.kept() && row != nullptr)
    kept.ticket = call.end({.call = TACHO_KEPT_CALL(event::Domain::kOpenCL, "clEnqueueCommandBufferKHR", ""),
                            .row = row_number(*row),
                            .object = reinterpret_cast<uint64_t>(count > 0 && queues != nullptr ? queues[0] : nullptr),
                            .result = result});
  if (timed && kept.ticket != 0) kept.to = raw_now();
  if (stay != g_stay.load(std::memory_order_relaxed)) {
    if (result == CL_SUCCESS && timed && event == nullptr) g_next.clReleaseEvent(mine);
    return result;
  }
  WatchHeader& header = g_table->header;
  if (result != CL_SUCCESS) {
    header.failed.fetch_add(1, std::memory_order_relaxed);
    return result;
  }
  if (timed && event != nullptr) g_next.clRetainEvent(*where);
  if (timed) wait_for_time(*where, *row, level, kept);
  if (row != nullptr)
    count_operation(*row, 0);
  else
    header.lost_rows.fetch_add(1, std::memory_order_relaxed);
  own.end();
  return result;
}
template <size_t... Place>
void* buffer_hook(clEnqueueCommandBufferKHR_fn next, std::index_sequence<Place...>) {
  static constexpr clEnqueueCommandBufferKHR_fn kHooks[] = {enqueue_buffer<Place>...};
  const Guard guard(g_own->objects);
  for (size_t i = 0; i < kPlatforms; ++i) {
    if (g_next_buffer[i] == nullptr) g_next_buffer[i] = next;
    if (g_next_buffer[i] == next) return reinterpret_cast<void*>(kHooks[i]);
  }
  return reinterpret_cast<void*>(next);
}
void* hooked_extension(void* found, const char* name) {
  if (found == nullptr || name == nullptr || !g_watched.load(std::memory_order_relaxed) ||
      strcmp(name, "clEnqueueCommandBufferKHR") != 0)
    return found;
  return buffer_hook(reinterpret_cast<clEnqueueCommandBufferKHR_fn>(found), std::make_index_sequence<kPlatforms>());
}
void* CL_API_CALL extension_of_platform(cl_platform_id platform, const char* name) {
  return hooked_extension(g_next.clGetExtensionFunctionAddressForPlatform(platform, name), name);
}
void* CL_API_CALL extension(const char* name) {
  return hooked_extension(g_next.clGetExtensionFunctionAddress(name), name);
}

// Allocations

// What a refused call asked for; 0 = not told.
template <auto Member, typename... A>
uint64_t asked_bytes(Of<Member>, const A&...) {
  return 0;
}
uint64_t asked_bytes(Of<&D::clCreateBuffer>, cl_context, cl_mem_flags, size_t bytes, void*, cl_int*) {
  return bytes;
}
uint64_t asked_bytes(Of<&D::clCreateBufferWithProperties>, cl_context, const cl_mem_properties*, cl_mem_flags,
                     size_t bytes, void*, cl_int*) {
  return bytes;
}

template <auto Member, typename F = FunctionOf<Member>>
struct Allocate;
template <auto Member, typename... A>
struct Allocate<Member, cl_mem (*)(A...)> {
  static cl_mem CL_API_CALL call(A... args) {
    const KeptCall call;
    cl_mem const object = (g_next.*Member)(args...);
    const uint64_t bytes = object != nullptr ? size_of(object) : 0;
    WatchRow* const row = TACHO_ROW(kAllocation, "buffers and images");
    cl_int* const told = std::get<sizeof...(A) - 1>(std::tie(args...));
    if (call.kept())
      call.end({.kind = WatchRecordKind::kAllocate,
                .call = TACHO_CALL_OF(Member),
                .row = row != nullptr ? row_number(*row) : event::kWatchNoRow,
                .object = reinterpret_cast<uint64_t>(object),
                .amount = object != nullptr ? bytes : asked_bytes(Of<Member>{}, args...),
                .context = reinterpret_cast<uint64_t>(std::get<0>(std::tie(args...))),
                .result = object != nullptr || told == nullptr ? (object != nullptr ? CL_SUCCESS : CL_OUT_OF_RESOURCES)
                                                               : *told});
    if (object == nullptr) return object;
    if (row != nullptr)
      count_operation(*row, bytes);
    else
      g_table->header.lost_rows.fetch_add(1, std::memory_order_relaxed);
    return object;
  }
};

void* CL_API_CALL allocate_shared(cl_context context, cl_svm_mem_flags flags, size_t bytes, cl_uint alignment) {
  const KeptCall call;
  void* const at = g_next.clSVMAlloc(context, flags, bytes, alignment);
  WatchRow* const row = TACHO_ROW(kAllocation, "shared memory");
  if (call.kept())
    call.end({.kind = WatchRecordKind::kAllocate,
              .call = TACHO_CALL_OF(&D::clSVMAlloc),
              .row = row != nullptr ? row_number(*row) : event::kWatchNoRow,
              .object = reinterpret_cast<uint64_t>(at),
              .amount = bytes,
              .context = reinterpret_cast<uint64_t>(context),
              .result = at != nullptr ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE});
  if (at == nullptr) return at;
  if (row != nullptr)
    count_operation(*row, bytes);
  else
    g_table->header.lost_rows.fetch_add(1, std::memory_order_relaxed);
  return at;
}

// The last release frees it, once the commands that use it have ended.
cl_int CL_API_CALL release_memory(cl_mem object) {
  cl_uint references = 0;
  size_t bytes = 0;
  cl_mem parent = nullptr;
  bool last = false;
  if (keeps() && object != nullptr) {
    last =
        g_next.clGetMemObjectInfo(object, CL_MEM_REFERENCE_COUNT, sizeof references, &references, nullptr) ==
            CL_SUCCESS &&
        references == 1 &&
        g_next.clGetMemObjectInfo(object, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, nullptr) == CL_SUCCESS &&
        parent == nullptr;
    if (last) g_next.clGetMemObjectInfo(object, CL_MEM_SIZE, sizeof bytes, &bytes, nullptr);
  }
  const KeptCall call;
  const cl_int result = g_next.clReleaseMemObject(object);
  if (last && result == CL_SUCCESS)
    call.end({.kind = WatchRecordKind::kFree,
              .call = TACHO_CALL_OF(&D::clReleaseMemObject),
              .object = reinterpret_cast<uint64_t>(object),
              .amount = bytes});
  return result;
}
void CL_API_CALL free_shared(cl_context context, void* at) {
  const KeptCall call;
  g_next.clSVMFree(context, at);
  if (at != nullptr)
    call.end({.kind = WatchRecordKind::kFree,
              .call = TACHO_CALL_OF(&D::clSVMFree),
              .object = reinterpret_cast<uint64_t>(at),
              .context = reinterpret_cast<uint64_t>(context)});
}

// Starting

void install() {
  g_hooks = g_next;
#define TACHO_HOOK(name)     \
  g_name<& D::name> = #name; \
  if (g_next.name != nullptr) g_hooks.name = Hook<&D::name>::call
  TACHO_HOOK(clEnqueueNDRangeKernel);
  TACHO_HOOK(clEnqueueTask);
  TACHO_HOOK(clEnqueueNativeKernel);
  TACHO_HOOK(clEnqueueReadBuffer);
  TACHO_HOOK(clEnqueueWriteBuffer);
  TACHO_HOOK(clEnqueueReadBufferRect);
  TACHO_HOOK(clEnqueueWriteBufferRect);
  TACHO_HOOK(clEnqueueCopyBuffer);
  TACHO_HOOK(clEnqueueCopyBufferRect);
  TACHO_HOOK(clEnqueueReadImage);
  TACHO_HOOK(clEnqueueWriteImage);
  TACHO_HOOK(clEnqueueCopyImage);
  TACHO_HOOK(clEnqueueCopyImageToBuffer);
  TACHO_HOOK(clEnqueueCopyBufferToImage);
  TACHO_HOOK(clEnqueueFillBuffer);
  TACHO_HOOK(clEnqueueFillImage);
  TACHO_HOOK(clEnqueueMigrateMemObjects);
  TACHO_HOOK(clEnqueueMapBuffer);
  TACHO_HOOK(clEnqueueMapImage);
  TACHO_HOOK(clEnqueueUnmapMemObject);
  TACHO_HOOK(clEnqueueSVMMemcpy);
  TACHO_HOOK(clEnqueueSVMMemFill);
#undef TACHO_HOOK
#define TACHO_HOOK(name, function) \
  g_name<& D::name> = #name;       \
  if (g_next.name != nullptr) g_hooks.name = function
  TACHO_HOOK(clFinish, Wait<&D::clFinish>::call);
  TACHO_HOOK(clWaitForEvents, Wait<&D::clWaitForEvents>::call);
  TACHO_HOOK(clCreateCommandQueue, create_queue);
  TACHO_HOOK(clCreateCommandQueueWithProperties, create_queue_with);
  TACHO_HOOK(clReleaseCommandQueue, release_queue);
  TACHO_HOOK(clReleaseContext, release_context);
  TACHO_HOOK(clGetCommandQueueInfo, get_queue_info);
  TACHO_HOOK(clGetEventProfilingInfo, get_profiling);
  TACHO_HOOK(clGetEventInfo, get_event_info);
  TACHO_HOOK(clGetContextInfo, get_context_info);
  TACHO_HOOK(clCreateKernel, create_kernel);
  TACHO_HOOK(clCreateKernelsInProgram, create_kernels);
  TACHO_HOOK(clCloneKernel, clone_kernel);
  TACHO_HOOK(clCreateBuffer, Allocate<&D::clCreateBuffer>::call);
  TACHO_HOOK(clCreateBufferWithProperties, Allocate<&D::clCreateBufferWithProperties>::call);
  TACHO_HOOK(clCreateImage, Allocate<&D::clCreateImage>::call);
  TACHO_HOOK(clCreateImageWithProperties, Allocate<&D::clCreateImageWithProperties>::call);
  TACHO_HOOK(clCreateImage2D, Allocate<&D::clCreateImage2D>::call);
  TACHO_HOOK(clCreateImage3D, Allocate<&D::clCreateImage3D>::call);
  TACHO_HOOK(clSVMAlloc, allocate_shared);
  TACHO_HOOK(clReleaseMemObject, release_memory);
  TACHO_HOOK(clSVMFree, free_shared);
  TACHO_HOOK(clGetExtensionFunctionAddressForPlatform, extension_of_platform);
  TACHO_HOOK(clGetExtensionFunctionAddress, extension);
#undef TACHO_HOOK
}

bool make_own() {
  auto* const own = static_cast<OwnState*>(map_pages(sizeof(OwnState)));
  if (own == nullptr) return false;
  madvise(own, sizeof(OwnState), MADV_WIPEONFORK);
  g_own = own;
  return true;
}

constinit bool g_is_layer = false;

cl_int init_layer(cl_uint entries, const cl_icd_dispatch* target, cl_uint* entries_ret,
                  const cl_icd_dispatch** layer_ret) {
  if (target == nullptr || entries_ret == nullptr || layer_ret == nullptr) return CL_INVALID_VALUE;
  // The loader goes on without us.
  if (!g_watched.load(std::memory_order_relaxed) || g_own != nullptr || !make_own()) return CL_INVALID_OPERATION;
  g_is_layer = true;
  constexpr auto kEntries = static_cast<cl_uint>(sizeof(cl_icd_dispatch) / sizeof(void*));
  const cl_uint known = entries < kEntries ? entries : kEntries;
  memcpy(static_cast<void*>(&g_next), target, known * sizeof(void*));
  install();
  note_domain(kDomain);
  *entries_ret = known;
  *layer_ret = &g_hooks;
  return CL_SUCCESS;
}

}  // namespace

// In a program that ran before tacho came (opencl_late.cpp)

const cl_icd_dispatch* opencl_hooks_above(const cl_icd_dispatch& functions) {
  note_domain(kDomain);
  if (g_is_layer || (g_own == nullptr && !make_own())) return nullptr;
  g_next = functions;
  install();
  return &g_hooks;
}

cl_icd_dispatch& opencl_below() {
  return g_next;
}

void begin_opencl() {
  if (g_own == nullptr) return;
  const Guard guard(g_own->objects);
  g_kernels.clear();
  g_late_queues.clear();
  // Handles may mean other queues now. A layer of the loader has seen them all.
  if (g_is_layer) return;
  g_queues.for_each([](const void*, void* queue) { g_queue_slab.give(static_cast<Queue*>(queue)); });
  g_queues.clear();
}

void drain_opencl() {
  if (g_own == nullptr) return;
  constexpr int64_t kPatience = 1'000'000'000;
  const int64_t begin = read_clock(CLOCK_MONOTONIC);
  for (;;) {
    read_times(kMostWaiting);
    if (g_own->waiting_count.load(std::memory_order_relaxed) == 0) return;
    if (read_clock(CLOCK_MONOTONIC) - begin > kPatience) break;
    const timespec moment{0, 1'000'000};
    nanosleep(&moment, nullptr);
  }
  const Guard guard(g_own->waiting_lock);
  uint32_t count = g_own->waiting_count.load(std::memory_order_relaxed);
  for (; count > 0; --count) {
    g_next.clReleaseEvent(g_own->waiting[count - 1].event);
    g_table->header.pending.fetch_sub(1, std::memory_order_relaxed);
    g_table->header.lost_times.fetch_add(1, std::memory_order_relaxed);
  }
  g_own->waiting_count.store(0, std::memory_order_relaxed);
}

}  // namespace tacho::capture::watch

TACHO_EXPORT cl_int clGetLayerInfo(cl_layer_info what, size_t size, void* value, size_t* size_ret) {
  static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  static const char name[] = "tacho watch";
  const void* answer = nullptr;
  size_t bytes = 0;
  if (what == CL_LAYER_API_VERSION) {
    answer = &version;
    bytes = sizeof version;
  } else if (what == CL_LAYER_NAME) {
    answer = name;
    bytes = sizeof name;
  } else {
    return CL_INVALID_VALUE;
  }
  if (value != nullptr) {
    if (size < bytes) return CL_INVALID_VALUE;
    memcpy(value, answer, bytes);
  }
  if (size_ret != nullptr) *size_ret = bytes;
  return CL_SUCCESS;
}

TACHO_EXPORT cl_int clInitLayer(cl_uint entries, const cl_icd_dispatch* target, cl_uint* entries_ret,
                                const cl_icd_dispatch** layer_ret) {
  return tacho::capture::watch::init_layer(entries, target, entries_ret, layer_ret);
}
