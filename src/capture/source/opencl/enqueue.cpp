// Hooks of the functions that put commands into a queue: kernels, copies, fills, maps, migrations, markers.
#include "capture/source/opencl/enqueue.h"

#include <dlfcn.h>
#include <stdio.h>

#include "capture/kernel_filter.h"
#include "capture/source/opencl/queues.h"

namespace tacho::capture::opencl {
namespace {

using D = cl_icd_dispatch;
using event::CopyDirection, event::CopyKind, event::MemoryKind;

// Descriptions of commands

// Each fill_command() describes the command of one function from its arguments, after the call has succeeded.

void copy(ClCommand& command, uint64_t bytes, CopyDirection direction, CopyKind kind, MemoryKind source,
          MemoryKind target, bool blocking) {
  command.kind = CommandKind::kCopy;
  command.value = static_cast<uint32_t>(direction) | static_cast<uint32_t>(kind) << 8 |
                  static_cast<uint32_t>(source) << 16 | static_cast<uint32_t>(target) << 24;
  command.flags = blocking ? 0 : event::kCopyAsynchronous;
  command.data.bytes = bytes;
  command.data.pattern = 0;
}

MemoryKind kind_of(cl_mem handle) {
  const ClMemory* const memory = memory_of(handle);
  return memory != nullptr ? memory->kind : MemoryKind::kUnknown;
}
uint64_t element_of(cl_mem image) {
  const ClMemory* const memory = memory_of(image);
  return memory != nullptr ? memory->element_bytes : 0;
}
uint64_t volume(const size_t* region) {
  return static_cast<uint64_t>(region[0]) * region[1] * region[2];
}

bool is_host(MemoryKind kind) {
  return kind == MemoryKind::kPageable || kind == MemoryKind::kHost;
}

// Copies between pointers: memory that is not known as shared belongs to the host.
void pointer_copy(ClCommand& command, const void* target, const void* source, uint64_t bytes, bool blocking) {
  const MemoryKind from = shared_at(source).kind, to = shared_at(target).kind;
  const MemoryKind from_kind = from == MemoryKind::kUnknown ? MemoryKind::kPageable : from;
  const MemoryKind to_kind = to == MemoryKind::kUnknown ? MemoryKind::kPageable : to;
  const CopyDirection direction =
      is_host(from_kind) ? (is_host(to_kind) ? CopyDirection::kHostToHost : CopyDirection::kHostToDevice)
                         : (is_host(to_kind) ? CopyDirection::kDeviceToHost : CopyDirection::kDeviceToDevice);
  copy(command, bytes, direction, CopyKind::kSvm, from_kind, to_kind, blocking);
}

void fill(ClCommand& command, uint64_t bytes, const void* pattern, size_t pattern_bytes, MemoryKind kind) {
  command.kind = CommandKind::kFill;
  command.value = static_cast<uint32_t>(kind);
  command.flags = event::kCopyAsynchronous;
  command.data.bytes = bytes;
  command.data.pattern = 0;
  command.pattern_bytes = static_cast<uint32_t>(pattern_bytes);
  if (pattern != nullptr) memcpy(&command.data.pattern, pattern, pattern_bytes < 8 ? pattern_bytes : 8);
}

// A tag type for each function, so that overloads choose the description.
template <auto Member>
struct Of {};

void describe(Of<&D::clEnqueueReadBuffer>, ClCommand& c, cl_command_queue, cl_mem buffer, cl_bool blocking, size_t,
              size_t bytes, void*, cl_uint, const cl_event*, cl_event*) {
  copy(c, bytes, CopyDirection::kDeviceToHost, CopyKind::kPlain, kind_of(buffer), MemoryKind::kPageable, blocking);
}
void describe(Of<&D::clEnqueueWriteBuffer>, ClCommand& c, cl_command_queue, cl_mem buffer, cl_bool blocking, size_t,
              size_t bytes, const void*, cl_uint, const cl_event*, cl_event*) {
  copy(c, bytes, CopyDirection::kHostToDevice, CopyKind::kPlain, MemoryKind::kPageable, kind_of(buffer), blocking);
}
void describe(Of<&D::clEnqueueReadBufferRect>, ClCommand& c, cl_command_queue, cl_mem buffer, cl_bool blocking,
              const size_t*, const size_t*, const size_t* region, size_t, size_t, size_t, size_t, void*, cl_uint,
              const cl_event*, cl_event*) {
  copy(c, volume(region), CopyDirection::kDeviceToHost, CopyKind::kRectangle, kind_of(buffer), MemoryKind::kPageable,
       blocking);
}
void describe(Of<&D::clEnqueueWriteBufferRect>, ClCommand& c, cl_command_queue, cl_mem buffer, cl_bool blocking,
              const size_t*, const size_t*, const size_t* region, size_t, size_t, size_t, size_t, const void*, cl_uint,
              const cl_event*, cl_event*) {
  copy(c, volume(region), CopyDirection::kHostToDevice, CopyKind::kRectangle, MemoryKind::kPageable, kind_of(buffer),
       blocking);
}
void describe(Of<&D::clEnqueueCopyBuffer>, ClCommand& c, cl_command_queue, cl_mem source, cl_mem target, size_t, size_t,
              size_t bytes, cl_uint, const cl_event*, cl_event*) {
  copy(c, bytes, CopyDirection::kDeviceToDevice, CopyKind::kPlain, kind_of(source), kind_of(target), false);
}
void describe(Of<&D::clEnqueueCopyBufferRect>, ClCommand& c, cl_command_queue, cl_mem source, cl_mem target,
              const size_t*, const size_t*, const size_t* region, size_t, size_t, size_t, size_t, cl_uint,
              const cl_event*, cl_event*) {
  copy(c, volume(region), CopyDirection::kDeviceToDevice, CopyKind::kRectangle, kind_of(source), kind_of(target),
       false);
}
void describe(Of<&D::clEnqueueReadImage>, ClCommand& c, cl_command_queue, cl_mem image, cl_bool blocking, const size_t*,
              const size_t* region, size_t, size_t, void*, cl_uint, const cl_event*, cl_event*) {
  copy(c, volume(region) * element_of(image), CopyDirection::kDeviceToHost, CopyKind::kImage, kind_of(image),
       MemoryKind::kPageable, blocking);
}
void describe(Of<&D::clEnqueueWriteImage>, ClCommand& c, cl_command_queue, cl_mem image, cl_bool blocking,
              const size_t*, const size_t* region, size_t, size_t, const void*, cl_uint, const cl_event*, cl_event*) {
  copy(c, volume(region) * element_of(image), CopyDirection::kHostToDevice, CopyKind::kImage, MemoryKind::kPageable,
       kind_of(image), blocking);
}
void describe(Of<&D::clEnqueueCopyImage>, ClCommand& c, cl_command_queue, cl_mem source, cl_mem target, const size_t*,
              const size_t*, const size_t* region, cl_uint, const cl_event*, cl_event*) {
  copy(c, volume(region) * element_of(source), CopyDirection::kDeviceToDevice, CopyKind::kImage, kind_of(source),
       kind_of(target), false);
}
void describe(Of<&D::clEnqueueCopyImageToBuffer>, ClCommand& c, cl_command_queue, cl_mem source, cl_mem target,
              const size_t*, const size_t* region, size_t, cl_uint, const cl_event*, cl_event*) {
  copy(c, volume(region) * element_of(source), CopyDirection::kDeviceToDevice, CopyKind::kImageToBuffer,
       kind_of(source), kind_of(target), false);
}
void describe(Of<&D::clEnqueueCopyBufferToImage>, ClCommand& c, cl_command_queue, cl_mem source, cl_mem target, size_t,
              const size_t*, const size_t* region, cl_uint, const cl_event*, cl_event*) {
  copy(c, volume(region) * element_of(target), CopyDirection::kDeviceToDevice, CopyKind::kBufferToImage,
       kind_of(source), kind_of(target), false);
}
void describe(Of<&D::clEnqueueMapBuffer>, ClCommand& c, cl_command_queue, cl_mem buffer, cl_bool blocking,
              cl_map_flags flags, size_t, size_t bytes, cl_uint, const cl_event*, cl_event*, cl_int*) {
  copy(c, (flags & CL_MAP_WRITE_INVALIDATE_REGION) != 0 ? 0 : bytes, CopyDirection::kDeviceToHost, CopyKind::kMap,
       kind_of(buffer), MemoryKind::kHost, blocking);
}
void describe(Of<&D::clEnqueueMapImage>, ClCommand& c, cl_command_queue, cl_mem image, cl_bool blocking,
              cl_map_flags flags, const size_t*, const size_t* region, size_t*, size_t*, cl_uint, const cl_event*,
              cl_event*, cl_int*) {
  copy(c, (flags & CL_MAP_WRITE_INVALIDATE_REGION) != 0 ? 0 : volume(region) * element_of(image),
       CopyDirection::kDeviceToHost, CopyKind::kMap, kind_of(image), MemoryKind::kHost, blocking);
}
void describe(Of<&D::clEnqueueMigrateMemObjects>, ClCommand& c, cl_command_queue, cl_uint count, const cl_mem* objects,
              cl_mem_migration_flags flags, cl_uint, const cl_event*, cl_event*) {
  uint64_t bytes = 0;
  MemoryKind kind = MemoryKind::kUnknown;
  for (cl_uint i = 0; i < count; ++i)
    if (const ClMemory* const memory = memory_of(objects[i])) {
      bytes += memory->bytes;
      kind = memory->kind;
    }
  if ((flags & CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED) != 0) bytes = 0;  // nothing is brought along
  if ((flags & CL_MIGRATE_MEM_OBJECT_HOST) != 0)
    copy(c, bytes, CopyDirection::kDeviceToHost, CopyKind::kMigrate, kind, MemoryKind::kHost, false);
  else
    copy(c, bytes, CopyDirection::kHostToDevice, CopyKind::kMigrate, MemoryKind::kUnknown, kind, false);
}
void describe(Of<&D::clEnqueueSVMMemcpy>, ClCommand& c, cl_command_queue, cl_bool blocking, void* target,
              const void* source, size_t bytes, cl_uint, const cl_event*, cl_event*) {
  pointer_copy(c, target, source, bytes, blocking);
}
void describe(Of<&D::clEnqueueSVMMap>, ClCommand& c, cl_command_queue, cl_bool blocking, cl_map_flags flags, void*,
              size_t bytes, cl_uint, const cl_event*, cl_event*) {
  copy(c, (flags & CL_MAP_WRITE_INVALIDATE_REGION) != 0 ? 0 : bytes, CopyDirection::kDeviceToHost, CopyKind::kMap,
       MemoryKind::kSvm, MemoryKind::kHost, blocking);
}
void describe(Of<&D::clEnqueueSVMUnmap>, ClCommand& c, cl_command_queue, void* at, cl_uint, const cl_event*,
              cl_event*) {
  copy(c, shared_at(at).bytes, CopyDirection::kHostToDevice, CopyKind::kUnmap, MemoryKind::kHost, MemoryKind::kSvm,
       false);
}
void describe(Of<&D::clEnqueueSVMMigrateMem>, ClCommand& c, cl_command_queue, cl_uint count, const void** at,
              const size_t* sizes, cl_mem_migration_flags flags, cl_uint, const cl_event*, cl_event*) {
  uint64_t bytes = 0;
  for (cl_uint i = 0; i < count; ++i) bytes += sizes != nullptr && sizes[i] != 0 ? sizes[i] : shared_at(at[i]).bytes;
  if ((flags & CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED) != 0) bytes = 0;
  const bool to_host = (flags & CL_MIGRATE_MEM_OBJECT_HOST) != 0;
  copy(c, bytes, to_host ? CopyDirection::kDeviceToHost : CopyDirection::kHostToDevice, CopyKind::kMigrate,
       MemoryKind::kSvm, MemoryKind::kSvm, false);
}
void describe(Of<&D::clEnqueueSVMMemFill>, ClCommand& c, cl_command_queue, void*, const void* pattern,
              size_t pattern_bytes, size_t bytes, cl_uint, const cl_event*, cl_event*) {
  fill(c, bytes, pattern, pattern_bytes, MemoryKind::kSvm);
}
void describe(Of<&D::clEnqueueFillBuffer>, ClCommand& c, cl_command_queue, cl_mem buffer, const void* pattern,
              size_t pattern_bytes, size_t, size_t bytes, cl_uint, const cl_event*, cl_event*) {
  fill(c, bytes, pattern, pattern_bytes, kind_of(buffer));
}
void describe(Of<&D::clEnqueueFillImage>, ClCommand& c, cl_command_queue, cl_mem image, const void* color,
              const size_t*, const size_t* region, cl_uint, const cl_event*, cl_event*) {
  fill(c, volume(region) * element_of(image), color, 16, kind_of(image));
}
void sync(ClCommand& c, event::SyncKind kind) {
  c.kind = CommandKind::kSync;
  c.value = static_cast<uint32_t>(kind);
}
void describe(Of<&D::clEnqueueMarker>, ClCommand& c, cl_command_queue, cl_event*) {
  sync(c, event::SyncKind::kMarker);
}
void describe(Of<&D::clEnqueueMarkerWithWaitList>, ClCommand& c, cl_command_queue, cl_uint, const cl_event*,
              cl_event*) {
  sync(c, event::SyncKind::kMarker);
}
void describe(Of<&D::clEnqueueBarrierWithWaitList>, ClCommand& c, cl_command_queue, cl_uint, const cl_event*,
              cl_event*) {
  sync(c, event::SyncKind::kBarrier);
}

// The hook

template <auto Member>
struct Enqueue : EnqueueCall<FunctionOf<Member>> {
  template <typename R, typename... A>
  static R run(uint64_t wanted, A... args) {
    return EnqueueCall<R (*)(A...)>::call(
        SlotOf<Member>::kNumber, wanted,
        [](auto... inner) { return NextCall<Member, FunctionOf<Member>>::call(inner...); },
        [](ClCommand& command, ClQueue&, auto... inner) {
          describe(Of<Member>{}, command, inner...);
          return true;
        },
        args...);
  }
};
template <auto Member, uint64_t Wanted, typename F = FunctionOf<Member>>
struct Hook;
template <auto Member, uint64_t Wanted, typename R, typename... A>
struct Hook<Member, Wanted, R (*)(A...)> {
  static R CL_API_CALL call(A... args) { return Enqueue<Member>::template run<R, A...>(Wanted, args...); }
};

// Maps: as any command, and the mapping is kept for the unmapping, recorded or not.
void* CL_API_CALL map_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset,
                             size_t bytes, cl_uint waits, const cl_event* wait_list, cl_event* event, cl_int* code) {
  void* const at = Enqueue<&D::clEnqueueMapBuffer>::run<void*>(bit::kCopy, queue, buffer, blocking, flags, offset,
                                                               bytes, waits, wait_list, event, code);
  if (at != nullptr && !only_forward())
    if (ClMemory* const memory = memory_of(buffer))
      mapped(*memory, at, bytes, (flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)) != 0);
  return at;
}

