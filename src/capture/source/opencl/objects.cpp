// Devices, contexts, kernels and memory of the program (objects.h), and the hooks that keep track of them.
#include "capture/source/opencl/objects.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "capture/kernel_filter.h"
#include "capture/source/opencl/queues.h"

namespace tacho::capture::opencl {
namespace {

using D = cl_icd_dispatch;

constinit HandleMap g_devices, g_contexts, g_kernels, g_memory;
constinit Slab<Device> g_device_slab;
constinit Slab<Kernel> g_kernel_slab;
constinit Slab<Memory> g_memory_slab;
constinit Slab<Mapping> g_mapping_slab;

// Text

struct Text {
  char bytes[4096];
  size_t size = 0;
  std::string_view view() const { return {bytes, size}; }
};

void device_text(cl_device_id device, cl_device_info what, Text& text) {
  size_t size = 0;
  if (next<&D::clGetDeviceInfo>(device, what, sizeof text.bytes, static_cast<void*>(text.bytes), &size) != CL_SUCCESS)
    size = 0;
  if (size > sizeof text.bytes) size = sizeof text.bytes;
  while (size > 0 && (text.bytes[size - 1] == '\0' || text.bytes[size - 1] == ' ')) --size;
  text.size = size;
}

uint32_t device_string(cl_device_id device, cl_device_info what) {
  Text text;
  device_text(device, what, text);
  return text.size == 0 ? 0 : tape::intern(text.view());
}

template <typename T>
bool device_value(cl_device_id device, cl_device_info what, T& value) {
  size_t size = 0;
  return next<&D::clGetDeviceInfo>(device, what, sizeof value, static_cast<void*>(&value), &size) == CL_SUCCESS &&
         size == sizeof value;
}

void number_property(uint32_t device, std::string_view key, uint64_t number) {
  char text[32];
  const int size = snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(number));
  tape::define_property(event::Table::kDevice, device, key, {text, static_cast<size_t>(size)});
}

// The device's place among its platform's devices.
uint32_t index_on_platform(cl_device_id device, cl_platform_id platform) {
  cl_device_id all[64];
  cl_uint count = 0;
  if (next<&D::clGetDeviceIDs>(platform, static_cast<cl_device_type>(CL_DEVICE_TYPE_ALL), cl_uint{64}, all, &count) !=
      CL_SUCCESS)
    return 0;
  for (cl_uint i = 0; i < count && i < 64; ++i)
    if (all[i] == device) return i;
  return 0;
}

bool loops(const Vendor* vendor, Function function) {
  return vendor != nullptr && vendor->loops[static_cast<uint16_t>(function)] &&
         vendor->own[static_cast<uint16_t>(function)] == nullptr;
}

void define_device(Device& device) {
  const cl_device_id handle = device.handle;
  cl_platform_id platform = nullptr;
  device_value(handle, CL_DEVICE_PLATFORM, platform);
  device.vendor = vendor_of(platform);
  device.number = tape::next_device();

  event::DeviceRecord record{};
  record.header = {event::RecordKind::kDevice, 0, sizeof record, device.number};
  cl_device_type type = 0;
  device_value(handle, CL_DEVICE_TYPE, type);
  record.kind = static_cast<uint32_t>((type & CL_DEVICE_TYPE_GPU) != 0   ? event::DeviceKind::kGpu
                                      : (type & CL_DEVICE_TYPE_CPU) != 0 ? event::DeviceKind::kCpu
                                      : (type & (CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CUSTOM)) != 0
                                          ? event::DeviceKind::kAccelerator
                                          : event::DeviceKind::kUnknown);
  cl_device_id parent = nullptr, top = handle;
  while (device_value(top, CL_DEVICE_PARENT_DEVICE, parent) && parent != nullptr) top = parent;
  record.index = index_on_platform(top, platform);
  Text name, driver, extensions;
  device_text(handle, CL_DEVICE_NAME, name);
  record.name = tape::intern(name.view());
  record.vendor = device_string(handle, CL_DEVICE_VENDOR);
  device_text(handle, CL_DRIVER_VERSION, driver);
  char text[4400];
  size_t platform_size = 0;
  if (next<&D::clGetPlatformInfo>(platform, CL_PLATFORM_NAME, size_t{256}, static_cast<void*>(text), &platform_size) !=
      CL_SUCCESS)
    platform_size = 0;
  while (platform_size > 0 && text[platform_size - 1] == '\0') --platform_size;
  if (platform_size != 0) text[platform_size++] = ' ';
  memcpy(text + platform_size, driver.bytes, driver.size);
  record.driver = tape::intern({text, platform_size + driver.size});

  device_text(handle, CL_DEVICE_EXTENSIONS, extensions);
  const auto has = [&](std::string_view extension) {
    return extensions.view().find(extension) != std::string_view::npos;
  };
  cl_uint major = 0, minor = 0;
  if (name.view().substr(0, 3) == "gfx") {
    record.architecture = record.name;
  } else if (has("cl_nv_device_attribute_query") && device_value(handle, 0x4000, major) &&
             device_value(handle, 0x4001, minor)) {
    const int size = snprintf(text, sizeof text, "sm_%u%u", major, minor);
    record.architecture = tape::intern({text, static_cast<size_t>(size)});
  }
  cl_uchar uuid[CL_UUID_SIZE_KHR] = {};
  if (has("cl_khr_device_uuid") && device_value(handle, CL_DEVICE_UUID_KHR, uuid)) {
    int size = 0;
    for (const cl_uchar byte : uuid) size += snprintf(text + size, 3, "%02x", byte);
    record.uuid = tape::intern({text, static_cast<size_t>(size)});
  }

  record.clock_error_ns = device.vendor != nullptr ? device.vendor->clock_error_ns : event::kUnknown32;
  cl_ulong device_time = 0, host_time = 0;
  if (device.vendor != nullptr && !device.vendor->clock_known &&
      !loops(device.vendor, Function::clGetDeviceAndHostTimer)) {
    Text version;
    device_text(handle, CL_DEVICE_VERSION, version);
    const bool modern =
        version.size > 9 && (version.bytes[7] > '2' || (version.bytes[7] == '2' && version.bytes[9] >= '1'));
    device.has_timer =
        modern && next<&D::clGetDeviceAndHostTimer>(handle, &device_time, &host_time) == CL_SUCCESS && device_time != 0;
  }
  if (device.has_timer) record.clock_error_ns = 10'000;  // bounded by the uncertainty of each pair
  tape::define(&record.header);

  cl_uint word = 0;
  cl_ulong wide = 0;
  size_t length = 0;
  cl_bool flag = CL_FALSE;
  const uint32_t number = device.number;
  tape::define_property(event::Table::kDevice, number, "api", "OpenCL");
  Text version;
  device_text(handle, CL_DEVICE_VERSION, version);
  tape::define_property(event::Table::kDevice, number, "version", version.view());
  if (device_value(handle, CL_DEVICE_VENDOR_ID, word)) number_property(number, "vendor id", word);
  if (device_value(handle, CL_DEVICE_MAX_COMPUTE_UNITS, word)) number_property(number, "compute units", word);
  if (device_value(handle, CL_DEVICE_MAX_CLOCK_FREQUENCY, word)) number_property(number, "clock MHz", word);
  if (device_value(handle, CL_DEVICE_MAX_WORK_GROUP_SIZE, length))
    number_property(number, "max workgroup size", length);
  if (device_value(handle, CL_DEVICE_GLOBAL_MEM_SIZE, wide)) number_property(number, "global memory bytes", wide);
  if (device_value(handle, CL_DEVICE_LOCAL_MEM_SIZE, wide)) number_property(number, "local memory bytes", wide);
  if (device_value(handle, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, wide)) number_property(number, "cache bytes", wide);
  if (device_value(handle, CL_DEVICE_PROFILING_TIMER_RESOLUTION, length))
    number_property(number, "timer resolution ns", length);
  if (device_value(handle, CL_DEVICE_HOST_UNIFIED_MEMORY, flag))
    tape::define_property(event::Table::kDevice, number, "unified memory", flag != CL_FALSE ? "yes" : "no");
  if (top != handle) tape::define_property(event::Table::kDevice, number, "sub-device", "yes");
}

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

// Devices and contexts

Device* device_of(cl_device_id handle) {
  if (auto* const device = static_cast<Device*>(g_devices.find(handle))) return device;
  if (handle == nullptr) return nullptr;
  Device* device = nullptr;
  {
    const Guard guard(g_wiped->objects);
    device = g_device_slab.take();
  }
  if (device == nullptr) return nullptr;
  device->handle = handle;
  define_device(*device);
  const Guard guard(g_wiped->objects);
  if (auto* const other = static_cast<Device*>(g_devices.find(handle))) {
    g_device_slab.give(device);  // another thread was faster; its twin definition is never referred to
    return other;
  }
  g_devices.set(handle, device);
  return device;
}

void write_clock_pair(Device& device) {
  if (!device.has_timer) return;
  // The call may take long now and then: the best of three.
  event::ClockPairRecord best{};
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 3; ++i) {
    cl_ulong device_time = 0, host_time = 0;
    const int64_t raw_before = raw_now();
    const uint64_t before = host_ticks();
    if (next<&D::clGetDeviceAndHostTimer>(device.handle, &device_time, &host_time) != CL_SUCCESS) return;
    const uint64_t after = host_ticks();
    const auto spread = static_cast<uint64_t>(raw_now() - raw_before);
    if (spread >= least) continue;
    least = spread;
    best.host = before + (after - before) / 2;
    best.device = device_time;
    best.uncertainty = spread / 2 + 1;
  }
  best.header = {event::RecordKind::kClockPair, 0, sizeof best, device.number};
  tape::define(&best.header);
  device.last_pair = best.host;
}

