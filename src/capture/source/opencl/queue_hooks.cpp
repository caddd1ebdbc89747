// Creation and release of queues, questions about queues and events, and waiting (queue_hooks.h).
#include "capture/source/opencl/queue_hooks.h"

#include "capture/source/opencl/queues.h"

namespace tacho::capture::opencl {
namespace {

using D = cl_icd_dispatch;

bool wants_profiling() {
  return (tape::pool()->sources & (bit::kDispatch | bit::kCopy | bit::kSync)) != 0;
}

cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device, cl_command_queue_properties asked,
                                          cl_int* code) {
  if (only_forward()) return next<&D::clCreateCommandQueue>(context, device, asked, code);
  cl_int own_code = CL_SUCCESS;
  if (code == nullptr) code = &own_code;
  cl_command_queue queue = nullptr;
  bool forced = wants_profiling();
  {
    CallTimes times;
    const uint64_t bits = enabled_bits();
    const auto call = [&](cl_command_queue_properties properties) {
      const Inner inner;
      return next<&D::clCreateCommandQueue>(context, device, properties, code);
    };
    ApiSpan span(bits);
    queue = call(forced ? asked | CL_QUEUE_PROFILING_ENABLE : asked);
    if (queue == nullptr && forced && (asked & CL_QUEUE_PROFILING_ENABLE) == 0) {
      forced = false;  // as the program asked: its error, or its queue without profiling
      queue = call(asked);
    }
    span.arguments(SlotOf<&D::clCreateCommandQueue>::kNumber, context, device, asked, code);
    span.end(SlotOf<&D::clCreateCommandQueue>::kNumber, *code);
  }
  if (queue != nullptr) queue_created(queue, context, device, asked, forced, nullptr);
  return queue;
}

cl_command_queue CL_API_CALL next_create(cl_context context, cl_device_id device, const cl_queue_properties* asked,
                                         cl_int* code) {
  return next<&D::clCreateCommandQueueWithProperties>(context, device, asked, code);
}
cl_command_queue CL_API_CALL create_queue_with_properties(cl_context context, cl_device_id device,
                                                          const cl_queue_properties* asked, cl_int* code) {
  return create_queue_by(next_create, SlotOf<&D::clCreateCommandQueueWithProperties>::kNumber, context, device, asked,
                         code);
}

cl_int CL_API_CALL set_queue_property(cl_command_queue handle, cl_command_queue_properties which, cl_bool enable,
                                      cl_command_queue_properties* old) {
  ClQueue* const queue = only_forward() ? nullptr : known_queue(handle);
  if (queue == nullptr || !queue->forced || queue->adopted)
    return traced<&D::clSetCommandQueueProperty>(handle, which, enable, old);
  const uint64_t before = queue->properties.load(std::memory_order_relaxed);
  const cl_command_queue_properties forwarded =
      enable == CL_FALSE ? which & ~static_cast<uint64_t>(CL_QUEUE_PROFILING_ENABLE) : which;
  const cl_int result = traced<&D::clSetCommandQueueProperty>(handle, forwarded, enable, old);
  if (result == CL_SUCCESS) {
    queue->properties.store(enable != CL_FALSE ? before | which : before & ~which, std::memory_order_relaxed);
    if (old != nullptr && (before & CL_QUEUE_PROFILING_ENABLE) == 0)
      *old &= ~static_cast<uint64_t>(CL_QUEUE_PROFILING_ENABLE);
  }
  return result;
}

cl_int CL_API_CALL retain_queue(cl_command_queue handle) {
  const cl_int result = traced<&D::clRetainCommandQueue>(handle);
  if (result == CL_SUCCESS && !only_forward()) queue_retained(handle);
  return result;
}

cl_int CL_API_CALL release_queue(cl_command_queue handle) {
  if (!only_forward()) queue_released(handle);
  return traced<&D::clReleaseCommandQueue>(handle);
}

cl_int CL_API_CALL release_context(cl_context context) {
  if (!only_forward()) collect_all_queues();
  return traced<&D::clReleaseContext>(context);
}

// Answers as clGet*Info does: `bytes` of `answer`.
cl_int answer_info(const void* answer, size_t bytes, size_t size, void* value, size_t* size_ret) {
  if (value != nullptr) {
    if (size < bytes) return CL_INVALID_VALUE;
    if (bytes != 0) memcpy(value, answer, bytes);
  }
  if (size_ret != nullptr) *size_ret = bytes;
  return CL_SUCCESS;
}

cl_int CL_API_CALL get_queue_info(cl_command_queue handle, cl_command_queue_info what, size_t size, void* value,
                                  size_t* size_ret) {
  ClQueue* const queue = only_forward() ? nullptr : known_queue(handle);
  if (queue == nullptr || !queue->forced || queue->adopted)
    return traced<&D::clGetCommandQueueInfo>(handle, what, size, value, size_ret);
  if (what == CL_QUEUE_REFERENCE_COUNT) collect_all_queues();
  if (what == CL_QUEUE_PROPERTIES_ARRAY) {
    // The list as the program gave it. Whether the runtime knows the question at all, it says itself.
    const uint64_t bits = enabled_bits();
    ApiSpan span(bits);
    size_t real = 0;
    cl_int result = next<&D::clGetCommandQueueInfo>(handle, what, size_t{0}, nullptr, &real);
    if (result == CL_SUCCESS)
      result = answer_info(queue->array, queue->array_words * sizeof *queue->array, size, value, size_ret);
    span.arguments(SlotOf<&D::clGetCommandQueueInfo>::kNumber, handle, what, size, value, size_ret);
    span.end(SlotOf<&D::clGetCommandQueueInfo>::kNumber, result);
    return result;
  }
  const cl_int result = traced<&D::clGetCommandQueueInfo>(handle, what, size, value, size_ret);
  if (what == CL_QUEUE_PROPERTIES && result == CL_SUCCESS && value != nullptr &&
      size >= sizeof(cl_command_queue_properties) &&
      (queue->properties.load(std::memory_order_relaxed) & CL_QUEUE_PROFILING_ENABLE) == 0) {
    cl_command_queue_properties properties;
    memcpy(&properties, value, sizeof properties);
    properties &= ~static_cast<uint64_t>(CL_QUEUE_PROFILING_ENABLE);
    memcpy(value, &properties, sizeof properties);
  }
  return result;
}

ClQueue* queue_of_event(cl_event event) {
  cl_command_queue handle = nullptr;
  if (event == nullptr || next<&D::clGetEventInfo>(event, CL_EVENT_COMMAND_QUEUE, sizeof handle,
                                                   static_cast<void*>(&handle), nullptr) != CL_SUCCESS)
    return nullptr;
  return known_queue(handle);
}

cl_int CL_API_CALL get_profiling(cl_event event, cl_profiling_info what, size_t size, void* value, size_t* size_ret) {
  if (only_forward()) return next<&D::clGetEventProfilingInfo>(event, what, size, value, size_ret);
  const ClQueue* const queue = queue_of_event(event);
  if (hides_profiling(queue)) {
    ApiSpan span(enabled_bits());
    span.arguments(SlotOf<&D::clGetEventProfilingInfo>::kNumber, event, what, size, value, size_ret);
    span.end(SlotOf<&D::clGetEventProfilingInfo>::kNumber, CL_PROFILING_INFO_NOT_AVAILABLE);
    return CL_PROFILING_INFO_NOT_AVAILABLE;
  }
  return traced<&D::clGetEventProfilingInfo>(event, what, size, value, size_ret);
}

void collect_event(cl_event event);

cl_int CL_API_CALL get_event_info(cl_event event, cl_event_info what, size_t size, void* value, size_t* size_ret) {
  const bool count = what == CL_EVENT_REFERENCE_COUNT && !only_forward();
  if (count) collect_all_queues();
  const cl_int result = traced<&D::clGetEventInfo>(event, what, size, value, size_ret);
  if (what == CL_EVENT_COMMAND_EXECUTION_STATUS && result == CL_SUCCESS && value != nullptr && size >= sizeof(cl_int) &&
      !only_forward()) {
    cl_int status;
    memcpy(&status, value, sizeof status);
    if (status <= CL_COMPLETE) collect_event(event);  // a program that asks until it is complete waits, too
  }
  if (count && result == CL_SUCCESS && value != nullptr && size >= sizeof(cl_uint) && holds(event)) {
    cl_uint references;
    memcpy(&references, value, sizeof references);
    --references;
    memcpy(value, &references, sizeof references);
  }
  return result;
}

// After the program has learned that the event is complete.
void collect_event(cl_event event) {
  ClQueue* const queue = queue_of_event(event);
  if (queue != nullptr && !given_up(*queue)) collect_after_wait(*queue);
}

// A callback of the program for a complete event: the commands that led to the event are collected first.
struct EventCallback {
  void(CL_CALLBACK* function)(cl_event, cl_int, void*);
  void* data;
};
constinit Slab<EventCallback> g_callback_slab;

void CL_CALLBACK event_complete(cl_event event, cl_int status, void* data) {
  auto* const kept = static_cast<EventCallback*>(data);
  const EventCallback callback = *kept;
  {
    const Guard guard(g_wiped->objects);
    g_callback_slab.give(kept);
  }
  if (!only_forward()) collect_event(event);
  callback.function(event, status, callback.data);
}

cl_int CL_API_CALL set_event_callback(cl_event event, cl_int status,
                                      void(CL_CALLBACK* function)(cl_event, cl_int, void*), void* data) {
  EventCallback* kept = nullptr;
  if (status == CL_COMPLETE && function != nullptr && !only_forward()) {
    const Guard guard(g_wiped->objects);
    kept = g_callback_slab.take();
  }
  if (kept == nullptr) return traced<&D::clSetEventCallback>(event, status, function, data);
  *kept = {function, data};
  const cl_int result = traced<&D::clSetEventCallback>(event, status, &event_complete, static_cast<void*>(kept));
  if (result != CL_SUCCESS) {
    const Guard guard(g_wiped->objects);
    g_callback_slab.give(kept);
  }
  return result;
}

void write_wait(const CallTimes& times, event::SyncKind kind, uint32_t queue) {
  if (times.end == 0 || (enabled_bits() & bit::kSync) == 0) return;
  if (auto* const record = tape::begin<event::SyncRecord>(event::RecordKind::kSync, event::Table::kSync,
                                                          static_cast<uint32_t>(kind), event::kTimesAreHost)) {
    record->correlation = times.correlation;
    record->start = times.start;
    record->end = times.end;
    record->queue = queue;
    record->reserved = 0;
    tape::commit();
  }
}

cl_int CL_API_CALL finish_queue(cl_command_queue handle) {
  CallTimes times;
  if (!only_forward()) {
    if (const auto* const queue = known_queue(handle)) prepare_wait(*queue);
  }
  const cl_int result = traced<&D::clFinish>(times, handle);
  if (only_forward()) return result;
  if (auto* const queue = known_queue(handle); queue != nullptr && !given_up(*queue)) {
    collect_after_wait(*queue);
    if (times.end != 0 && (enabled_bits() & bit::kSync) != 0) {
      if (!queue->defined.load(std::memory_order_acquire)) define_queue(*queue, nullptr);
      write_wait(times, event::SyncKind::kQueue, queue->number);
    }
  }
  return result;
}

cl_int CL_API_CALL wait_for_events(cl_uint count, const cl_event* events) {
  CallTimes times;
  const cl_int result = traced<&D::clWaitForEvents>(times, count, events);
  if (only_forward()) return result;
  write_wait(times, event::SyncKind::kEvent, 0);
  // Of a few events the queues, of many all that the context has. They are complete, or have failed.
  constexpr cl_uint kFew = 8;
  const ClQueue* last = nullptr;
  for (cl_uint i = 0; events != nullptr && i < count && result != CL_INVALID_EVENT; ++i) {
    ClQueue* const queue = queue_of_event(events[i]);
    if (queue == nullptr || queue == last || given_up(*queue)) continue;
    if (count > kFew) {
      collect_context(queue->context);
      break;
    }
    collect_after_wait(*queue);
    last = queue;
  }
  return result;
}

// Reference counts as the program expects them: completed commands are released before the runtime is asked.
template <auto Member, auto Asked, typename F = FunctionOf<Member>>
struct ReferenceCount;
template <auto Member, auto Asked, typename O, typename I>
struct ReferenceCount<Member, Asked, cl_int (*)(O, I, size_t, void*, size_t*)> {
  static cl_int CL_API_CALL call(O object, I what, size_t size, void* value, size_t* size_ret) {
    if (what == Asked && !only_forward()) collect_all_queues();
    return traced<Member>(object, what, size, value, size_ret);
  }
};

}  // namespace