void* CL_API_CALL map_image(cl_command_queue queue, cl_mem image, cl_bool blocking, cl_map_flags flags,
                            const size_t* origin, const size_t* region, size_t* row_pitch, size_t* slice_pitch,
                            cl_uint waits, const cl_event* wait_list, cl_event* event, cl_int* code) {
  void* const at = Enqueue<&D::clEnqueueMapImage>::run<void*>(bit::kCopy, queue, image, blocking, flags, origin, region,
                                                              row_pitch, slice_pitch, waits, wait_list, event, code);
  if (at != nullptr && !only_forward())
    if (ClMemory* const memory = memory_of(image))
      mapped(*memory, at, volume(region) * memory->element_bytes,
             (flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)) != 0);
  return at;
}

cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem object, void* at, cl_uint waits, const cl_event* wait_list,
                         cl_event* event) {
  if (only_forward()) return next<&D::clEnqueueUnmapMemObject>(queue, object, at, waits, wait_list, event);
  ClMemory* const memory = memory_of(object);
  const HostMapping was = memory != nullptr ? unmapped(*memory, at) : HostMapping{};
  return EnqueueCall<FunctionOf<&D::clEnqueueUnmapMemObject>>::call(
      SlotOf<&D::clEnqueueUnmapMemObject>::kNumber, bit::kCopy,
      [](auto... inner) { return next<&D::clEnqueueUnmapMemObject>(inner...); },
      [&](ClCommand& command, ClQueue&, auto...) {
        copy(command, was.written ? was.bytes : 0, CopyDirection::kHostToDevice, CopyKind::kUnmap, MemoryKind::kHost,
             memory != nullptr ? memory->kind : MemoryKind::kUnknown, false);
        return true;
      },
      queue, object, at, waits, wait_list, event);
}

