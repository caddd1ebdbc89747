// cl_khr_command_buffer, cl_intel_unified_shared_memory and cl_khr_create_command_queue (extensions.h).
//
// The functions are looked up by the program through clGetExtensionFunctionAddress[ForPlatform], which hands out our
// wrappers. One runtime's function stands behind a wrapper; when a second runtime of the process answers with another
// function, that one is handed out as it is and its calls are not recorded.
#include "capture/source/opencl/extensions.h"

#include <stdio.h>

#include "capture/source/opencl/enqueue.h"
#include "capture/source/opencl/queue_hooks.h"

namespace tacho::capture::opencl {
namespace {

using D = cl_icd_dispatch;
using event::CopyDirection, event::CopyKind, event::MemoryKind, event::AllocationOperation;

// Wrappers

template <Function Number, typename F>
struct Extension {
  static constexpr uint16_t kNumber = static_cast<uint16_t>(Number);
  static inline constinit std::atomic<F> real{nullptr};
  template <typename... A>
  static auto forward(A... args) {
    return real.load(std::memory_order_relaxed)(args...);
  }
  /// As traced<>() of core.h.
  template <typename... A>
  static auto traced(CallTimes& times, A... args) {
    const uint64_t bits = enabled_bits();
    if (bits == 0 || only_forward()) return forward(args...);
    cl_int code = CL_SUCCESS;
    ApiSpan span(bits);
    const Inner inner;
    auto result = forward(args...);
    if constexpr (std::is_same_v<decltype(result), cl_int>)
      code = result;
    else if constexpr (kLastIsErrorCode<A...>)
      code = *last_of(args...);
    span.arguments(kNumber, args...);
    span.end(kNumber, code);
    times = span.times();
    return result;
  }
};

template <Function Number, typename F>
struct PlainExtension;
template <Function Number, typename R, typename... A>
struct PlainExtension<Number, R (*)(A...)> : Extension<Number, R (*)(A...)> {
  static R CL_API_CALL call(A... args) {
    if constexpr (!std::is_same_v<R, cl_int> && kLastIsErrorCode<A...>) {
      cl_int code = CL_SUCCESS;
      if (last_of(args...) == nullptr) last_of(args...) = &code;
      CallTimes times;
      return Extension<Number, R (*)(A...)>::traced(times, args...);
    } else {
      CallTimes times;
      return Extension<Number, R (*)(A...)>::traced(times, args...);
    }
  }
};

// Cl_khr_command_buffer

struct CommandBuffer {
  std::atomic<uint32_t> references;
  uint32_t number;  // of its pseudo kernel; 0 = none yet
  uint32_t kernels;
  uint32_t length;
  cl_command_queue queue;
  char names[480];  // of the first kernels in it
};
constinit HandleMap g_buffers;
constinit Slab<CommandBuffer> g_buffer_slab;

CommandBuffer* buffer_of(cl_command_buffer_khr handle) {
  return static_cast<CommandBuffer*>(g_buffers.find(handle));
}

using CreateBuffer = Extension<Function::clCreateCommandBufferKHR, clCreateCommandBufferKHR_fn>;
cl_command_buffer_khr CL_API_CALL create_buffer(cl_uint count, const cl_command_queue* queues,
                                                const cl_command_buffer_properties_khr* properties, cl_int* code) {
  cl_int own = CL_SUCCESS;
  if (code == nullptr) code = &own;
  CallTimes times;
  const cl_command_buffer_khr handle = CreateBuffer::traced(times, count, queues, properties, code);
  if (handle == nullptr || only_forward()) return handle;
  const Guard guard(g_wiped->objects);
  CommandBuffer* const buffer = g_buffer_slab.take();
  if (buffer == nullptr) return handle;
  buffer->references.store(1, std::memory_order_relaxed);
  buffer->queue = count != 0 ? queues[0] : nullptr;
  g_buffers.set(handle, buffer);
  return handle;
}

using RetainBuffer = Extension<Function::clRetainCommandBufferKHR, clRetainCommandBufferKHR_fn>;
cl_int CL_API_CALL retain_buffer(cl_command_buffer_khr handle) {
  CallTimes times;
  const cl_int result = RetainBuffer::traced(times, handle);
  if (result == CL_SUCCESS && !only_forward())
    if (CommandBuffer* const buffer = buffer_of(handle)) buffer->references.fetch_add(1, std::memory_order_relaxed);
  return result;
}

using ReleaseBuffer = Extension<Function::clReleaseCommandBufferKHR, clReleaseCommandBufferKHR_fn>;
cl_int CL_API_CALL release_buffer(cl_command_buffer_khr handle) {
  if (!only_forward()) {
    const Guard guard(g_wiped->objects);
    CommandBuffer* const buffer = buffer_of(handle);
    if (buffer != nullptr && buffer->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      g_buffers.erase(handle);
      g_buffer_slab.give(buffer);
    }
  }
  CallTimes times;
  return ReleaseBuffer::traced(times, handle);
}

using CommandKernel = Extension<Function::clCommandNDRangeKernelKHR, clCommandNDRangeKernelKHR_fn>;
cl_int CL_API_CALL command_kernel(cl_command_buffer_khr handle, cl_command_queue queue,
                                  const cl_ndrange_kernel_command_properties_khr* properties, cl_kernel kernel,
                                  cl_uint dimensions, const size_t* offset, const size_t* global, const size_t* local,
                                  cl_uint waits, const cl_sync_point_khr* wait_list, cl_sync_point_khr* point,
                                  cl_mutable_command_khr* command) {
  CallTimes times;
  const cl_int result = CommandKernel::traced(times, handle, queue, properties, kernel, dimensions, offset, global,
                                              local, waits, wait_list, point, command);
  if (result != CL_SUCCESS || only_forward()) return result;
  char name[256] = {};
  next<&D::clGetKernelInfo>(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name - 1, static_cast<void*>(name), nullptr);
  const Guard guard(g_wiped->objects);
  if (CommandBuffer* const buffer = buffer_of(handle)) {
    ++buffer->kernels;
    const size_t left = sizeof buffer->names - buffer->length;
    const int size = snprintf(buffer->names + buffer->length, left, "%s%s", buffer->length != 0 ? ", " : "", name);
    if (size > 0 && static_cast<size_t>(size) < left)
      buffer->length += static_cast<uint32_t>(size);
    else
      buffer->names[buffer->length] = '\0';
  }
  return result;
}

using EnqueueBuffer = Extension<Function::clEnqueueCommandBufferKHR, clEnqueueCommandBufferKHR_fn>;
cl_int CL_API_CALL enqueue_buffer(cl_uint count, cl_command_queue* queues, cl_command_buffer_khr handle, cl_uint waits,
                                  const cl_event* wait_list, cl_event* event) {
  return EnqueueCall<clEnqueueCommandBufferKHR_fn>::call(
      EnqueueBuffer::kNumber, bit::kDispatch, [](auto... args) { return EnqueueBuffer::forward(args...); },
      [&](ClCommand& command, ClQueue&, auto...) {
        CommandBuffer* const buffer = buffer_of(handle);
        if (buffer == nullptr) return false;
        if (buffer->number == 0) {
          char name[560];
          const int size = snprintf(name, sizeof name, "command buffer of %u: %s", buffer->kernels, buffer->names);
          buffer->number = pseudo_kernel({name, static_cast<size_t>(size)}, event::DispatchKind::kGraph);
        }
        command.value = buffer->number;
        command.kind = CommandKind::kDispatch;
        for (uint32_t i = 0; i < 3; ++i) command.shape.grid[i] = command.shape.group[i] = 1;
        return true;
      },
      count, queues, handle, waits, wait_list, event);
}

// Cl_intel_unified_shared_memory

void* allocated(void* at, const CallTimes& times, cl_context context, size_t bytes, MemoryKind kind,
                std::string_view name) {
  if (at == nullptr || only_forward()) return at;
  const uint32_t device = kind == MemoryKind::kHost ? 0 : device_number_of(context);
  shared_allocated(at, bytes, kind, device);
  write_allocation(times, AllocationOperation::kAllocate, kind, device, bytes, reinterpret_cast<uint64_t>(at),
                   tape::intern(name));
  return at;
}

using HostAllocate = Extension<Function::clHostMemAllocINTEL, clHostMemAllocINTEL_fn>;
void* CL_API_CALL host_allocate(cl_context context, const cl_mem_properties_intel* properties, size_t bytes,
                                cl_uint alignment, cl_int* code) {
  cl_int own = CL_SUCCESS;
  CallTimes times;
  void* const at = HostAllocate::traced(times, context, properties, bytes, alignment, code != nullptr ? code : &own);
  return allocated(at, times, context, bytes, MemoryKind::kPinned, "usm host");
}
using DeviceAllocate = Extension<Function::clDeviceMemAllocINTEL, clDeviceMemAllocINTEL_fn>;
void* CL_API_CALL device_allocate(cl_context context, cl_device_id device, const cl_mem_properties_intel* properties,
                                  size_t bytes, cl_uint alignment, cl_int* code) {
  cl_int own = CL_SUCCESS;
  CallTimes times;
  void* const at =
      DeviceAllocate::traced(times, context, device, properties, bytes, alignment, code != nullptr ? code : &own);
  return allocated(at, times, context, bytes, MemoryKind::kDevice, "usm device");
}
using SharedAllocate = Extension<Function::clSharedMemAllocINTEL, clSharedMemAllocINTEL_fn>;
void* CL_API_CALL shared_allocate(cl_context context, cl_device_id device, const cl_mem_properties_intel* properties,
                                  size_t bytes, cl_uint alignment, cl_int* code) {
  cl_int own = CL_SUCCESS;
  CallTimes times;
  void* const at =
      SharedAllocate::traced(times, context, device, properties, bytes, alignment, code != nullptr ? code : &own);
  return allocated(at, times, context, bytes, MemoryKind::kManaged, "usm shared");
}

template <Function Number>
cl_int CL_API_CALL free_shared(cl_context context, void* at) {
  using Free = Extension<Number, clMemFreeINTEL_fn>;
  SharedMemory was{};
  const bool known = !only_forward() && at != nullptr && shared_freed(at, &was);
  CallTimes times;
  const cl_int result = Free::traced(times, context, at);
  if (known)
    write_allocation(times, AllocationOperation::kFree, was.kind, was.device, was.bytes, reinterpret_cast<uint64_t>(at),
                     tape::intern("usm"));
  return result;
}

bool host_side(MemoryKind kind) {
  return kind == MemoryKind::kPageable || kind == MemoryKind::kPinned;
}

using UsmCopy = Extension<Function::clEnqueueMemcpyINTEL, clEnqueueMemcpyINTEL_fn>;
cl_int CL_API_CALL usm_copy(cl_command_queue queue, cl_bool blocking, void* target, const void* source, size_t bytes,
                            cl_uint waits, const cl_event* wait_list, cl_event* event) {
  return EnqueueCall<clEnqueueMemcpyINTEL_fn>::call(
      UsmCopy::kNumber, bit::kCopy, [](auto... args) { return UsmCopy::forward(args...); },
      [&](ClCommand& command, ClQueue&, auto...) {
        MemoryKind from = shared_at(source).kind, to = shared_at(target).kind;
        if (from == MemoryKind::kUnknown) from = MemoryKind::kPageable;
        if (to == MemoryKind::kUnknown) to = MemoryKind::kPageable;
        const CopyDirection direction =
            host_side(from) ? (host_side(to) ? CopyDirection::kHostToHost : CopyDirection::kHostToDevice)
                            : (host_side(to) ? CopyDirection::kDeviceToHost : CopyDirection::kDeviceToDevice);
        command.kind = CommandKind::kCopy;
        command.value = static_cast<uint32_t>(direction) | static_cast<uint32_t>(CopyKind::kPlain) << 8 |
                        static_cast<uint32_t>(from) << 16 | static_cast<uint32_t>(to) << 24;
        command.flags = blocking != CL_FALSE ? 0 : event::kCopyAsynchronous;
        command.data.bytes = bytes;
        return true;
      },
      queue, blocking, target, source, bytes, waits, wait_list, event);
}

using KernelPointer = Extension<Function::clSetKernelArgMemPointerINTEL, clSetKernelArgMemPointerINTEL_fn>;
cl_int CL_API_CALL set_kernel_pointer(cl_kernel kernel, cl_uint index, const void* pointer) {
  CallTimes times;
  const cl_int result = KernelPointer::traced(times, kernel, index, pointer);
  if (result == CL_SUCCESS && wants_arguments() && !only_forward())
    argument_set(kernel, index, sizeof pointer, pointer, true);
  return result;
}

using UsmFill = Extension<Function::clEnqueueMemFillINTEL, clEnqueueMemFillINTEL_fn>;
cl_int CL_API_CALL usm_fill(cl_command_queue queue, void* target, const void* pattern, size_t pattern_bytes,
                            size_t bytes, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  return EnqueueCall<clEnqueueMemFillINTEL_fn>::call(
      UsmFill::kNumber, bit::kCopy, [](auto... args) { return UsmFill::forward(args...); },
      [&](ClCommand& command, ClQueue&, auto...) {
        command.kind = CommandKind::kFill;
        command.value = static_cast<uint32_t>(shared_at(target).kind);
        command.flags = event::kCopyAsynchronous;
        command.data.bytes = bytes;
        command.data.pattern = 0;
        command.pattern_bytes = static_cast<uint32_t>(pattern_bytes);
        if (pattern != nullptr) memcpy(&command.data.pattern, pattern, pattern_bytes < 8 ? pattern_bytes : 8);
        return true;
      },
      queue, target, pattern, pattern_bytes, bytes, waits, wait_list, event);
}

using CreateQueueKhr = Extension<Function::clCreateCommandQueueWithPropertiesKHR, CreateQueue>;
cl_command_queue CL_API_CALL forward_create_queue(cl_context context, cl_device_id device,
                                                  const cl_queue_properties* asked, cl_int* code) {
  return CreateQueueKhr::forward(context, device, asked, code);
}
cl_command_queue CL_API_CALL create_queue_khr(cl_context context, cl_device_id device, const cl_queue_properties* asked,
                                              cl_int* code) {
  return create_queue_by(forward_create_queue, CreateQueueKhr::kNumber, context, device, asked, code);
}

// Look-up

// Takes `real` behind the wrapper if it has none yet.
template <typename E, typename F>
void* stand_behind(void* real, F wrapper) {
  auto expected = decltype(E::real.load()){nullptr};
  auto wanted = reinterpret_cast<decltype(expected)>(real);
  if (E::real.compare_exchange_strong(expected, wanted, std::memory_order_acq_rel) || expected == wanted)
    return reinterpret_cast<void*>(wrapper);
  return real;
}

template <Function Number, typename F>
void* plain(void* real) {
  return stand_behind<Extension<Number, F>>(real, &PlainExtension<Number, F>::call);
}

void* wrap(const char* name, void* real) {
  if (real == nullptr || name == nullptr) return real;
  const std::string_view asked(name);
#define TACHO_PLAIN(function) \
  if (asked == #function) return plain<Function::function, function##_fn>(real)
#define TACHO_OWN(function, extension, wrapper) \
  if (asked == #function) return stand_behind<extension>(real, &wrapper)
  TACHO_OWN(clCreateCommandBufferKHR, CreateBuffer, create_buffer);
  TACHO_OWN(clRetainCommandBufferKHR, RetainBuffer, retain_buffer);
  TACHO_OWN(clReleaseCommandBufferKHR, ReleaseBuffer, release_buffer);
  TACHO_OWN(clEnqueueCommandBufferKHR, EnqueueBuffer, enqueue_buffer);
  TACHO_OWN(clCommandNDRangeKernelKHR, CommandKernel, command_kernel);
  TACHO_PLAIN(clFinalizeCommandBufferKHR);
  TACHO_PLAIN(clCommandBarrierWithWaitListKHR);
  TACHO_PLAIN(clCommandCopyBufferKHR);
  TACHO_PLAIN(clCommandCopyBufferRectKHR);
  TACHO_PLAIN(clCommandCopyBufferToImageKHR);
  TACHO_PLAIN(clCommandCopyImageKHR);
  TACHO_PLAIN(clCommandCopyImageToBufferKHR);
  TACHO_PLAIN(clCommandFillBufferKHR);
  TACHO_PLAIN(clCommandFillImageKHR);
  TACHO_PLAIN(clGetCommandBufferInfoKHR);
  TACHO_OWN(clHostMemAllocINTEL, HostAllocate, host_allocate);
  TACHO_OWN(clDeviceMemAllocINTEL, DeviceAllocate, device_allocate);
  TACHO_OWN(clSharedMemAllocINTEL, SharedAllocate, shared_allocate);
  using Free = Extension<Function::clMemFreeINTEL, clMemFreeINTEL_fn>;
  using BlockingFree = Extension<Function::clMemBlockingFreeINTEL, clMemFreeINTEL_fn>;
  TACHO_OWN(clMemFreeINTEL, Free, free_shared<Function::clMemFreeINTEL>);
  TACHO_OWN(clMemBlockingFreeINTEL, BlockingFree, free_shared<Function::clMemBlockingFreeINTEL>);
  TACHO_PLAIN(clGetMemAllocInfoINTEL);
  TACHO_OWN(clSetKernelArgMemPointerINTEL, KernelPointer, set_kernel_pointer);
  TACHO_OWN(clEnqueueMemcpyINTEL, UsmCopy, usm_copy);
  TACHO_OWN(clEnqueueMemFillINTEL, UsmFill, usm_fill);
  TACHO_PLAIN(clEnqueueMemAdviseINTEL);
  TACHO_OWN(clCreateCommandQueueWithPropertiesKHR, CreateQueueKhr, create_queue_khr);
#undef TACHO_PLAIN
#undef TACHO_OWN
  return real;
}

void* CL_API_CALL extension_address(const char* name) {
  void* const real = traced<&D::clGetExtensionFunctionAddress>(name);
  return only_forward() ? real : wrap(name, real);
}

void* CL_API_CALL extension_address_for_platform(cl_platform_id platform, const char* name) {
  void* const real = traced<&D::clGetExtensionFunctionAddressForPlatform>(platform, name);
  return only_forward() ? real : wrap(name, real);
}

}  // namespace

cl_command_queue queue_of_command_buffer(cl_command_buffer_khr handle) {
  const CommandBuffer* const buffer = buffer_of(handle);
  return buffer != nullptr ? buffer->queue : nullptr;
}

void install_extensions(cl_icd_dispatch& hooks) {
  hooks.clGetExtensionFunctionAddress = extension_address;
  hooks.clGetExtensionFunctionAddressForPlatform = extension_address_for_platform;
}

}  // namespace tacho::capture::opencl