cl_command_queue create_queue_by(CreateQueue forward, uint16_t function, cl_context context, cl_device_id device,
                                 const cl_queue_properties* asked, cl_int* code) {
  if (only_forward()) return forward(context, device, asked, code);
  cl_int own_code = CL_SUCCESS;
  if (code == nullptr) code = &own_code;
  // The same list with profiling added; not for queues on the device, and not for a list longer than any known.
  cl_queue_properties list[32];
  uint32_t words = 0;
  uint64_t properties = 0;
  bool found = false, fits = true;
  for (; asked != nullptr && asked[words] != 0; words += 2) {
    if (words + 5 > sizeof list / sizeof *list) {
      fits = false;
      break;
    }
    list[words] = asked[words];
    list[words + 1] = asked[words + 1];
    if (asked[words] == CL_QUEUE_PROPERTIES) {
      properties = asked[words + 1];
      list[words + 1] |= CL_QUEUE_PROFILING_ENABLE;
      found = true;
    }
  }
  bool forced = wants_profiling() && fits && (properties & CL_QUEUE_ON_DEVICE) == 0;
  if (fits && !found) {
    list[words++] = CL_QUEUE_PROPERTIES;
    list[words++] = CL_QUEUE_PROFILING_ENABLE;
  }
  if (fits) list[words] = 0;
  cl_command_queue queue = nullptr;
  {
    const uint64_t bits = enabled_bits();
    const auto call = [&](const cl_queue_properties* with) {
      const Inner inner;
      return forward(context, device, with, code);
    };
    ApiSpan span(bits);
    queue = call(forced ? list : asked);
    if (queue == nullptr && forced && (properties & CL_QUEUE_PROFILING_ENABLE) == 0) {
      forced = false;
      queue = call(asked);
    }
    span.arguments(function, context, device, asked, code);
    span.end(function, *code);
  }
  if (queue != nullptr && (properties & CL_QUEUE_ON_DEVICE) == 0)
    queue_created(queue, context, device, properties, forced, asked);
  return queue;
}

