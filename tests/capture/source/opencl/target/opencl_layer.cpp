// Another OpenCL layer, as a user may have one already: counts launches and says so at the end.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <atomic>
#include <cstdio>

namespace {
cl_icd_dispatch next_table;
cl_icd_dispatch own_table;
std::atomic<int> launches{0};

cl_int enqueue(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset, const size_t* global,
               const size_t* local, cl_uint waits, const cl_event* wait_list, cl_event* event) {
  ++launches;
  return next_table.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits, wait_list, event);
}

__attribute__((destructor)) void say() {
  if (launches != 0) fprintf(stderr, "other layer: %d launches\n", launches.load());
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
  own_table.clEnqueueNDRangeKernel = enqueue;
  *entries_ret = sizeof(cl_icd_dispatch) / sizeof(void*);
  *layer_ret = &own_table;
  return CL_SUCCESS;
}
