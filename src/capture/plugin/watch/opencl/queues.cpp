// Hooks of what makes and releases queues, and of what the program is told of them and of events.
#include "capture/plugin/watch/opencl/queues.h"

#include <stdlib.h>
#include <string.h>

#include "capture/plugin/watch/ring.h"

namespace tacho::capture::watch::cl {

namespace {

constinit HandleMap
    g_late_queues;  // in a program that ran before tacho came: cl_command_queue -> itself, when the ring has it
constinit std::atomic<bool> g_command_buffers{false};

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

// Keeps what it knows of a new queue, or of one that the program made before tacho came. nullptr without memory.
WatchedQueue* keep_queue(cl_command_queue handle, Timing timing, cl_command_queue_properties properties) {
  keep_device_of(handle);
  if (timing == Timing::kBeside) use_barriers();
  const Guard guard(g_own->objects);
  // Registered when the runtime has started, so that it runs before the runtime's own end.
  static bool registered = false;
  if (!registered) registered = atexit(read_last_times) == 0;
  WatchedQueue* const queue = make_known(handle);
  if (queue == nullptr) return nullptr;
  queue->timing = timing;
  queue->properties = properties;
  queue->ordered = (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
  return queue;
}

// In a program that ran before tacho came, queues stay as the program makes them: it goes on when tacho has left. So do
// they where nothing is timed.
bool makes_queues() {
  return !g_late && g_watched.load(std::memory_order_relaxed) &&
         g_table->header.timing.load(std::memory_order_relaxed) != event::WatchTiming::kNever;
}

bool is_older_than_1_2(cl_device_id device) {
  char version[256] = "";
  return g_next.clEnqueueMarkerWithWaitList == nullptr ||
         g_next.clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof version, version, nullptr) != CL_SUCCESS ||
         strncmp(version, "OpenCL 1.0", 10) == 0 || strncmp(version, "OpenCL 1.1", 10) == 0;
}

// On NVIDIA's GPUs profiling takes no time that could be measured, and kernels in a second queue seem to last longer.
bool is_cpu(cl_device_id device) {
  cl_device_type type = 0;
  return g_next.clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, nullptr) == CL_SUCCESS &&
         (type & CL_DEVICE_TYPE_CPU) != 0;
}

// How operations of a queue that the program asks for are to be timed.
Timing timing_of(cl_device_id device, cl_command_queue_properties asked) {
  constexpr cl_command_queue_properties kItself = CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
  const bool itself = (asked & kItself) != 0 || g_command_buffers.load(std::memory_order_relaxed) ||
                      is_older_than_1_2(device) || !is_cpu(device);
  return itself ? Timing::kItself : Timing::kBeside;
}

cl_command_queue known_anew(cl_command_queue queue) {
  if (queue == nullptr) return queue;
  forget_queue(queue);  // another one that had this handle before
  const Guard guard(g_own->objects);
  if (g_late_queues.find(queue) != nullptr) g_late_queues.erase(queue);
  return queue;
}

cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device, cl_command_queue_properties asked,
                                          cl_int* code) {
  release_ended();
  if (!makes_queues()) return known_anew(g_next.clCreateCommandQueue(context, device, asked, code));
  const bool forced = (asked & CL_QUEUE_PROFILING_ENABLE) == 0;
  if (device != nullptr && timing_of(device, asked) == Timing::kItself) {
    cl_command_queue queue =
        known_anew(g_next.clCreateCommandQueue(context, device, asked | CL_QUEUE_PROFILING_ENABLE, code));
    if (queue != nullptr) {
      if (WatchedQueue* const kept = keep_queue(queue, Timing::kItself, asked)) kept->forced = forced;
      return queue;
    }
    if (!forced) return queue;
    // As the program asked: its queue, which cannot be timed, or its error.
    return known_anew(g_next.clCreateCommandQueue(context, device, asked, code));
  }
  cl_command_queue queue = known_anew(g_next.clCreateCommandQueue(context, device, asked, code));
  if (queue != nullptr) keep_queue(queue, Timing::kBeside, asked);
  return queue;
}

void keep_list(WatchedQueue* queue, const cl_queue_properties* asked) {
  if (queue == nullptr) return;
  queue->by_list = true;
  while (asked != nullptr && asked[queue->words] != 0) queue->words += 2;  // ProfilingList has looked at its length
  for (uint32_t i = 0; i < queue->words; ++i) queue->asked[i] = asked[i];
  if (asked != nullptr) queue->asked[queue->words++] = 0;
}

