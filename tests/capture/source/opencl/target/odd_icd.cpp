// An OpenCL runtime made for tests: one device that does everything at once, in a clock of its choice.
//   ODD_CLOCK = raw | monotonic | realtime | odd (CLOCK_BOOTTIME and then some)
//   ODD_TIMER = 1: clGetDeviceAndHostTimer answers
//   ODD_FAIL  = n: every n-th kernel ends with an error
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl_icd.h>
#include <time.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

extern cl_icd_dispatch table;

struct Object {
  const cl_icd_dispatch* dispatch = &table;
  std::atomic<cl_uint> references{1};
};
}  // namespace

struct _cl_platform_id : Object {};
struct _cl_device_id : Object {};
struct _cl_context : Object {};
struct _cl_command_queue : Object {
  cl_context context = nullptr;
  cl_command_queue_properties properties = 0;
};
struct _cl_mem : Object {
  size_t bytes = 0;
  void* data = nullptr;
  cl_mem_flags flags = 0;
};
struct _cl_program : Object {};
struct _cl_kernel : Object {
  std::string name;
};
struct _cl_event : Object {
  cl_command_queue queue = nullptr;
  cl_int status = CL_COMPLETE;
  cl_ulong times[4] = {};
};

namespace {

_cl_platform_id platform_object;
_cl_device_id device_object;

cl_ulong now() {
  static const char* const chosen = getenv("ODD_CLOCK");
  const std::string_view clock = chosen != nullptr ? chosen : "odd";
  timespec time{};
  clock_gettime(clock == "raw"         ? CLOCK_MONOTONIC_RAW
                : clock == "monotonic" ? CLOCK_MONOTONIC
                : clock == "realtime"  ? CLOCK_REALTIME
                                       : CLOCK_BOOTTIME,
                &time);
  const cl_ulong ns = static_cast<cl_ulong>(time.tv_sec) * 1'000'000'000 + static_cast<cl_ulong>(time.tv_nsec);
  return clock == "odd" ? ns + 7'000'000'000'000 : ns;
}

cl_int answer(const void* bytes, size_t count, size_t size, void* value, size_t* size_ret) {
  if (value != nullptr) {
    if (size < count) return CL_INVALID_VALUE;
    memcpy(value, bytes, count);
  }
  if (size_ret != nullptr) *size_ret = count;
  return CL_SUCCESS;
}
cl_int answer(const char* text, size_t size, void* value, size_t* size_ret) {
  return answer(text, strlen(text) + 1, size, value, size_ret);
}
template <typename T>
cl_int answer_value(T number, size_t size, void* value, size_t* size_ret) {
  return answer(&number, sizeof number, size, value, size_ret);
}
template <typename T>
cl_int retain(T object) {
  ++object->references;
  return CL_SUCCESS;
}
template <typename T>
cl_int release(T object) {
  if (--object->references == 0) delete object;
  return CL_SUCCESS;
}

// Does `work` as a command: a time for each step, and an event when one is wanted.
template <typename Work>
cl_int command(cl_command_queue queue, cl_event* event, Work work, bool fails = false) {
  _cl_event done;
  done.times[0] = now();
  done.times[1] = now();
  done.times[2] = now();
  work();
  done.times[3] = now();
  if (event != nullptr) {
    auto* const made = new _cl_event;
    memcpy(made->times, done.times, sizeof done.times);
    made->queue = queue;
    made->status = fails ? CL_OUT_OF_RESOURCES : CL_COMPLETE;
    *event = made;
  }
  return CL_SUCCESS;
}

// The API

cl_int CL_API_CALL get_platforms(cl_uint count, cl_platform_id* platforms, cl_uint* found) {
  if (found != nullptr) *found = 1;
  if (platforms != nullptr && count > 0) platforms[0] = &platform_object;
  return CL_SUCCESS;
}
cl_int CL_API_CALL platform_info(cl_platform_id, cl_platform_info what, size_t size, void* value, size_t* size_ret) {
  switch (what) {
    case CL_PLATFORM_PROFILE:
      return answer("FULL_PROFILE", size, value, size_ret);
    case CL_PLATFORM_VERSION:
      return answer("OpenCL 3.0 odd", size, value, size_ret);
    case CL_PLATFORM_NAME:
      return answer("Odd platform", size, value, size_ret);
    case CL_PLATFORM_VENDOR:
      return answer("tests", size, value, size_ret);
    case CL_PLATFORM_EXTENSIONS:
      return answer("cl_khr_icd", size, value, size_ret);
    case CL_PLATFORM_ICD_SUFFIX_KHR:
      return answer("ODD", size, value, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}
cl_int CL_API_CALL get_devices(cl_platform_id, cl_device_type, cl_uint count, cl_device_id* devices, cl_uint* found) {
  if (found != nullptr) *found = 1;
  if (devices != nullptr && count > 0) devices[0] = &device_object;
  return CL_SUCCESS;
}
cl_int CL_API_CALL device_info(cl_device_id, cl_device_info what, size_t size, void* value, size_t* size_ret) {
  switch (what) {
    case CL_DEVICE_PLATFORM:
      return answer_value<cl_platform_id>(&platform_object, size, value, size_ret);
    case CL_DEVICE_TYPE:
      return answer_value<cl_device_type>(CL_DEVICE_TYPE_GPU, size, value, size_ret);
    case CL_DEVICE_NAME:
      return answer("Odd device", size, value, size_ret);
    case CL_DEVICE_VENDOR:
      return answer("tests", size, value, size_ret);
    case CL_DRIVER_VERSION:
      return answer("1", size, value, size_ret);
    case CL_DEVICE_VERSION:
      return answer("OpenCL 3.0 odd", size, value, size_ret);
    case CL_DEVICE_EXTENSIONS:
      return answer("cl_khr_device_uuid", size, value, size_ret);
    case CL_DEVICE_PARENT_DEVICE:
      return answer_value<cl_device_id>(nullptr, size, value, size_ret);
    case CL_DEVICE_UUID_KHR: {
      cl_uchar uuid[CL_UUID_SIZE_KHR];
      for (int i = 0; i < CL_UUID_SIZE_KHR; ++i) uuid[i] = static_cast<cl_uchar>(i);
      return answer(uuid, sizeof uuid, size, value, size_ret);
    }
    default:
      return CL_INVALID_VALUE;
  }
}
cl_int CL_API_CALL timer(cl_device_id, cl_ulong* device_time, cl_ulong* host_time) {
  const char* const on = getenv("ODD_TIMER");
  if (on == nullptr || *on != '1') return CL_INVALID_OPERATION;
  *device_time = now();
  *host_time = now();
  return CL_SUCCESS;
}

cl_context CL_API_CALL create_context(const cl_context_properties*, cl_uint, const cl_device_id*,
                                      void(CL_CALLBACK*)(const char*, const void*, size_t, void*), void*,
                                      cl_int* code) {
  if (code != nullptr) *code = CL_SUCCESS;
  return new _cl_context;
}
cl_int CL_API_CALL context_info(cl_context, cl_context_info what, size_t size, void* value, size_t* size_ret) {
  if (what == CL_CONTEXT_DEVICES) return answer_value<cl_device_id>(&device_object, size, value, size_ret);
  return CL_INVALID_VALUE;
}
cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id, cl_command_queue_properties properties,
                                          cl_int* code) {
  if (code != nullptr) *code = CL_SUCCESS;
  auto* const queue = new _cl_command_queue;
  queue->context = context;
  queue->properties = properties;
  return queue;
}
cl_mem CL_API_CALL create_buffer(cl_context, cl_mem_flags flags, size_t bytes, void*, cl_int* code) {
  if (code != nullptr) *code = CL_SUCCESS;
  auto* const buffer = new _cl_mem;
  buffer->bytes = bytes;
  buffer->flags = flags;
  buffer->data = calloc(1, bytes);
  return buffer;
}
cl_int CL_API_CALL memory_info(cl_mem buffer, cl_mem_info what, size_t size, void* value, size_t* size_ret) {
  switch (what) {
    case CL_MEM_TYPE:
      return answer_value<cl_mem_object_type>(CL_MEM_OBJECT_BUFFER, size, value, size_ret);
    case CL_MEM_FLAGS:
      return answer_value(buffer->flags, size, value, size_ret);
    case CL_MEM_SIZE:
      return answer_value(buffer->bytes, size, value, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}
cl_program CL_API_CALL create_program(cl_context, cl_uint, const char**, const size_t*, cl_int* code) {
  if (code != nullptr) *code = CL_SUCCESS;
  return new _cl_program;
}
cl_int CL_API_CALL build_program(cl_program, cl_uint, const cl_device_id*, const char*,
                                 void(CL_CALLBACK*)(cl_program, void*), void*) {
  return CL_SUCCESS;
}
cl_kernel CL_API_CALL create_kernel(cl_program, const char* name, cl_int* code) {
  if (code != nullptr) *code = CL_SUCCESS;
  auto* const kernel = new _cl_kernel;
  kernel->name = name;
  return kernel;
}
cl_int CL_API_CALL kernel_info(cl_kernel kernel, cl_kernel_info what, size_t size, void* value, size_t* size_ret) {
  if (what == CL_KERNEL_FUNCTION_NAME) return answer(kernel->name.c_str(), size, value, size_ret);
  return CL_INVALID_VALUE;
}
cl_int CL_API_CALL kernel_group_info(cl_kernel, cl_device_id, cl_kernel_work_group_info what, size_t size, void* value,
                                     size_t* size_ret) {
  if (what == CL_KERNEL_PRIVATE_MEM_SIZE) return answer_value<cl_ulong>(48, size, value, size_ret);
  if (what == CL_KERNEL_LOCAL_MEM_SIZE) return answer_value<cl_ulong>(1024, size, value, size_ret);
  return CL_INVALID_VALUE;
}
cl_int CL_API_CALL set_argument(cl_kernel, cl_uint, size_t, const void*) {
  return CL_SUCCESS;
}

cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel, cl_uint, const size_t*, const size_t*,
                                  const size_t*, cl_uint, const cl_event*, cl_event* event) {
  static std::atomic<int> launches{0};
  const char* const every = getenv("ODD_FAIL");
  const bool fails = every != nullptr && atoi(every) > 0 && ++launches % atoi(every) == 0;
  return command(
      queue, event,
      [] {
        for (const cl_ulong end = now() + 20'000; now() < end;) {
        }
      },
      fails);
}
cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool, size_t offset, size_t bytes, void* to,
                               cl_uint, const cl_event*, cl_event* event) {
  return command(queue, event, [&] { memcpy(to, static_cast<char*>(buffer->data) + offset, bytes); });
}
cl_int CL_API_CALL fill_buffer(cl_command_queue queue, cl_mem buffer, const void* pattern, size_t pattern_bytes,
                               size_t offset, size_t bytes, cl_uint, const cl_event*, cl_event* event) {
  return command(queue, event, [&] {
    for (size_t at = 0; at < bytes; at += pattern_bytes)
      memcpy(static_cast<char*>(buffer->data) + offset + at, pattern, pattern_bytes);
  });
}
cl_int CL_API_CALL finish(cl_command_queue) {
  return CL_SUCCESS;
}
cl_int CL_API_CALL event_info(cl_event event, cl_event_info what, size_t size, void* value, size_t* size_ret) {
  switch (what) {
    case CL_EVENT_COMMAND_QUEUE:
      return answer_value(event->queue, size, value, size_ret);
    case CL_EVENT_COMMAND_EXECUTION_STATUS:
      return answer_value(event->status, size, value, size_ret);
    case CL_EVENT_REFERENCE_COUNT:
      return answer_value<cl_uint>(event->references, size, value, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}
cl_int CL_API_CALL profiling_info(cl_event event, cl_profiling_info what, size_t size, void* value, size_t* size_ret) {
  if ((event->queue->properties & CL_QUEUE_PROFILING_ENABLE) == 0 || event->status != CL_COMPLETE)
    return CL_PROFILING_INFO_NOT_AVAILABLE;
  if (what < CL_PROFILING_COMMAND_QUEUED || what > CL_PROFILING_COMMAND_END) return CL_INVALID_VALUE;
  return answer_value(event->times[what - CL_PROFILING_COMMAND_QUEUED], size, value, size_ret);
}
cl_int CL_API_CALL wait_for_events(cl_uint, const cl_event*) {
  return CL_SUCCESS;
}

// Unified shared memory

void* CL_API_CALL usm_host(cl_context, const cl_mem_properties_intel*, size_t bytes, cl_uint, cl_int* code) {
  if (code != nullptr) *code = CL_SUCCESS;
  return malloc(bytes);
}
void* CL_API_CALL usm_device(cl_context, cl_device_id, const cl_mem_properties_intel*, size_t bytes, cl_uint,
                             cl_int* code) {
  if (code != nullptr) *code = CL_SUCCESS;
  return malloc(bytes);
}
cl_int CL_API_CALL usm_free(cl_context, void* at) {
  free(at);
  return CL_SUCCESS;
}
cl_int CL_API_CALL usm_copy(cl_command_queue queue, cl_bool, void* to, const void* from, size_t bytes, cl_uint,
                            const cl_event*, cl_event* event) {
  return command(queue, event, [&] { memcpy(to, from, bytes); });
}
cl_int CL_API_CALL usm_fill(cl_command_queue queue, void* to, const void* pattern, size_t pattern_bytes, size_t bytes,
                            cl_uint, const cl_event*, cl_event* event) {
  return command(queue, event, [&] {
    for (size_t at = 0; at < bytes; at += pattern_bytes) memcpy(static_cast<char*>(to) + at, pattern, pattern_bytes);
  });
}

void* CL_API_CALL extension(const char* name);
void* CL_API_CALL extension_for(cl_platform_id, const char* name) {
  return extension(name);
}

cl_icd_dispatch make_table() {
  cl_icd_dispatch made{};
  made.clGetPlatformIDs = get_platforms;
  made.clGetPlatformInfo = platform_info;
  made.clGetDeviceIDs = get_devices;
  made.clGetDeviceInfo = device_info;
  made.clGetDeviceAndHostTimer = timer;
  made.clCreateContext = create_context;
  made.clGetContextInfo = context_info;
  made.clRetainContext = retain<cl_context>;
  made.clReleaseContext = release<cl_context>;
  made.clCreateCommandQueue = create_queue;
  made.clRetainCommandQueue = retain<cl_command_queue>;
  made.clReleaseCommandQueue = release<cl_command_queue>;
  made.clCreateBuffer = create_buffer;
  made.clGetMemObjectInfo = memory_info;
  made.clRetainMemObject = retain<cl_mem>;
  made.clReleaseMemObject = release<cl_mem>;
  made.clCreateProgramWithSource = create_program;
  made.clBuildProgram = build_program;
  made.clReleaseProgram = release<cl_program>;
  made.clCreateKernel = create_kernel;
  made.clGetKernelInfo = kernel_info;
  made.clGetKernelWorkGroupInfo = kernel_group_info;
  made.clReleaseKernel = release<cl_kernel>;
  made.clSetKernelArg = set_argument;
  made.clEnqueueNDRangeKernel = enqueue_kernel;
  made.clEnqueueReadBuffer = read_buffer;
  made.clEnqueueFillBuffer = fill_buffer;
  made.clFinish = finish;
  made.clFlush = finish;
  made.clGetEventInfo = event_info;
  made.clGetEventProfilingInfo = profiling_info;
  made.clWaitForEvents = wait_for_events;
  made.clRetainEvent = retain<cl_event>;
  made.clReleaseEvent = release<cl_event>;
  made.clGetExtensionFunctionAddress = extension;
  made.clGetExtensionFunctionAddressForPlatform = extension_for;
  return made;
}
cl_icd_dispatch table = make_table();

void* CL_API_CALL extension(const char* name) {
  const std::string_view wanted(name);
  if (wanted == "clIcdGetPlatformIDsKHR") return reinterpret_cast<void*>(&get_platforms);
  if (wanted == "clGetPlatformInfo") return reinterpret_cast<void*>(&platform_info);
  if (wanted == "clHostMemAllocINTEL") return reinterpret_cast<void*>(&usm_host);
  if (wanted == "clDeviceMemAllocINTEL") return reinterpret_cast<void*>(&usm_device);
  if (wanted == "clMemFreeINTEL") return reinterpret_cast<void*>(&usm_free);
  if (wanted == "clEnqueueMemcpyINTEL") return reinterpret_cast<void*>(&usm_copy);
  if (wanted == "clEnqueueMemFillINTEL") return reinterpret_cast<void*>(&usm_fill);
  return nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void* clGetExtensionFunctionAddress(const char* name) {
  return extension(name);
}