cl_int CL_API_CALL svm_free_enqueued(cl_command_queue queue, cl_uint count, void** pointers,
                                     void(CL_CALLBACK* free_function)(cl_command_queue, cl_uint, void**, void*),
                                     void* data, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  CallTimes times;
  const cl_int result =
      traced<&D::clEnqueueSVMFree>(times, queue, count, pointers, free_function, data, waits, wait_list, event);
  // If the program passes a function of its own, that one frees, through clSVMFree. Otherwise the runtime frees at some
  // time after this call, and the row has the time of the call.
  if (result != CL_SUCCESS || free_function != nullptr || only_forward()) return result;
  for (cl_uint i = 0; i < count; ++i) {
    SharedMemory was{};
    if (shared_freed(pointers[i], &was))
      write_allocation(times, event::AllocationOperation::kFree, was.kind, was.device, was.bytes,
                       reinterpret_cast<uint64_t>(pointers[i]), tape::intern("svm"));
  }
  return result;
}

// Kernels

bool narrow_shape(cl_uint dimensions, const size_t* global, const size_t* local) {
  size_t all = 0;
  for (cl_uint i = 0; i < dimensions; ++i) all |= global[i] | (local != nullptr ? local[i] : 0);
  return all <= UINT32_MAX;
}

cl_int CL_API_CALL enqueue_kernel(cl_command_queue handle, cl_kernel kernel_handle, cl_uint dimensions,
                                  const size_t* offset, const size_t* global, const size_t* local, cl_uint waits,
                                  const cl_event* wait_list, cl_event* event) {
  using Call = EnqueueCall<FunctionOf<&D::clEnqueueNDRangeKernel>>;
  return Call::call(
      SlotOf<&D::clEnqueueNDRangeKernel>::kNumber, bit::kDispatch,
      [](auto... inner) { return next<&D::clEnqueueNDRangeKernel>(inner...); },
      [&](ClCommand& command, ClQueue& queue, auto...) {
        KernelObject* const kernel = kernel_of(kernel_handle);
        if (kernel == nullptr) return false;
        if (!kernel->included) {
          leave_out(*kernel);
          return false;
        }
        command.value = kernel_number(*kernel, *queue.device, event::DispatchKind::kKernel);
        if (wants_arguments()) command.arguments = kept_arguments_of(*kernel);
        const bool moved =
            offset != nullptr && (offset[0] | (dimensions > 1 ? offset[1] : 0) | (dimensions > 2 ? offset[2] : 0)) != 0;
        if (!moved && global != nullptr && narrow_shape(dimensions, global, local)) {
          command.kind = CommandKind::kDispatch;
          for (cl_uint i = 0; i < 3; ++i) {
            command.shape.grid[i] = i < dimensions ? static_cast<uint32_t>(global[i]) : 1;
            command.shape.group[i] = local == nullptr ? 0 : i < dimensions ? static_cast<uint32_t>(local[i]) : 1;
          }
          return true;
        }
        command.kind = CommandKind::kDispatchWide;
        command.wide = take_wide();
        if (command.wide == nullptr) return false;
        for (cl_uint i = 0; i < 3; ++i) {
          command.wide->grid[i] = global != nullptr ? (i < dimensions ? global[i] : 1) : 0;
          command.wide->group[i] = local == nullptr ? 0 : i < dimensions ? local[i] : 1;
          command.wide->offset[i] = offset != nullptr && i < dimensions ? offset[i] : 0;
        }
        return true;
      },
      handle, kernel_handle, dimensions, offset, global, local, waits, wait_list, event);
}