void write_clock_pairs() {
  g_devices.for_each([](const void*, void* device) { write_clock_pair(*static_cast<Device*>(device)); });
}

void context_created(cl_context context) {
  cl_device_id devices[64];
  size_t size = 0;
  if (next<&D::clGetContextInfo>(context, CL_CONTEXT_DEVICES, sizeof devices, static_cast<void*>(devices), &size) !=
      CL_SUCCESS)
    return;
  uintptr_t only = 0;
  for (size_t i = 0; i < size / sizeof *devices; ++i) {
    Device* const device = device_of(devices[i]);
    if (device != nullptr && device->has_timer && device->last_pair == 0) write_clock_pair(*device);
    only = size == sizeof *devices && device != nullptr ? device->number : 0;
  }
  const Guard guard(g_wiped->objects);
  g_contexts.set(context, reinterpret_cast<void*>(only + 1));
}

uint32_t device_number_of(cl_context context) {
  const auto value = reinterpret_cast<uintptr_t>(g_contexts.find(context));
  return value == 0 ? 0 : static_cast<uint32_t>(value - 1);
}

// Kernels

namespace {
constinit Slab<KernelArguments> g_argument_slab;

// Under g_wiped->objects.
void forget_arguments(Kernel& kernel) {
  if (kernel.arguments != nullptr) g_argument_slab.give(kernel.arguments);
  kernel.arguments = nullptr;
}
}  // namespace

