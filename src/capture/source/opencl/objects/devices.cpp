// Descriptions of devices, clock pairs, contexts (devices.h).
#include "capture/source/opencl/objects/devices.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

namespace tacho::capture::opencl {
namespace {

using D = cl_icd_dispatch;

constinit HandleMap g_devices, g_contexts;
constinit Slab<ClDevice> g_device_slab;

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

bool loops(const ClVendor* vendor, Function function) {
  return vendor != nullptr && vendor->loops[static_cast<uint16_t>(function)] &&
         vendor->own[static_cast<uint16_t>(function)] == nullptr;
}

void define_device(ClDevice& device) {
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

}  // namespace

ClDevice* device_of(cl_device_id handle) {
  if (auto* const device = static_cast<ClDevice*>(g_devices.find(handle))) return device;
  if (handle == nullptr) return nullptr;
  ClDevice* device = nullptr;
  {
    const Guard guard(g_wiped->objects);
    device = g_device_slab.take();
  }
  if (device == nullptr) return nullptr;
  device->handle = handle;
  define_device(*device);
  const Guard guard(g_wiped->objects);
  if (auto* const other = static_cast<ClDevice*>(g_devices.find(handle))) {
    g_device_slab.give(device);  // another thread was faster; its twin definition is never referred to
    return other;
  }
  g_devices.set(handle, device);
  return device;
}

void write_clock_pair(ClDevice& device) {
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
  g_devices.for_each([](const void*, void* device) { write_clock_pair(*static_cast<ClDevice*>(device)); });
}

void context_created(cl_context context) {
  cl_device_id devices[64];
  size_t size = 0;
  if (next<&D::clGetContextInfo>(context, CL_CONTEXT_DEVICES, sizeof devices, static_cast<void*>(devices), &size) !=
      CL_SUCCESS)
    return;
  uintptr_t only = 0;
  for (size_t i = 0; i < size / sizeof *devices; ++i) {
    ClDevice* const device = device_of(devices[i]);
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

namespace {

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

}  // namespace

void forget_devices() {
  const Guard guard(g_wiped->objects);
  g_devices.clear();
  g_contexts.clear();
}

void install_device_hooks(cl_icd_dispatch& hooks) {
  hooks.clGetPlatformIDs = get_platforms;
  hooks.clCreateContext = create_context;
  hooks.clCreateContextFromType = create_context_from_type;
}

}  // namespace tacho::capture::opencl