cl_command_queue CL_API_CALL create_queue_with(cl_context context, cl_device_id device,
                                               const cl_queue_properties* asked, cl_int* code) {
  release_ended();
  ProfilingList list;
  if (!makes_queues() || !list.make(asked) || device == nullptr || (list.properties() & CL_QUEUE_ON_DEVICE) != 0)
    return known_anew(g_next.clCreateCommandQueueWithProperties(context, device, asked, code));
  const bool forced = (list.properties() & CL_QUEUE_PROFILING_ENABLE) == 0;
  const Timing timing = timing_of(device, list.properties());
  const bool changes = timing == Timing::kItself;
  cl_command_queue queue =
      known_anew(g_next.clCreateCommandQueueWithProperties(context, device, changes ? list.words() : asked, code));
  if (queue != nullptr) {
    WatchedQueue* const kept = keep_queue(queue, timing, list.properties());
    if (kept != nullptr) kept->forced = changes && forced;
    keep_list(kept, asked);
    return queue;
  }
  if (!changes || !forced) return queue;
  return known_anew(g_next.clCreateCommandQueueWithProperties(context, device, asked, code));
}

// Changes a number of references that the program has asked for.
void change_count(void* value, cl_uint by) {
  cl_uint count;
  memcpy(&count, value, sizeof count);
  count += by;
  memcpy(value, &count, sizeof count);
}

cl_int CL_API_CALL get_queue_info(cl_command_queue handle, cl_command_queue_info what, size_t size, void* value,
                                  size_t* size_ret) {
  if (what == CL_QUEUE_REFERENCE_COUNT) {
    read_times(kMostWaiting);
    release_ended();
  }
  cl_int result = g_next.clGetCommandQueueInfo(handle, what, size, value, size_ret);
  const WatchedQueue* const queue = known_queue(handle);
  if (queue != nullptr && what == CL_QUEUE_REFERENCE_COUNT && result == CL_SUCCESS && value != nullptr)
    change_count(value, more_references(*queue));
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
    const WatchedQueue* const queue = known_queue(handle);
    if ((queue != nullptr && queue->forced) || queue_beside(handle) != nullptr) return CL_PROFILING_INFO_NOT_AVAILABLE;
  }
  return g_next.clGetEventProfilingInfo(event, what, size, value, size_ret);
}

cl_int CL_API_CALL retain_queue(cl_command_queue handle) {
  const cl_int result = g_next.clRetainCommandQueue(handle);
  WatchedQueue* const queue = result == CL_SUCCESS ? known_queue(handle) : nullptr;
  if (queue != nullptr) queue->retained.fetch_add(1, std::memory_order_relaxed);
  return result;
}
cl_int CL_API_CALL release_queue(cl_command_queue handle) {
  read_times(kMostWaiting);
  release_ended();
  WatchedQueue* const queue = known_queue(handle);
  if (queue == nullptr || queue->timing != Timing::kBeside) return g_next.clReleaseCommandQueue(handle);
  uint32_t more = queue->retained.load(std::memory_order_relaxed);
  while (more != 0 && !queue->retained.compare_exchange_weak(more, more - 1, std::memory_order_relaxed)) {
  }
  return more == 0 && release_twin(handle, *queue) ? CL_SUCCESS : g_next.clReleaseCommandQueue(handle);
}
cl_int CL_API_CALL release_context(cl_context context) {
  read_times(kMostWaiting);
  release_ended();
  return g_next.clReleaseContext(context);
}
cl_int CL_API_CALL release_event(cl_event event) {
  const cl_int result = g_next.clReleaseEvent(event);
  release_ended();
  return result;
}
// A queue that is no longer in order cannot have its operations taken elsewhere.
cl_int CL_API_CALL set_queue_property(cl_command_queue handle, cl_command_queue_properties properties, cl_bool enable,
                                      cl_command_queue_properties* before) {
  const cl_int result = g_next.clSetCommandQueueProperty(handle, properties, enable, before);
  WatchedQueue* const queue = result == CL_SUCCESS ? known_queue(handle) : nullptr;
  if (queue != nullptr) queue->closed.store(true, std::memory_order_relaxed);
  return result;
}