void argument_set(cl_kernel handle, cl_uint index, size_t size, const void* value, bool pointer) {
  Kernel* const kernel = kernel_of(handle);
  if (kernel == nullptr || index > UINT8_MAX) return;
  const Guard guard(g_wiped->objects);
  if (kernel->arguments == nullptr) kernel->arguments = g_argument_slab.take();
  KernelArguments* const all = kernel->arguments;
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
      if (const Memory* const memory = object != nullptr ? memory_of(object) : nullptr) {
        argument.kind = Kind::kBuffer;
        argument.value[1] = memory->bytes;
      }
    }
  }
  all->set[at] = argument;
}

uint16_t kept_arguments_of(const Kernel& kernel) {
  KernelArguments now{};
  {
    const Guard guard(g_wiped->objects);
    if (kernel.arguments == nullptr) return 0;
    now.count = kernel.arguments->count;
    memcpy(now.set, kernel.arguments->set, now.count * sizeof *now.set);
  }
  return keep_arguments(event::ArgumentsOf::kOpenClKernel, now.count, now.set,
                        now.count * static_cast<uint32_t>(sizeof *now.set / sizeof(uint64_t)));
}

void kernel_created(cl_kernel handle) {
  if (handle == nullptr) return;
  char name[4096];
  size_t size = 0;
  if (next<&D::clGetKernelInfo>(handle, CL_KERNEL_FUNCTION_NAME, sizeof name, static_cast<void*>(name), &size) !=
      CL_SUCCESS)
    size = 0;
  while (size > 0 && name[size - 1] == '\0') --size;
  const uint32_t text = tape::intern({name, size});
  const bool included = kernel_included({name, size});
  const Guard guard(g_wiped->objects);
  auto* kernel = static_cast<Kernel*>(g_kernels.find(handle));
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

Kernel* kernel_of(cl_kernel handle) {
  if (auto* const kernel = static_cast<Kernel*>(g_kernels.find(handle))) return kernel;
  kernel_created(handle);
  return static_cast<Kernel*>(g_kernels.find(handle));
}

uint32_t kernel_number(Kernel& kernel, Device& device, event::DispatchKind kind) {
  const uint32_t key = device.number << 2 | static_cast<uint32_t>(kind);
  for (Kernel::OnDevice& entry : kernel.on_device)
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
  for (Kernel::OnDevice& entry : kernel.on_device) {
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

// Memory

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

// Takes the object up. Its size and so on are asked of the runtime, so that every way of creation is the same.
Memory* track(cl_mem handle, cl_mem parent_handle) {
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
  static constinit std::atomic<uint32_t> buffer_name{0};
  uint32_t name = type == CL_MEM_OBJECT_BUFFER ? buffer_name.load(std::memory_order_relaxed) : 0;
  if (name == 0) name = tape::intern(type_name(type));
  if (type == CL_MEM_OBJECT_BUFFER) buffer_name.store(name, std::memory_order_relaxed);

  const Guard guard(g_wiped->objects);
  Memory* const memory = g_memory_slab.take();
  if (memory == nullptr) return nullptr;
  memory->references.store(1, std::memory_order_relaxed);
  memory->kind = kind_of(flags);
  memory->element_bytes = static_cast<uint32_t>(element);
  memory->bytes = bytes;
  memory->device = device_number_of(context);
  memory->name = name;
  memory->handle = handle;
  if (parent_handle != nullptr) memory->parent = static_cast<Memory*>(g_memory.find(parent_handle));
  if (memory->parent != nullptr) {
    memory->parent->references.fetch_add(1, std::memory_order_relaxed);
    memory->kind = memory->parent->kind;
  }
  g_memory.set(handle, memory);
  return memory;
}

}  // namespace

Memory* memory_of(cl_mem handle) {
  if (auto* const memory = static_cast<Memory*>(g_memory.find(handle))) return memory;
  return handle != nullptr ? track(handle, nullptr) : nullptr;
}

void mapped(Memory& memory, const void* at, uint64_t bytes, bool written) {
  const Guard guard(g_wiped->objects);
  Mapping* const mapping = g_mapping_slab.take();
  if (mapping == nullptr) return;
  *mapping = {memory.mappings, at, bytes, written};
  memory.mappings = mapping;
}

Mapping unmapped(Memory& memory, const void* at) {
  const Guard guard(g_wiped->objects);
  for (Mapping** link = &memory.mappings; *link != nullptr; link = &(*link)->next) {
    Mapping* const mapping = *link;
    if (mapping->at != at) continue;
    const Mapping result = *mapping;
    *link = mapping->next;
    g_mapping_slab.give(mapping);
    return result;
  }
  return {};
}

void write_allocation(const Times& times, event::AllocationOperation operation, event::MemoryKind kind, uint32_t device,
                      uint64_t bytes, uint64_t address, uint32_t name) {
  if (times.end == 0 || (enabled_bits() & bit::kAllocation) == 0) return;
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

// Sorted by begin, under g_wiped->objects. Grows in the kernel's pages; what it outgrew is not given back.
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

// Hooks

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
    Times times;
    cl_mem handle;
    {
      const uint64_t bits = enabled_bits();
      if (bits == 0) {
        handle = next<Member, A...>(args...);
      } else {
        // Traced, but with the runtime's own calls inside taken for its own.
        cl_int code = CL_SUCCESS;
        if (last_of(args...) == nullptr) last_of(args...) = &code;
        cl_int* const where = last_of(args...);
        Span span(bits);
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
    if (const Memory* const memory = track(handle, parent); memory != nullptr && memory->parent == nullptr)
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
    if (auto* const memory = static_cast<Memory*>(g_memory.find(handle)))
      memory->references.fetch_add(1, std::memory_order_relaxed);
  return result;
}

// One reference less. The handle is forgotten before the runtime may give it to another object; what is returned is the
// chain of objects (linked by parent) that are gone, each to be given back.
Memory* drop(Memory* memory) {
  Memory* gone = nullptr;
  Memory** link = &gone;
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
  Memory* gone = nullptr;
  bool last_is_owner = false;
  {
    const Guard guard(g_wiped->objects);
    auto* const memory = static_cast<Memory*>(g_memory.find(handle));
    if (memory != nullptr) {
      // Whether the end of the chain owns memory: an object whose parent lives on shares the parent's.
      Memory* end = memory;
      while (end->references.load(std::memory_order_relaxed) == 1 && end->parent != nullptr) end = end->parent;
      last_is_owner = end->references.load(std::memory_order_relaxed) == 1;
      gone = drop(memory);
    }
  }
  Times times;
  const cl_int result = traced<&D::clReleaseMemObject>(times, handle);
  while (gone != nullptr) {
    Memory* const parent = gone->parent;
    if (parent == nullptr && last_is_owner)
      write_allocation(times, event::AllocationOperation::kFree, gone->kind, gone->device, gone->bytes,
                       reinterpret_cast<uint64_t>(gone->handle), gone->name);
    const Guard guard(g_wiped->objects);
    while (Mapping* const mapping = gone->mappings) {
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
  Times times;
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
  Times times;
  traced<&D::clSVMFree>(times, context, at);
  if (known)
    write_allocation(times, event::AllocationOperation::kFree, was.kind, was.device, was.bytes,
                     reinterpret_cast<uint64_t>(at), tape::intern("svm"));
}

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
    const Kernel* const original = kernel_of(source);
    Kernel* const clone = kernel_of(kernel);
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
    if (auto* const kernel = static_cast<Kernel*>(g_kernels.find(handle)))
      kernel->references.fetch_add(1, std::memory_order_relaxed);
  return result;
}

cl_int CL_API_CALL release_kernel(cl_kernel handle) {
  if (!only_forward()) {
    const Guard guard(g_wiped->objects);
    auto* const kernel = static_cast<Kernel*>(g_kernels.find(handle));
    if (kernel != nullptr && kernel->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      g_kernels.erase(handle);
      forget_arguments(*kernel);
      g_kernel_slab.give(kernel);
    }
  }
  return traced<&D::clReleaseKernel>(handle);
}

cl_context CL_API_CALL create_context(const cl_context_properties* properties, cl_uint count,
                                      const cl_device_id* devices,
                                      void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*), void* data,
                                      cl_int* code) {
  const cl_context context = traced<&D::clCreateContext>(properties, count, devices, notify, data, code);
  if (context != nullptr && !only_forward()) context_created(context);
  return context;
}

cl_context CL_API_CALL create_context_from_type(const cl_context_properties* properties, cl_device_type type,
                                                void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*),
                                                void* data, cl_int* code) {
  const cl_context context = traced<&D::clCreateContextFromType>(properties, type, notify, data, code);
  if (context != nullptr && !only_forward()) context_created(context);
  return context;
}

cl_int CL_API_CALL get_platforms(cl_uint count, cl_platform_id* platforms, cl_uint* count_ret) {
  cl_uint found = 0;
  if (count_ret == nullptr) count_ret = &found;
  const cl_int result = traced<&D::clGetPlatformIDs>(count, platforms, count_ret);
  if (result == CL_SUCCESS && platforms != nullptr && !only_forward())
    for (cl_uint i = 0; i < count && i < *count_ret; ++i) vendor_of(platforms[i]);
  return result;
}

// Reference counts as the program expects them: what is complete is released before the runtime is asked.
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

void install_objects(cl_icd_dispatch& hooks) {
  hooks.clGetPlatformIDs = get_platforms;
  hooks.clCreateContext = create_context;
  hooks.clCreateContextFromType = create_context_from_type;
  hooks.clCreateKernel = create_kernel;
  hooks.clCreateKernelsInProgram = create_kernels;
  hooks.clCloneKernel = clone_kernel;
  if (wants_arguments()) {
    hooks.clSetKernelArg = set_kernel_arg;
    hooks.clSetKernelArgSVMPointer = set_kernel_arg_pointer;
  }
  hooks.clRetainKernel = retain_kernel;
  hooks.clReleaseKernel = release_kernel;
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
  hooks.clGetContextInfo = ReferenceCount<&D::clGetContextInfo, CL_CONTEXT_REFERENCE_COUNT>::call;
  hooks.clGetKernelInfo = ReferenceCount<&D::clGetKernelInfo, CL_KERNEL_REFERENCE_COUNT>::call;
  hooks.clGetMemObjectInfo = ReferenceCount<&D::clGetMemObjectInfo, CL_MEM_REFERENCE_COUNT>::call;
}

}  // namespace tacho::capture::opencl
