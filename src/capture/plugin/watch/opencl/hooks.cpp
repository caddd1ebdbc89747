// OpenCL under `tacho watch`: a layer of the ICD loader that counts what is put into queues and times 1 of N by the
// runtime's own profiling (twins.h), which the program does not see.
#include <CL/cl_layer.h>
#include <string.h>

#include <tuple>
#include <type_traits>
#include <utility>

#include "capture/plugin/watch/opencl/opencl.h"
#include "capture/plugin/watch/opencl/own.h"
#include "capture/plugin/watch/opencl/queues.h"
#include "capture/plugin/watch/ring.h"

#define TACHO_EXPORT extern "C" __attribute__((visibility("default")))

namespace tacho::capture::watch {
namespace {

using namespace cl;

constinit cl_icd_dispatch g_hooks = {};
constinit HandleMap g_kernels;  // cl_kernel -> WatchedKernel

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

// The hook of a function that puts an operation into a queue

// What an operation in a twin takes of all threads of the runtime, to what the account sees: calls of the thread that
// puts it there. 12 to 20 us to 4 to 7 us with PoCL 3.1.
constexpr uint32_t kTimesBeside = 3;

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

// Where `cl_uint` stands first: in functions that may block, whether they do.
template <typename... A>
constexpr size_t blocking_at() {
  size_t at = 0, found = sizeof...(A);
  ((found = found == sizeof...(A) && std::is_same_v<A, cl_bool> ? at : found, ++at), ...);
  return found;
}

template <auto Member, typename F = FunctionOf<Member>>
struct Hook;
template <auto Member, typename R, typename... A>
struct Hook<Member, R (*)(A...)> {
  static R CL_API_CALL call(A... args) {
    if (!g_watched.load(std::memory_order_relaxed)) return (g_next.*Member)(args...);
    const uint32_t stay = g_stay.load(std::memory_order_relaxed);
    OwnTime own;
    const Operation operation = describe(Of<Member>{}, args...);
    cl_command_queue const handle = std::get<0>(std::tie(args...));
    WatchedQueue* const queue = known_queue(handle);
    const Inside inside(queue);
    uint32_t level = 0;
    if (operation.row == nullptr) {
      g_table->header.lost_rows.fetch_add(1, std::memory_order_relaxed);
      return (g_next.*Member)(args...);
    }
    if (!to_be_timed(*operation.row, level)) return pass_on<false>(own, operation, stay, args...);
    const Timing timing = queue != nullptr              ? queue->timing
                          : g_late && has_times(handle) ? Timing::kItself
                                                        : Timing::kNot;
    if (timing == Timing::kItself) return timed(own, operation, level, args...);
    if (timing == Timing::kBeside) return beside(own, operation, level, *queue, inside, args...);
    return pass_on<true>(own, operation, stay, args...);
  }

 private:
  // Calls the runtime and counts. `Due`: it was to be timed and is not.
  template <bool Due>
  TACHO_RUN_OFTEN static R pass_on(OwnTime& own, const Operation& operation, uint32_t stay, A... args) {
    KeptWork kept;
    const auto [result, good] = forward(own, operation, kept, args...);
    if (stay != g_stay.load(std::memory_order_relaxed)) return result;
    if (Due && good) g_table->header.lost_times.fetch_add(1, std::memory_order_relaxed);
    finish(own, operation, good);
    return result;
  }
  static bool is_good(R result) {
    if constexpr (std::is_same_v<R, cl_int>)
      return result == CL_SUCCESS;
    else
      return result != nullptr;
  }
  static cl_int code_of(R result, A... args) {
    if constexpr (std::is_same_v<R, cl_int>) {
      return result;
    } else {
      const cl_int* const told = std::get<sizeof...(A) - 1>(std::tie(args...));
      return result != nullptr ? CL_SUCCESS : told != nullptr ? *told : CL_OUT_OF_RESOURCES;
    }
  }
  static uint64_t keep(const KeptCall& call, const Operation& operation, cl_command_queue queue, cl_int code) {
    return call.end({.call = TACHO_CALL_OF(Member),
                     .row = row_number(*operation.row),
                     .object = reinterpret_cast<uint64_t>(queue),
                     .amount = operation.bytes,
                     .result = code,
                     .flags = operation.blocking ? event::kWatchWaitsForQueue : uint8_t{0}});
  }
  // The result, and whether the runtime took the operation.
  static std::pair<R, bool> forward(OwnTime& own, const Operation& operation, KeptWork& kept, A... args) {
    const KeptCall call;
    own.pause();
    const R result = (g_next.*Member)(args...);
    own.resume();
    cl_command_queue const queue = std::get<0>(std::tie(args...));
    if (g_late && call.kept()) keep_late_queue(queue);
    if (call.kept()) kept.ticket = keep(call, operation, queue, code_of(result, args...));
    return {result, is_good(result)};
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
      wait_for_time({event, {}, order_of(std::get<0>(std::tie(args...))), operation.row, level, kept});
    else if (good)
      g_table->header.lost_times.fetch_add(1, std::memory_order_relaxed);
    finish(own, operation, good);
    return result;
  }

