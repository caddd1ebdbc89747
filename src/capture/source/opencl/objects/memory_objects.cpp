// Memory objects, mappings and shared allocations (memory_objects.h).
#include "capture/source/opencl/objects/memory_objects.h"

#include "capture/source/opencl/objects/devices.h"
#include "capture/source/sampler/sampler.h"

namespace tacho::capture::opencl {
namespace {

using D = cl_icd_dispatch;

constinit HandleMap g_memory;
constinit Slab<ClMemory> g_memory_slab;
constinit Slab<HostMapping> g_mapping_slab;
constinit std::atomic<uint32_t> g_buffer_name{0};  // string

}  // namespace

namespace {

event::MemoryKind kind_of(cl_mem_flags flags) {
  if ((flags & CL_MEM_ALLOC_HOST_PTR) != 0) return event::MemoryKind::kPinned;
  if ((flags & CL_MEM_USE_HOST_PTR) != 0) return event::MemoryKind::kPageable;
  return event::MemoryKind::kDevice;
}

std::string_view type_name(cl_mem_object_type type) {
  switch (type) {
    case CL_MEM_OBJECT_IMAGE2D:
      return "image2D";
    case CL_MEM_OBJECT_IMAGE3D:
      return "image3D";
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
      return "image2D array";
    case CL_MEM_OBJECT_IMAGE1D:
      return "image1D";
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
      return "image1D array";
    case CL_MEM_OBJECT_IMAGE1D_BUFFER:
      return "image1D buffer";
    case CL_MEM_OBJECT_PIPE:
      return "pipe";
    default:
      return "buffer";
  }
}

template <typename T>
void memory_value(cl_mem handle, cl_mem_info what, T& value) {
  next<&D::clGetMemObjectInfo>(handle, what, sizeof value, static_cast<void*>(&value), nullptr);
}

// Takes the object up. The runtime is asked for its size and so on, so that every way of creation is the same.
ClMemory* track(cl_mem handle, cl_mem parent_handle) {
  cl_mem_object_type type = CL_MEM_OBJECT_BUFFER;
  cl_mem_flags flags = 0;
  size_t bytes = 0, element = 0;
  cl_context context = nullptr;
  memory_value(handle, CL_MEM_TYPE, type);
  memory_value(handle, CL_MEM_FLAGS, flags);
  memory_value(handle, CL_MEM_SIZE, bytes);
  memory_value(handle, CL_MEM_CONTEXT, context);
  if (type != CL_MEM_OBJECT_BUFFER && type != CL_MEM_OBJECT_PIPE)
    next<&D::clGetImageInfo>(handle, CL_IMAGE_ELEMENT_SIZE, sizeof element, static_cast<void*>(&element), nullptr);
  uint32_t name = type == CL_MEM_OBJECT_BUFFER ? g_buffer_name.load(std::memory_order_relaxed) : 0;
  if (name == 0) name = tape::intern(type_name(type));
  if (type == CL_MEM_OBJECT_BUFFER) g_buffer_name.store(name, std::memory_order_relaxed);

  const Guard guard(g_wiped->objects);
  ClMemory* const memory = g_memory_slab.take();
  if (memory == nullptr) return nullptr;
  memory->references.store(1, std::memory_order_relaxed);
  memory->kind = kind_of(flags);
  memory->element_bytes = static_cast<uint32_t>(element);
  memory->bytes = bytes;
  memory->device = device_number_of(context);
  memory->name = name;
  memory->handle = handle;
  if (parent_handle != nullptr) memory->parent = static_cast<ClMemory*>(g_memory.find(parent_handle));
  if (memory->parent != nullptr) {
    memory->parent->references.fetch_add(1, std::memory_order_relaxed);
    memory->kind = memory->parent->kind;
  }
  g_memory.set(handle, memory);
  return memory;
}

}  // namespace

ClMemory* memory_of(cl_mem handle) {
  if (auto* const memory = static_cast<ClMemory*>(g_memory.find(handle))) return memory;
  ClMemory* const memory = handle != nullptr ? track(handle, nullptr) : nullptr;
  // Made before tacho attached: the program may have retained it since.
  cl_uint references = 0;
  if (memory != nullptr && tape::attached_late() &&
      next<&D::clGetMemObjectInfo>(handle, CL_MEM_REFERENCE_COUNT, sizeof references, static_cast<void*>(&references),
                                   nullptr) == CL_SUCCESS &&
      references > 1)
    memory->references.store(references, std::memory_order_relaxed);
  return memory;
}

void mapped(ClMemory& memory, const void* at, uint64_t bytes, bool written) {
  const Guard guard(g_wiped->objects);
  HostMapping* const mapping = g_mapping_slab.take();
  if (mapping == nullptr) return;
  *mapping = {memory.mappings, at, bytes, written};
  memory.mappings = mapping;
}

HostMapping unmapped(ClMemory& memory, const void* at) {
  const Guard guard(g_wiped->objects);
  for (HostMapping** link = &memory.mappings; *link != nullptr; link = &(*link)->next) {
    HostMapping* const mapping = *link;
    if (mapping->at != at) continue;
    const HostMapping result = *mapping;
    *link = mapping->next;
    g_mapping_slab.give(mapping);
    return result;
  }
  return {};
}

void write_allocation(const CallTimes& times, event::AllocationOperation operation, event::MemoryKind kind,
                      uint32_t device, uint64_t bytes, uint64_t address, uint32_t name) {
  if (times.end == 0 || (enabled_bits() & bit::kAllocation) == 0) return;
  if (tape::configuration().memory && operation == event::AllocationOperation::kAllocate)
    sampler::allocation_stack(times.correlation, times.start, true);
  else if (tape::configuration().memory)
    sampler::memory_stack();
  const uint32_t value = static_cast<uint32_t>(operation) | static_cast<uint32_t>(kind) << 8 | (device & 0xffff) << 16;
  if (auto* const record =
          tape::begin<event::AllocationRecord>(event::RecordKind::kAllocation, event::Table::kAllocation, value)) {
    record->correlation = times.correlation;
    record->start = times.start;
    record->end = times.end;
    record->bytes = bytes;
    record->address = address;
    record->name = name;
    record->reserved = 0;
    tape::commit();
  }
}

namespace {

// Sorted by begin, under g_wiped->objects. Grows in the kernel's pages; outgrown arrays are not freed.
constinit SharedMemory* g_shared = nullptr;
constinit uint32_t g_shared_count = 0, g_shared_capacity = 0;

uint32_t shared_position(uint64_t at) {  // first entry that begins after `at`
  uint32_t low = 0, high = g_shared_count;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (g_shared[middle].begin <= at)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace

void shared_allocated(const void* at, uint64_t bytes, event::MemoryKind kind, uint32_t device) {
  if (at == nullptr) return;
  const Guard guard(g_wiped->objects);
  if (g_shared_count == g_shared_capacity) {
    const uint32_t capacity = g_shared_capacity == 0 ? 256 : g_shared_capacity * 2;
    auto* const fresh = static_cast<SharedMemory*>(map_pages(capacity * sizeof(SharedMemory)));
    if (fresh == nullptr) return;
    if (g_shared != nullptr) memcpy(fresh, g_shared, g_shared_count * sizeof(SharedMemory));
    g_shared = fresh;
    g_shared_capacity = capacity;
  }
  const auto begin = reinterpret_cast<uint64_t>(at);
  const uint32_t place = shared_position(begin);
  memmove(g_shared + place + 1, g_shared + place, (g_shared_count - place) * sizeof(SharedMemory));
  g_shared[place] = {begin, bytes, kind, device};
  ++g_shared_count;
}

bool shared_freed(const void* at, SharedMemory* was) {
  const Guard guard(g_wiped->objects);
  const auto begin = reinterpret_cast<uint64_t>(at);
  const uint32_t place = shared_position(begin);
  if (place == 0 || g_shared[place - 1].begin != begin) return false;
  *was = g_shared[place - 1];
  memmove(g_shared + place - 1, g_shared + place, (g_shared_count - place) * sizeof(SharedMemory));
  --g_shared_count;
  return true;
}

SharedMemory shared_at(const void* at) {
  if (g_shared_count == 0) return {};
  const Guard guard(g_wiped->objects);
  const auto address = reinterpret_cast<uint64_t>(at);
  const uint32_t place = shared_position(address);
  if (place == 0 || address - g_shared[place - 1].begin >= g_shared[place - 1].bytes) return {};
  return g_shared[place - 1];
}

namespace {

// Creation of a memory object; Parent(args...) is the object whose memory it shares, or null.
cl_mem no_parent() {
  return nullptr;
}

template <auto Member, auto Parent, typename F = FunctionOf<Member>>
struct CreateMemory;
template <auto Member, auto Parent, typename... A>
struct CreateMemory<Member, Parent, cl_mem (*)(A...)> {
  static cl_mem CL_API_CALL call(A... args) {
    if (only_forward()) return next<Member, A...>(args...);
    CallTimes times;
    cl_mem handle;
    {
      const uint64_t bits = enabled_bits();
      if (bits == 0) {
        handle = next<Member, A...>(args...);
      } else {
        // Traced. Calls that the runtime makes inside are attributed to the runtime.
        cl_int code = CL_SUCCESS;
        if (last_of(args...) == nullptr) last_of(args...) = &code;
        cl_int* const where = last_of(args...);
        ApiSpan span(bits);
        {
          const Inner inner;
          handle = next<Member, A...>(args...);
        }
        span.arguments(SlotOf<Member>::kNumber, args...);
        span.end(SlotOf<Member>::kNumber, *where);
        times = span.times();
      }
    }
    if (handle == nullptr) return handle;
    cl_mem parent = nullptr;
    if constexpr (std::is_invocable_v<decltype(Parent), A...>) parent = Parent(args...);
    if (const ClMemory* const memory = track(handle, parent); memory != nullptr && memory->parent == nullptr)
      write_allocation(times, event::AllocationOperation::kAllocate, memory->kind, memory->device, memory->bytes,
                       reinterpret_cast<uint64_t>(handle), memory->name);
    return handle;
  }
};

cl_mem sub_buffer_parent(cl_mem buffer, cl_mem_flags, cl_buffer_create_type, const void*, cl_int*) {
  return buffer;
}
cl_mem image_parent(cl_context, cl_mem_flags, const cl_image_format*, const cl_image_desc* shape, void*, cl_int*) {
  return shape != nullptr ? shape->mem_object : nullptr;
}
cl_mem image_parent_3(cl_context, const cl_mem_properties*, cl_mem_flags, const cl_image_format*,
                      const cl_image_desc* shape, void*, cl_int*) {
  return shape != nullptr ? shape->mem_object : nullptr;
}

cl_int CL_API_CALL retain_memory(cl_mem handle) {
  const cl_int result = traced<&D::clRetainMemObject>(handle);
  if (result == CL_SUCCESS && !only_forward())
    if (auto* const memory = static_cast<ClMemory*>(g_memory.find(handle)))
      memory->references.fetch_add(1, std::memory_order_relaxed);
  return result;
}

// Drops one reference. The handle is forgotten before the runtime may give it to another object. Returns the chain of
// destroyed objects (linked by parent); the caller gives each one back.
ClMemory* drop(ClMemory* memory) {
  ClMemory* gone = nullptr;
  ClMemory** link = &gone;
  while (memory != nullptr && memory->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    g_memory.erase(memory->handle);
    *link = memory;
    link = &memory->parent;
    memory = memory->parent;
  }
  *link = nullptr;
  return gone;
}

cl_int CL_API_CALL release_memory(cl_mem handle) {
  if (only_forward()) return next<&D::clReleaseMemObject>(handle);
  ClMemory* gone = nullptr;
  bool last_is_owner = false;
  {
    const Guard guard(g_wiped->objects);
    auto* const memory = static_cast<ClMemory*>(g_memory.find(handle));
    if (memory != nullptr) {
      // Whether the end of the chain owns memory: an object whose parent lives on shares the parent's.
      ClMemory* end = memory;
      while (end->references.load(std::memory_order_relaxed) == 1 && end->parent != nullptr) end = end->parent;
      last_is_owner = end->references.load(std::memory_order_relaxed) == 1;
      gone = drop(memory);
    }
  }
  CallTimes times;
  const cl_int result = traced<&D::clReleaseMemObject>(times, handle);
  while (gone != nullptr) {
    ClMemory* const parent = gone->parent;
    if (parent == nullptr && last_is_owner)
      write_allocation(times, event::AllocationOperation::kFree, gone->kind, gone->device, gone->bytes,
                       reinterpret_cast<uint64_t>(gone->handle), gone->name);
    const Guard guard(g_wiped->objects);
    while (HostMapping* const mapping = gone->mappings) {
      gone->mappings = mapping->next;
      g_mapping_slab.give(mapping);
    }
    g_memory_slab.give(gone);
    gone = parent;
  }
  return result;
}

void* CL_API_CALL svm_allocate(cl_context context, cl_svm_mem_flags flags, size_t size, unsigned alignment) {
  if (only_forward()) return next<&D::clSVMAlloc>(context, flags, size, alignment);
  CallTimes times;
  void* const at = traced<&D::clSVMAlloc>(times, context, flags, size, alignment);
  if (at == nullptr) return at;
  const uint32_t device = device_number_of(context);
  shared_allocated(at, size, event::MemoryKind::kSvm, device);
  write_allocation(times, event::AllocationOperation::kAllocate, event::MemoryKind::kSvm, device, size,
                   reinterpret_cast<uint64_t>(at), tape::intern("svm"));
  return at;
}

void CL_API_CALL svm_free(cl_context context, void* at) {
  if (only_forward()) return next<&D::clSVMFree>(context, at);
  SharedMemory was{};
  const bool known = at != nullptr && shared_freed(at, &was);
  CallTimes times;
  traced<&D::clSVMFree>(times, context, at);
  if (known)
    write_allocation(times, event::AllocationOperation::kFree, was.kind, was.device, was.bytes,
                     reinterpret_cast<uint64_t>(at), tape::intern("svm"));
}

}  // namespace

void forget_memory() {
  const Guard guard(g_wiped->objects);
  g_memory.for_each([](const void*, void* value) {
    auto* const memory = static_cast<ClMemory*>(value);
    while (HostMapping* const mapping = memory->mappings) {
      memory->mappings = mapping->next;
      g_mapping_slab.give(mapping);
    }
    g_memory_slab.give(memory);
  });
  g_memory.clear();
  g_shared_count = 0;
  g_buffer_name.store(0, std::memory_order_relaxed);
}

void install_memory_hooks(cl_icd_dispatch& hooks) {
  hooks.clCreateBuffer = CreateMemory<&D::clCreateBuffer, no_parent>::call;
  hooks.clCreateBufferWithProperties = CreateMemory<&D::clCreateBufferWithProperties, no_parent>::call;
  hooks.clCreateSubBuffer = CreateMemory<&D::clCreateSubBuffer, sub_buffer_parent>::call;
  hooks.clCreateImage = CreateMemory<&D::clCreateImage, image_parent>::call;
  hooks.clCreateImageWithProperties = CreateMemory<&D::clCreateImageWithProperties, image_parent_3>::call;
  hooks.clCreateImage2D = CreateMemory<&D::clCreateImage2D, no_parent>::call;
  hooks.clCreateImage3D = CreateMemory<&D::clCreateImage3D, no_parent>::call;
  hooks.clCreatePipe = CreateMemory<&D::clCreatePipe, no_parent>::call;
  hooks.clRetainMemObject = retain_memory;
  hooks.clReleaseMemObject = release_memory;
  hooks.clSVMAlloc = svm_allocate;
  hooks.clSVMFree = svm_free;
}

}  // namespace tacho::capture::opencl