cl_int CL_API_CALL get_context_info(cl_context context, cl_context_info what, size_t size, void* value,
                                    size_t* size_ret) {
  if (what != CL_CONTEXT_REFERENCE_COUNT) return g_next.clGetContextInfo(context, what, size, value, size_ret);
  read_times(kMostWaiting);
  release_ended();
  const cl_int result = g_next.clGetContextInfo(context, what, size, value, size_ret);
  if (result == CL_SUCCESS && value != nullptr) change_count(value, -twins_of(context));
  return result;
}
cl_int CL_API_CALL get_device_info(cl_device_id device, cl_device_info what, size_t size, void* value,
                                   size_t* size_ret) {
  const cl_int result = g_next.clGetDeviceInfo(device, what, size, value, size_ret);
  if (what == CL_DEVICE_REFERENCE_COUNT && result == CL_SUCCESS && value != nullptr)
    change_count(value, -twins_of(device));
  return result;
}

// While a time is to be read its event has one reference more, which the program does not see. Nor does it see that an
// event's queue is a twin.
cl_int CL_API_CALL get_event_info(cl_event event, cl_event_info what, size_t size, void* value, size_t* size_ret) {
  if (what == CL_EVENT_REFERENCE_COUNT) read_times(kMostWaiting);
  const cl_int result = g_next.clGetEventInfo(event, what, size, value, size_ret);
  if (result != CL_SUCCESS || value == nullptr) return result;
  if (what == CL_EVENT_REFERENCE_COUNT && is_waited_for(event)) change_count(value, -cl_uint{1});
  if (what == CL_EVENT_COMMAND_QUEUE) {
    cl_command_queue queue;
    memcpy(&queue, value, sizeof(cl_command_queue));
    cl_command_queue const of_program = queue_beside(queue);
    if (of_program != nullptr) memcpy(value, &of_program, sizeof(cl_command_queue));
  }
  return result;
}

}  // namespace

bool has_times(cl_command_queue handle) {
  const WatchedQueue* const known = known_queue(handle);
  if (known != nullptr) return known->timing == Timing::kItself;
  cl_command_queue_properties properties = 0;
  if (handle == nullptr ||
      g_next.clGetCommandQueueInfo(handle, CL_QUEUE_PROPERTIES, sizeof properties, &properties, nullptr) != CL_SUCCESS)
    return false;
  const Timing timing = (properties & CL_QUEUE_PROFILING_ENABLE) != 0 ? Timing::kItself : Timing::kNot;
  const WatchedQueue* const kept = keep_queue(handle, timing, properties);
  if (kept != nullptr && timing == Timing::kNot) g_process->untimed.fetch_add(1, std::memory_order_relaxed);
  return kept != nullptr && timing == Timing::kItself;
}

void keep_late_queue(cl_command_queue handle) {
  if (handle == nullptr || g_late_queues.find(handle) != nullptr) return;
  keep_device_of(handle);
  const Guard guard(g_own->objects);
  g_late_queues.set(handle, handle);
}

void note_command_buffers() {
  g_command_buffers.store(true, std::memory_order_relaxed);
}

void forget_queues(bool all) {
  g_late_queues.clear();
  if (all) forget_all_queues();
}

void install_queues(D& hooks, bool layer) {
#define TACHO_HOOK(name, function) \
  if (g_next.name != nullptr) hooks.name = function
  TACHO_HOOK(clCreateCommandQueue, create_queue);
  TACHO_HOOK(clCreateCommandQueueWithProperties, create_queue_with);
  TACHO_HOOK(clReleaseCommandQueue, release_queue);
  TACHO_HOOK(clReleaseContext, release_context);
  TACHO_HOOK(clGetCommandQueueInfo, get_queue_info);
  TACHO_HOOK(clGetEventProfilingInfo, get_profiling);
  TACHO_HOOK(clGetEventInfo, get_event_info);
  TACHO_HOOK(clGetContextInfo, get_context_info);
  if (!layer) return;
  TACHO_HOOK(clRetainCommandQueue, retain_queue);
  TACHO_HOOK(clSetCommandQueueProperty, set_queue_property);
  TACHO_HOOK(clReleaseEvent, release_event);
  TACHO_HOOK(clGetDeviceInfo, get_device_info);
#undef TACHO_HOOK
}

}  // namespace tacho::capture::watch::cl
