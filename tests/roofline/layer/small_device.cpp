// An OpenCL layer that makes a device poorer, for tests of the ceilings: SMALL_DEVICE holds words out of
// nofp64 (the extension is hidden), amdgpu (the CPU says that it is AMD's GPU), nomemory (buffers over 64 KiB
// fail), wrong (results read back have a bit changed), broken (every launch fails).
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <cstdlib>
#include <cstring>

namespace {
cl_icd_dispatch next_table;
cl_icd_dispatch own_table;

bool is(const char* word) {
  const char* const chosen = std::getenv("SMALL_DEVICE");
  return chosen != nullptr && std::strstr(chosen, word) != nullptr;
}

cl_int device_info(cl_device_id device, cl_device_info what, size_t size, void* value, size_t* needed) {
  const cl_int code = next_table.clGetDeviceInfo(device, what, size, value, needed);
  if (code == CL_SUCCESS && what == CL_DEVICE_EXTENSIONS && value != nullptr && is("nofp64"))
    if (char* const at = std::strstr(static_cast<char*>(value), "cl_khr_fp64"); at != nullptr)
      std::memcpy(at, "cl_khr_none", 11);
  if (code == CL_SUCCESS && what == CL_DEVICE_TYPE && value != nullptr && is("amdgpu"))
    *static_cast<cl_device_type*>(value) = CL_DEVICE_TYPE_GPU;
  if (code == CL_SUCCESS && what == CL_DEVICE_VENDOR && value != nullptr && is("amdgpu") && size >= 4)
    std::strcpy(static_cast<char*>(value), "AMD");
  return code;
}

cl_mem create_buffer(cl_context context, cl_mem_flags flags, size_t size, void* host, cl_int* code) {
  if (is("nomemory") && size > 64 * 1024) {
    if (code != nullptr) *code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return nullptr;
  }
  return next_table.clCreateBuffer(context, flags, size, host, code);
}

cl_int read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
                   void* to, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  const cl_int code =
      next_table.clEnqueueReadBuffer(queue, buffer, blocking, offset, size, to, waits, wait_list, event);
  if (code == CL_SUCCESS && is("wrong") && size > 0) static_cast<unsigned char*>(to)[0] ^= 1;
  return code;
}

cl_int enqueue(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset,
               const size_t* global, const size_t* local, cl_uint waits, const cl_event* wait_list,
               cl_event* event) {
  if (is("broken")) return CL_OUT_OF_RESOURCES;
  return next_table.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits, wait_list,
                                           event);
}
}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT cl_int clGetLayerInfo(cl_layer_info what, size_t, void* value, size_t* size) {
  if (what != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  if (value != nullptr) *static_cast<cl_layer_api_version*>(value) = CL_LAYER_API_VERSION_100;
  if (size != nullptr) *size = sizeof(cl_layer_api_version);
  return CL_SUCCESS;
}

EXPORT cl_int clInitLayer(cl_uint entries, const cl_icd_dispatch* target, cl_uint* entries_ret,
                          const cl_icd_dispatch** layer_ret) {
  if (entries < sizeof(cl_icd_dispatch) / sizeof(void*)) return CL_INVALID_VALUE;
  next_table = *target;
  own_table.clGetDeviceInfo = device_info;
  own_table.clCreateBuffer = create_buffer;
  own_table.clEnqueueReadBuffer = read_buffer;
  own_table.clEnqueueNDRangeKernel = enqueue;
  *entries_ret = sizeof(cl_icd_dispatch) / sizeof(void*);
  *layer_ret = &own_table;
  return CL_SUCCESS;
}