cl_int CL_API_CALL enqueue_task(cl_command_queue handle, cl_kernel kernel_handle, cl_uint waits,
                                const cl_event* wait_list, cl_event* event) {
  using Call = EnqueueCall<FunctionOf<&D::clEnqueueTask>>;
  return Call::call(
      SlotOf<&D::clEnqueueTask>::kNumber, bit::kDispatch,
      [](auto... inner) { return next<&D::clEnqueueTask>(inner...); },
      [&](ClCommand& command, ClQueue& queue, auto...) {
        KernelObject* const kernel = kernel_of(kernel_handle);
        if (kernel == nullptr) return false;
        if (!kernel->included) {
          leave_out(*kernel);
          return false;
        }
        command.value = kernel_number(*kernel, *queue.device, event::DispatchKind::kTask);
        if (wants_arguments()) command.arguments = kept_arguments_of(*kernel);
        command.kind = CommandKind::kDispatch;
        for (uint32_t i = 0; i < 3; ++i) command.shape.grid[i] = command.shape.group[i] = 1;
        return true;
      },
      handle, kernel_handle, waits, wait_list, event);
}

cl_int CL_API_CALL enqueue_native(cl_command_queue handle, void(CL_CALLBACK* function)(void*), void* arguments,
                                  size_t arguments_size, cl_uint objects, const cl_mem* object_list,
                                  const void** places, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  using Call = EnqueueCall<FunctionOf<&D::clEnqueueNativeKernel>>;
  return Call::call(
      SlotOf<&D::clEnqueueNativeKernel>::kNumber, bit::kDispatch,
      [](auto... inner) { return next<&D::clEnqueueNativeKernel>(inner...); },
      [&](ClCommand& command, ClQueue&, auto...) {
        // Named by the symbol, where the dynamic one is known, else by its place in its module.
        char name[512];
        Dl_info at{};
        int size;
        if (dladdr(reinterpret_cast<void*>(function), &at) != 0 && at.dli_sname != nullptr &&
            at.dli_saddr == reinterpret_cast<void*>(function)) {
          size = snprintf(name, sizeof name, "%s", at.dli_sname);
        } else {
          const char* const slash = at.dli_fname != nullptr ? strrchr(at.dli_fname, '/') : nullptr;
          size = snprintf(name, sizeof name, "native kernel %s+0x%zx",
                          slash != nullptr          ? slash + 1
                          : at.dli_fname != nullptr ? at.dli_fname
                                                    : "",
                          reinterpret_cast<size_t>(function) - reinterpret_cast<size_t>(at.dli_fbase));
        }
        const std::string_view text(
            name, static_cast<size_t>(size) < sizeof name ? static_cast<size_t>(size) : sizeof name - 1);
        if (!kernel_included(text)) {
          tell_left_out(text);
          count_filtered();
          return false;
        }
        command.value = pseudo_kernel(text, event::DispatchKind::kNativeKernel);
        command.kind = CommandKind::kDispatch;
        for (uint32_t i = 0; i < 3; ++i) command.shape.grid[i] = command.shape.group[i] = 1;
        return true;
      },
      handle, function, arguments, arguments_size, objects, object_list, places, waits, wait_list, event);
}

}  // namespace

