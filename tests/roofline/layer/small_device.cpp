// An OpenCL layer that makes a device poorer, for tests of the ceilings: SMALL_DEVICE holds words out of nofp64 (the
// extension is hidden), amdgpu=NAME (the CPU says that it is AMD's GPU of one compute unit and of this name), nomemory
// (buffers over 64 KiB fail), wrong (results read back have a bit changed), broken (every launch fails), late (every
// launch seems to take 30 us more), mfma (AMD's matrix builtins are there, in software), twisted (but in another order
// of rows than AMD's manuals have), few (only the first 4096 work-items run).
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "emulated_mfma.h"

namespace {
cl_icd_dispatch next_table;
cl_icd_dispatch own_table;

bool is(const char* word) {
  const char* const chosen = std::getenv("SMALL_DEVICE");
  return chosen != nullptr && std::strstr(chosen, word) != nullptr;
}

// The value after `word` in SMALL_DEVICE, up to a space.
std::string after(const char* word) {
  const char* const chosen = std::getenv("SMALL_DEVICE");
  const char* const at = chosen != nullptr ? std::strstr(chosen, word) : nullptr;
  if (at == nullptr) return {};
  const char* const from = at + std::strlen(word);
  return std::string(from, std::strcspn(from, " "));
}

cl_int answer(const void* value, size_t have, size_t size, void* to, size_t* needed) {
  if (needed != nullptr) *needed = have;
  if (to == nullptr) return CL_SUCCESS;
  if (size < have) return CL_INVALID_VALUE;
  std::memcpy(to, value, have);
  return CL_SUCCESS;
}

cl_int device_info(cl_device_id device, cl_device_info what, size_t size, void* value, size_t* needed) {
  if (is("amdgpu=")) {
    const std::string name = after("amdgpu=");
    const cl_device_type type = CL_DEVICE_TYPE_GPU;
    const cl_uint units = 1;
    if (what == CL_DEVICE_NAME) return answer(name.c_str(), name.size() + 1, size, value, needed);
    if (what == CL_DEVICE_VENDOR) return answer("Advanced Micro Devices, Inc.", 29, size, value, needed);
    if (what == CL_DEVICE_TYPE) return answer(&type, sizeof type, size, value, needed);
    if (what == CL_DEVICE_MAX_COMPUTE_UNITS) return answer(&units, sizeof units, size, value, needed);
  }
  const cl_int code = next_table.clGetDeviceInfo(device, what, size, value, needed);
  if (code == CL_SUCCESS && what == CL_DEVICE_EXTENSIONS && value != nullptr && is("nofp64"))
    if (char* const at = std::strstr(static_cast<char*>(value), "cl_khr_fp64"); at != nullptr)
      std::memcpy(at, "cl_khr_none", 11);
  return code;
}

cl_program create_program(cl_context context, cl_uint count, const char** texts, const size_t* lengths, cl_int* code) {
  std::string text;
  for (cl_uint i = 0; i < count; ++i)
    text += lengths != nullptr && lengths[i] != 0 ? std::string(texts[i], lengths[i]) : std::string(texts[i]);
  if (is("mfma")) text = emulated(text, is("twisted"));
  const char* whole = text.c_str();
  const size_t length = text.size();
  return next_table.clCreateProgramWithSource(context, 1, &whole, &length, code);
}

cl_mem create_buffer(cl_context context, cl_mem_flags flags, size_t size, void* host, cl_int* code) {
  if (is("nomemory") && size > 64 * 1024) {
    if (code != nullptr) *code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return nullptr;
  }
  return next_table.clCreateBuffer(context, flags, size, host, code);
}

cl_int read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size, void* to,
                   cl_uint waits, const cl_event* wait_list, cl_event* event) {
  const cl_int code =
      next_table.clEnqueueReadBuffer(queue, buffer, blocking, offset, size, to, waits, wait_list, event);
  if (code == CL_SUCCESS && is("wrong") && size > 0) static_cast<unsigned char*>(to)[0] ^= 1;
  return code;
}

cl_int enqueue(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset, const size_t* global,
               const size_t* local, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  if (is("broken")) return CL_OUT_OF_RESOURCES;
  const size_t most = 4096;
  if (is("few") && dimensions == 1 && *global > most) global = &most;
  return next_table.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits, wait_list, event);
}

cl_int profiling_info(cl_event event, cl_profiling_info what, size_t size, void* value, size_t* needed) {
  const cl_int code = next_table.clGetEventProfilingInfo(event, what, size, value, needed);
  if (code == CL_SUCCESS && what == CL_PROFILING_COMMAND_END && value != nullptr && is("late"))
    *static_cast<cl_ulong*>(value) += 30'000;
  return code;
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
  own_table.clCreateProgramWithSource = create_program;
  own_table.clCreateBuffer = create_buffer;
  own_table.clEnqueueReadBuffer = read_buffer;
  own_table.clEnqueueNDRangeKernel = enqueue;
  own_table.clGetEventProfilingInfo = profiling_info;
  *entries_ret = sizeof(cl_icd_dispatch) / sizeof(void*);
  *layer_ret = &own_table;
  return CL_SUCCESS;
}