void install_queue_hooks(cl_icd_dispatch& hooks) {
  start_queues();
  hooks.clCreateCommandQueue = create_queue;
  hooks.clCreateCommandQueueWithProperties = create_queue_with_properties;
  hooks.clSetCommandQueueProperty = set_queue_property;
  hooks.clRetainCommandQueue = retain_queue;
  hooks.clReleaseCommandQueue = release_queue;
  hooks.clReleaseContext = release_context;
  hooks.clGetCommandQueueInfo = get_queue_info;
  hooks.clGetEventProfilingInfo = get_profiling;
  hooks.clGetEventInfo = get_event_info;
  hooks.clSetEventCallback = set_event_callback;
  hooks.clGetContextInfo = ReferenceCount<&D::clGetContextInfo, CL_CONTEXT_REFERENCE_COUNT>::call;
  hooks.clGetKernelInfo = ReferenceCount<&D::clGetKernelInfo, CL_KERNEL_REFERENCE_COUNT>::call;
  hooks.clGetMemObjectInfo = ReferenceCount<&D::clGetMemObjectInfo, CL_MEM_REFERENCE_COUNT>::call;
  hooks.clFinish = finish_queue;
  hooks.clWaitForEvents = wait_for_events;
}

}  // namespace tacho::capture::opencl