void install_enqueue(cl_icd_dispatch& hooks) {
  hooks.clEnqueueNDRangeKernel = enqueue_kernel;
  hooks.clEnqueueTask = enqueue_task;
  hooks.clEnqueueNativeKernel = enqueue_native;
  hooks.clEnqueueReadBuffer = Hook<&D::clEnqueueReadBuffer, bit::kCopy>::call;
  hooks.clEnqueueWriteBuffer = Hook<&D::clEnqueueWriteBuffer, bit::kCopy>::call;
  hooks.clEnqueueReadBufferRect = Hook<&D::clEnqueueReadBufferRect, bit::kCopy>::call;
  hooks.clEnqueueWriteBufferRect = Hook<&D::clEnqueueWriteBufferRect, bit::kCopy>::call;
  hooks.clEnqueueCopyBuffer = Hook<&D::clEnqueueCopyBuffer, bit::kCopy>::call;
  hooks.clEnqueueCopyBufferRect = Hook<&D::clEnqueueCopyBufferRect, bit::kCopy>::call;
  hooks.clEnqueueReadImage = Hook<&D::clEnqueueReadImage, bit::kCopy>::call;
  hooks.clEnqueueWriteImage = Hook<&D::clEnqueueWriteImage, bit::kCopy>::call;
  hooks.clEnqueueCopyImage = Hook<&D::clEnqueueCopyImage, bit::kCopy>::call;
  hooks.clEnqueueCopyImageToBuffer = Hook<&D::clEnqueueCopyImageToBuffer, bit::kCopy>::call;
  hooks.clEnqueueCopyBufferToImage = Hook<&D::clEnqueueCopyBufferToImage, bit::kCopy>::call;
  hooks.clEnqueueFillBuffer = Hook<&D::clEnqueueFillBuffer, bit::kCopy>::call;
  hooks.clEnqueueFillImage = Hook<&D::clEnqueueFillImage, bit::kCopy>::call;
  hooks.clEnqueueMigrateMemObjects = Hook<&D::clEnqueueMigrateMemObjects, bit::kCopy>::call;
  hooks.clEnqueueMapBuffer = map_buffer;
  hooks.clEnqueueMapImage = map_image;
  hooks.clEnqueueUnmapMemObject = unmap;
  hooks.clEnqueueSVMMemcpy = Hook<&D::clEnqueueSVMMemcpy, bit::kCopy>::call;
  hooks.clEnqueueSVMMemFill = Hook<&D::clEnqueueSVMMemFill, bit::kCopy>::call;
  hooks.clEnqueueSVMMap = Hook<&D::clEnqueueSVMMap, bit::kCopy>::call;
  hooks.clEnqueueSVMUnmap = Hook<&D::clEnqueueSVMUnmap, bit::kCopy>::call;
  hooks.clEnqueueSVMMigrateMem = Hook<&D::clEnqueueSVMMigrateMem, bit::kCopy>::call;
  hooks.clEnqueueSVMFree = svm_free_enqueued;
  hooks.clEnqueueMarker = Hook<&D::clEnqueueMarker, bit::kSync>::call;
  hooks.clEnqueueMarkerWithWaitList = Hook<&D::clEnqueueMarkerWithWaitList, bit::kSync>::call;
  hooks.clEnqueueBarrierWithWaitList = Hook<&D::clEnqueueBarrierWithWaitList, bit::kSync>::call;
}

}  // namespace tacho::capture::opencl