  // In the queue's twin. What the runtime does not take there, it is asked to take where the program wants it.
  __attribute__((noinline)) static R beside(OwnTime& own, const Operation& operation, uint32_t level,
                                            WatchedQueue& queue, const Inside& inside, A... args) {
    const uint32_t stay = g_stay.load(std::memory_order_relaxed);
    own.prepare(kTimesBeside);
    constexpr size_t kEvent = event_at<A...>();
    const auto given = std::tie(args...);
    cl_command_queue const handle = std::get<0>(given);
    Detour detour(handle, queue, inside, std::get<kEvent - 2>(given), std::get<kEvent - 1>(given));
    cl_event event = nullptr;
    KeptWork kept;
    const KeptCall call;
    const R result = detour.is_open() ? take(own, operation, detour, event, kept, args...) : R{};
    if (event == nullptr) {
      detour.close();
      return pass_on<true>(own, operation, stay, args...);
    }
    detour.join(event);
    const bool good = !operation.blocking || wait(own, event);
    if (good && call.kept()) kept.ticket = keep(call, operation, handle, CL_SUCCESS);
    if (good && std::get<kEvent>(given) != nullptr) {
      *std::get<kEvent>(given) = event;
      g_next.clRetainEvent(event);
    }
    if (stay == g_stay.load(std::memory_order_relaxed))
      wait_for_time({event, {detour.take_before(), detour.take_after()}, &queue, operation.row, level, kept});
    else
      g_next.clReleaseEvent(event);
    // It failed while the program waits: what the runtime says then, it says itself.
    if (!good) return pass_on<false>(own, operation, stay, args...);
    if (stay == g_stay.load(std::memory_order_relaxed)) finish(own, operation, true);
    return result;
  }
  // Puts the operation into the twin, where it does not block. `event`: nullptr when it is not there.
  static R take(OwnTime& own, const Operation& operation, const Detour& detour, cl_event& event, KeptWork& kept,
                A... args) {
    constexpr size_t kEvent = event_at<A...>();
    const auto changed = std::tie(args...);
    std::get<0>(changed) = detour.twin();
    if constexpr (blocking_at<A...>() < kEvent - 2)
      if (operation.blocking) std::get<blocking_at<A...>()>(changed) = CL_FALSE;
    std::get<kEvent - 2>(changed) = 1;
    std::get<kEvent - 1>(changed) = detour.before();
    std::get<kEvent>(changed) = &event;
    if (keeps()) kept.from = raw_now();
    own.pause();
    const R result = (g_next.*Member)(args...);
    own.resume();
    if (keeps()) kept.to = raw_now();
    if (!is_good(result)) event = nullptr;
    return result;
  }
  static bool wait(OwnTime& own, cl_event event) {
    own.pause();
    const cl_int code = g_next.clWaitForEvents(1, &event);
    own.resume();
    return code == CL_SUCCESS;
  }
  // As wait_for_time() wants it.
  static const void* order_of(cl_command_queue handle) {
    const WatchedQueue* const queue = known_queue(handle);
    return queue != nullptr && queue->ordered ? queue : nullptr;
  }
};

// Of commands that are not watched, and must not come between an operation's detour.
template <auto Member, typename F = FunctionOf<Member>>
struct Pass;
template <auto Member, typename R, typename... A>
struct Pass<Member, R (*)(A...)> {
  static R CL_API_CALL call(A... args) {
    const Inside inside(known_queue(std::get<0>(std::tie(args...))));
    return (g_next.*Member)(args...);
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
  // A buffer's own queue is not told: where it has no profiling, the time is lost later.
  const bool timed = due && (!g_late || (count == 1 && queues != nullptr && has_times(queues[0])));
  if (due && !timed) g_table->header.lost_times.fetch_add(1, std::memory_order_relaxed);
  if (timed) own.prepare();
  cl_event* const where = timed && event == nullptr ? &mine : event;
  KeptWork kept;
  if (timed && keeps()) kept.from = raw_now();
  const Inside inside(count > 0 && queues != nullptr ? known_queue(queues[0]) : nullptr);
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
  if (timed) wait_for_time({*where, {}, nullptr, row, level, kept});
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
  if (found == nullptr || name == nullptr || !g_watched.load(std::memory_order_relaxed)) return found;
  if (strcmp(name, "clCreateCommandBufferKHR") == 0) note_command_buffers();
  if (strcmp(name, "clEnqueueCommandBufferKHR") != 0) return found;
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

constinit bool g_is_layer = false;

void install() {
  g_hooks = g_next;
  install_queues(g_hooks, g_is_layer);
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
  if (!g_is_layer) return;  // where queues have no twins
#define TACHO_HOOK(name) \
  if (g_next.name != nullptr) g_hooks.name = Pass<&D::name>::call
  TACHO_HOOK(clEnqueueSVMFree);
  TACHO_HOOK(clEnqueueSVMMap);
  TACHO_HOOK(clEnqueueSVMUnmap);
  TACHO_HOOK(clEnqueueSVMMigrateMem);
  TACHO_HOOK(clEnqueueAcquireGLObjects);
  TACHO_HOOK(clEnqueueReleaseGLObjects);
  TACHO_HOOK(clEnqueueAcquireEGLObjectsKHR);
  TACHO_HOOK(clEnqueueReleaseEGLObjectsKHR);
#undef TACHO_HOOK
}

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

// In a program that ran before tacho came (late.cpp)

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
  // Handles may mean other queues now. A layer of the loader has seen them all.
  forget_queues(!g_is_layer);
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
