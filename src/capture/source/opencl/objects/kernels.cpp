// Kernels, their descriptions and arguments (kernels.h).
#include "capture/source/opencl/objects/kernels.h"

#include <stdlib.h>

#include "capture/kernel_filter.h"
#include "capture/source/opencl/objects/kept_arguments.h"
#include "capture/source/opencl/objects/memory_objects.h"
#include "capture/source/opencl/queues.h"

namespace tacho::capture::opencl {
namespace {

using D = cl_icd_dispatch;

constinit HandleMap g_kernels;
constinit Slab<KernelObject> g_kernel_slab;

// Kernel descriptions, deduplicated

struct Description {
  uint64_t key;  // 0 = free
  uint32_t name, kind, private_bytes, local_bytes;
  uint32_t number;
  uint32_t spare;
};
constinit Description* g_descriptions = nullptr;
constinit uint32_t g_description_capacity = 0, g_description_count = 0;

uint64_t description_key(uint32_t name, uint32_t kind, uint32_t private_bytes, uint32_t local_bytes) {
  uint64_t key = (static_cast<uint64_t>(name) << 32 | kind) * 0x9e3779b97f4a7c15ULL;
  key = (key ^ (static_cast<uint64_t>(private_bytes) << 32 | local_bytes)) * 0xbf58476d1ce4e5b9ULL;
  return (key ^ key >> 31) | 1;
}

// Under g_wiped->definitions.
uint32_t description(uint32_t name, event::DispatchKind kind, uint32_t private_bytes, uint32_t local_bytes) {
  if (g_description_count * 2 >= g_description_capacity) {
    const uint32_t capacity = g_description_capacity == 0 ? 1024 : g_description_capacity * 2;
    auto* const fresh = static_cast<Description*>(map_pages(capacity * sizeof(Description)));
    if (fresh == nullptr && g_description_count + 1 >= g_description_capacity) return 0;
    if (fresh != nullptr) {
      for (uint32_t i = 0; i < g_description_capacity; ++i) {
        if (g_descriptions[i].key == 0) continue;
        uint32_t at = static_cast<uint32_t>(g_descriptions[i].key >> 32) & (capacity - 1);
        while (fresh[at].key != 0) at = (at + 1) & (capacity - 1);
        fresh[at] = g_descriptions[i];
      }
      g_descriptions = fresh;
      g_description_capacity = capacity;
    }
  }
  const auto kind_number = static_cast<uint32_t>(kind);
  const uint64_t key = description_key(name, kind_number, private_bytes, local_bytes);
  uint32_t at = static_cast<uint32_t>(key >> 32) & (g_description_capacity - 1);
  for (; g_descriptions[at].key != 0; at = (at + 1) & (g_description_capacity - 1)) {
    const Description& found = g_descriptions[at];
    if (found.key == key && found.name == name && found.kind == kind_number && found.private_bytes == private_bytes &&
        found.local_bytes == local_bytes)
      return found.number;
  }
  const uint32_t number = tape::next_kernel();
  event::KernelRecord record{};
  record.header = {event::RecordKind::kKernel, 0, sizeof record, number};
  record.name = name;
  record.kind = kind_number;
  record.registers = record.accum_registers = record.scalar_registers = event::kUnknown32;
  record.shared_static = local_bytes;
  record.private_bytes = private_bytes;
  tape::define(&record.header);
  g_descriptions[at] = {key, name, kind_number, private_bytes, local_bytes, number, 0};
  ++g_description_count;
  return number;
}

uint32_t narrow(cl_ulong bytes) {
  return bytes < event::kUnknown32 ? static_cast<uint32_t>(bytes) : event::kUnknown32;
}

}  // namespace

namespace {
constinit Slab<SetArguments> g_argument_slab;

// Under g_wiped->objects.
void forget_arguments(KernelObject& kernel) {
  if (kernel.arguments != nullptr) g_argument_slab.give(kernel.arguments);
  kernel.arguments = nullptr;
}
}  // namespace

void argument_set(cl_kernel handle, cl_uint index, size_t size, const void* value, bool pointer) {
  KernelObject* const kernel = kernel_of(handle);
  if (kernel == nullptr || index > UINT8_MAX) return;
  const Guard guard(g_wiped->objects);
  if (kernel->arguments == nullptr) kernel->arguments = g_argument_slab.take();
  SetArguments* const all = kernel->arguments;
  if (all == nullptr) return;
  uint32_t at = 0;
  while (at < all->count && all->set[at].index != index) ++at;
  if (at == event::kMostKernelArguments) return;
  if (at == all->count) ++all->count;
  using Kind = event::KernelArgument::Kind;
  event::KernelArgument argument{};
  argument.size = size > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(size);
  argument.index = static_cast<uint8_t>(index);
  if (pointer) {
    argument.kind = Kind::kPointer;
    argument.value[0] = reinterpret_cast<uintptr_t>(value);
  } else if (value == nullptr) {
    argument.kind = Kind::kLocal;
  } else {
    argument.kind = Kind::kValue;
    memcpy(argument.value, value, size < sizeof argument.value ? size : sizeof argument.value);
    if (size == sizeof(cl_mem)) {
      cl_mem object;
      memcpy(&object, value, sizeof object);
      if (const ClMemory* const memory = object != nullptr ? memory_of(object) : nullptr) {
        argument.kind = Kind::kBuffer;
        argument.value[1] = memory->bytes;
      }
    }
  }
  all->set[at] = argument;
}

uint16_t kept_arguments_of(const KernelObject& kernel) {
  SetArguments now{};
  {
    const Guard guard(g_wiped->objects);
    if (kernel.arguments == nullptr) return 0;
    now.count = kernel.arguments->count;
    memcpy(now.set, kernel.arguments->set, now.count * sizeof *now.set);
  }
  return keep_arguments(event::ArgumentsOf::kOpenClKernel, now.count, now.set,
                        now.count * static_cast<uint32_t>(sizeof *now.set / sizeof(uint64_t)));
}

namespace {

constexpr size_t kNameRoom = 4096;
std::string_view name_of(cl_kernel handle, char (&room)[kNameRoom]) {
  size_t size = 0;
  if (next<&D::clGetKernelInfo>(handle, CL_KERNEL_FUNCTION_NAME, sizeof room, static_cast<void*>(room), &size) !=
      CL_SUCCESS)
    size = 0;
  while (size > 0 && room[size - 1] == '\0') --size;
  return {room, size};
}

}  // namespace

void leave_out(KernelObject& kernel) {
  count_filtered();
  if (kernel.told.exchange(true, std::memory_order_relaxed)) return;
  char room[kNameRoom];
  tell_left_out(name_of(kernel.handle, room));
}

void kernel_created(cl_kernel handle) {
  if (handle == nullptr) return;
  char room[kNameRoom];
  const std::string_view name = name_of(handle, room);
  const uint32_t text = tape::intern(name);
  const bool included = kernel_included(name);
  const Guard guard(g_wiped->objects);
  auto* kernel = static_cast<KernelObject*>(g_kernels.find(handle));
  if (kernel != nullptr) forget_arguments(*kernel);
  if (kernel != nullptr)
    memset(static_cast<void*>(kernel), 0, sizeof *kernel);
  else
    kernel = g_kernel_slab.take();
  if (kernel == nullptr) return;
  kernel->handle = handle;
  kernel->name = text;
  kernel->included = included;
  kernel->references.store(1, std::memory_order_relaxed);
  g_kernels.set(handle, kernel);
}

KernelObject* kernel_of(cl_kernel handle) {
  if (auto* const kernel = static_cast<KernelObject*>(g_kernels.find(handle))) return kernel;
  kernel_created(handle);
  return static_cast<KernelObject*>(g_kernels.find(handle));
}

uint32_t kernel_number(KernelObject& kernel, ClDevice& device, event::DispatchKind kind) {
  const uint32_t key = device.number << 2 | static_cast<uint32_t>(kind);
  for (KernelObject::OnDevice& entry : kernel.on_device)
    if (entry.device.load(std::memory_order_acquire) == key) return entry.number;
  cl_ulong private_bytes = event::kUnknown32, local_bytes = event::kUnknown32;
  if (next<&D::clGetKernelWorkGroupInfo>(kernel.handle, device.handle, CL_KERNEL_PRIVATE_MEM_SIZE, sizeof private_bytes,
                                         static_cast<void*>(&private_bytes), nullptr) != CL_SUCCESS)
    private_bytes = event::kUnknown32;
  if (next<&D::clGetKernelWorkGroupInfo>(kernel.handle, device.handle, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local_bytes,
                                         static_cast<void*>(&local_bytes), nullptr) != CL_SUCCESS)
    local_bytes = event::kUnknown32;
  const Guard guard(g_wiped->definitions);
  const uint32_t number = description(kernel.name, kind, narrow(private_bytes), narrow(local_bytes));
  for (KernelObject::OnDevice& entry : kernel.on_device) {
    if (entry.device.load(std::memory_order_relaxed) != 0) continue;
    entry.number = number;
    entry.device.store(key, std::memory_order_release);
    break;
  }
  return number;
}

uint32_t pseudo_kernel(std::string_view name, event::DispatchKind kind) {
  const uint32_t text = tape::intern(name);
  const Guard guard(g_wiped->definitions);
  return description(text, kind, event::kUnknown32, event::kUnknown32);
}

namespace {

cl_kernel CL_API_CALL create_kernel(cl_program program, const char* name, cl_int* code) {
  const cl_kernel kernel = traced<&D::clCreateKernel>(program, name, code);
  if (kernel != nullptr && !only_forward()) kernel_created(kernel);
  return kernel;
}

cl_int CL_API_CALL create_kernels(cl_program program, cl_uint count, cl_kernel* kernels, cl_uint* count_ret) {
  cl_uint made = 0;
  if (count_ret == nullptr) count_ret = &made;
  const cl_int result = traced<&D::clCreateKernelsInProgram>(program, count, kernels, count_ret);
  if (result == CL_SUCCESS && kernels != nullptr && !only_forward())
    for (cl_uint i = 0; i < count && i < *count_ret; ++i) kernel_created(kernels[i]);
  return result;
}

cl_kernel CL_API_CALL clone_kernel(cl_kernel source, cl_int* code) {
  const cl_kernel kernel = traced<&D::clCloneKernel>(source, code);
  if (kernel == nullptr || only_forward()) return kernel;
  kernel_created(kernel);
  if (wants_arguments()) {
    const KernelObject* const original = kernel_of(source);
    KernelObject* const clone = kernel_of(kernel);
    const Guard guard(g_wiped->objects);
    if (original != nullptr && original->arguments != nullptr && clone != nullptr &&
        (clone->arguments = g_argument_slab.take()) != nullptr)
      *clone->arguments = *original->arguments;
  }
  return kernel;
}

cl_int CL_API_CALL set_kernel_arg(cl_kernel kernel, cl_uint index, size_t size, const void* value) {
  const cl_int result = traced<&D::clSetKernelArg>(kernel, index, size, value);
  if (result == CL_SUCCESS && !only_forward()) argument_set(kernel, index, size, value, false);
  return result;
}

cl_int CL_API_CALL set_kernel_arg_pointer(cl_kernel kernel, cl_uint index, const void* pointer) {
  const cl_int result = traced<&D::clSetKernelArgSVMPointer>(kernel, index, pointer);
  if (result == CL_SUCCESS && !only_forward()) argument_set(kernel, index, sizeof pointer, pointer, true);
  return result;
}

cl_int CL_API_CALL retain_kernel(cl_kernel handle) {
  const cl_int result = traced<&D::clRetainKernel>(handle);
  if (result == CL_SUCCESS && !only_forward())
    if (auto* const kernel = static_cast<KernelObject*>(g_kernels.find(handle)))
      kernel->references.fetch_add(1, std::memory_order_relaxed);
  return result;
}

cl_int CL_API_CALL release_kernel(cl_kernel handle) {
  if (!only_forward()) {
    const Guard guard(g_wiped->objects);
    auto* const kernel = static_cast<KernelObject*>(g_kernels.find(handle));
    if (kernel != nullptr && kernel->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      g_kernels.erase(handle);
      forget_arguments(*kernel);
      g_kernel_slab.give(kernel);
    }
  }
  return traced<&D::clReleaseKernel>(handle);
}

}  // namespace

void forget_kernels() {
  {
    const Guard guard(g_wiped->objects);
    g_kernels.for_each([](const void*, void* value) {
      auto* const kernel = static_cast<KernelObject*>(value);
      forget_arguments(*kernel);
      g_kernel_slab.give(kernel);
    });
    g_kernels.clear();
  }
  const Guard guard(g_wiped->definitions);
  for (uint32_t i = 0; i < g_description_capacity; ++i) g_descriptions[i] = {};
  g_description_count = 0;
}

void install_kernel_hooks(cl_icd_dispatch& hooks) {
  hooks.clCreateKernel = create_kernel;
  hooks.clCreateKernelsInProgram = create_kernels;
  hooks.clCloneKernel = clone_kernel;
  if (wants_arguments()) {
    hooks.clSetKernelArg = set_kernel_arg;
    hooks.clSetKernelArgSVMPointer = set_kernel_arg_pointer;
  }
  hooks.clRetainKernel = retain_kernel;
  hooks.clReleaseKernel = release_kernel;
}

}  // namespace tacho::capture::opencl
