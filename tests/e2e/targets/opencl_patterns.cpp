// Kernels whose counts on a machine with waves of 32, sectors of 32 bytes and 32 banks of 4 bytes can be worked out by
// hand: opencl_patterns NAME launches one of them once, 1024 work-items in workgroups of 64 unless it says otherwise.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

const char* const kSource = R"(
kernel void copy(global const float* in, global float* out) {
  size_t i = get_global_id(0);
  out[i] = in[i];
}
kernel void strided(global const float* in, global float* out) {
  size_t i = get_global_id(0);
  out[i] = in[i * 8];
}
kernel void broadcast(global const float* in, global float* out) {
  out[get_global_id(0)] = in[0];
}
#define CONFLICT(WAYS)                                                              \
kernel void conflict##WAYS(global const float* in, global float* out) {             \
  local float tile[64 * WAYS];                                                      \
  size_t l = get_local_id(0);                                                       \
  tile[l * WAYS] = in[get_global_id(0)];                                            \
  barrier(CLK_LOCAL_MEM_FENCE);                                                     \
  out[get_global_id(0)] = tile[l * WAYS];                                           \
}
CONFLICT(2)
CONFLICT(4)
CONFLICT(8)
CONFLICT(16)
CONFLICT(32)
kernel void padded(global const float* in, global float* out) {
  local float tile[64 * 33];
  size_t l = get_local_id(0);
  tile[l * 33] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  out[get_global_id(0)] = tile[l * 33];
}
// Work-items 0 to 15 of a wave go one way; of those 0 to 7 another again.
kernel void nested(global const float* in, global float* out) {
  size_t i = get_global_id(0);
  uint lane = (uint)get_local_id(0) % 32;
  if (lane < 16) {
    if (lane < 8) out[i] = 1;
    else out[i] = 2;
  } else {
    out[i] = 3;
  }
}
// Trip counts 1 to 32 within a wave, then something that all do again together.
kernel void trips(global const float* in, global float* out) {
  size_t i = get_global_id(0);
  uint lane = (uint)get_local_id(0) % 32;
  float sum = 0;
  for (uint k = 0; k <= lane; ++k) sum += in[k];
  out[i] = sum;
}
// A tree reduction: 6 barriers for 64 work-items, one more before.
kernel void barriers(global const float* in, global float* out) {
  local float tile[64];
  size_t l = get_local_id(0);
  tile[l] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint step = 32; step > 0; step /= 2) {
    if (l < step) tile[l] += tile[l + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (l == 0) out[get_group_id(0)] = tile[0];
}
kernel void madd(global const float* in, global float* out) {
  size_t i = get_global_id(0);
  out[i] = fma(in[i], 2.0f, 1.0f) * 3.0f;
}
kernel void atomics(global const float* in, global int* out) {
  atomic_add(&out[0], 1);
  atomic_add(&out[get_global_id(0)], 1);
}
float helper(float x) { return x * x; }
kernel void called(global const float* in, global float* out) {
  size_t i = get_global_id(0);
  float x = in[i];
  if (get_local_id(0) % 2 == 0) x = helper(x) + 1.0f;
  else x = helper(x + 2.0f);
  out[i] = x;
}
kernel void vectors(global const float4* in, global float4* out) {
  local float4 tile[64];
  size_t l = get_local_id(0);
  tile[l] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  out[get_global_id(0)] = tile[l];
}

// Faults and their mends, for tests/e2e/truth_test.py: the same result, or as much work, without what the rule finds.
float work_one(float x) {
  for (int k = 0; k < 32; ++k) x = fma(x, 1.01f, 0.5f);
  return x;
}
float work_two(float x) {
  for (int k = 0; k < 32; ++k) x = fma(x, 0.99f, 0.25f);
  return x;
}
kernel void divergence_fault(global const float* in, global float* out) {
  size_t i = get_global_id(0);
  out[i] = (get_local_id(0) & 1) == 0 ? work_one(in[i]) : work_two(in[i]);
}
kernel void divergence_mended(global const float* in, global float* out) {
  size_t i = get_global_id(0);
  out[i] = (get_local_id(0) & 32) == 0 ? work_one(in[i]) : work_two(in[i]);
}
kernel void stores_fault(global const float* in, global float* out) {
  size_t i = get_global_id(0);
  out[i * 8] = in[i];
}
kernel void redundant_fault(global const float* in, global float* out) {
  uint l = get_local_id(0);
  uint base = get_group_id(0) * 64;
  float sum = 0;
  for (uint k = 0; k < 16; ++k) sum += in[base + ((l + k) & 63)];
  out[get_global_id(0)] = sum;
}
kernel void redundant_mended(global const float* in, global float* out) {
  local float tile[64];
  uint l = get_local_id(0);
  tile[l] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0;
  for (uint k = 0; k < 16; ++k) sum += tile[(l + k) & 63];
  out[get_global_id(0)] = sum;
}
kernel void uniform_fault(global const float* in, global float* out) {
  float sum = 0;
  for (uint k = 0; k < 8; ++k) sum += in[k];
  out[get_global_id(0)] = sum;
}
kernel void uniform_mended(constant float* in, global float* out) {
  float sum = 0;
  for (uint k = 0; k < 8; ++k) sum += in[k];
  out[get_global_id(0)] = sum;
}
kernel void private_fault(global const float* in, global float* out) {
  size_t i = get_global_id(0);
  float a[16];
  for (int k = 0; k < 16; ++k) a[k] = in[i] + k;
  float sum = 0;
  for (int k = 0; k < 16; ++k) sum += a[((int)in[i] + k * 3) & 15];
  out[i] = sum;
}
kernel void private_mended(global const float* in, global float* out) {
  size_t i = get_global_id(0);
  float x = in[i], sum = 0;
  for (int k = 0; k < 16; ++k) sum += x + (((int)x + k * 3) & 15);
  out[i] = sum;
}
kernel void wide_fault(global const int* in, global int* out) {
  int i = get_global_id(0);
  long n = in[i];
  for (int k = 0; k < 32; ++k) n = (n * 3 + 7) ^ (n >> 2);
  out[i] = (int)n;
}
kernel void wide_mended(global const int* in, global int* out) {
  int i = get_global_id(0);
  int n = in[i];
  for (int k = 0; k < 32; ++k) n = (n * 3 + 7) ^ (n >> 2);
  out[i] = n;
}
kernel void atomics_fault(global const int* in, global int* out) { atomic_add(&out[0], in[get_global_id(0)] + 1); }
kernel void atomics_mended(global const int* in, global int* out) {
  local int sums[64];
  int l = get_local_id(0);
  sums[l] = in[get_global_id(0)] + 1;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (l != 0) return;
  int sum = 0;
  for (int k = 0; k < 64; ++k) sum += sums[k];
  atomic_add(&out[0], sum);
}
kernel void constants_fault(constant float* in, global float* out) {
  size_t i = get_global_id(0);
  out[i] = in[i] + in[i + 1];
}
kernel void constants_mended(global const float* in, global float* out) {
  size_t i = get_global_id(0);
  out[i] = in[i] + in[i + 1];
}
kernel void unfused_fault(global const float* in, global float* out) {
#pragma OPENCL FP_CONTRACT OFF
  size_t i = get_global_id(0);
  float x = in[i];
  for (int k = 0; k < 32; ++k) x = x * 1.01f + 0.5f;
  out[i] = x;
}
kernel void unfused_mended(global const float* in, global float* out) {
  size_t i = get_global_id(0);
  float x = in[i];
  for (int k = 0; k < 32; ++k) x = fma(x, 1.01f, 0.5f);
  out[i] = x;
}
kernel void divisions_fault(global const float* in, global float* out) {
  size_t i = get_global_id(0);
  float x = in[i], by = x + 3;
  for (int k = 0; k < 32; ++k) x = (x + 1) / by;
  out[i] = x;
}
kernel void divisions_mended(global const float* in, global float* out) {
  size_t i = get_global_id(0);
  float x = in[i], by = 1 / (x + 3);
  for (int k = 0; k < 32; ++k) x = (x + 1) * by;
  out[i] = x;
}
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void double_fault(global const float* in, global float* out) {
  size_t i = get_global_id(0);
  float x = in[i];
  for (int k = 0; k < 32; ++k) {
    x = fma(x, 1.5f, 0.25f);
    if (k % 4 == 0) x = x * 1.1;
  }
  out[i] = x;
}
kernel void double_mended(global const float* in, global float* out) {
  size_t i = get_global_id(0);
  float x = in[i];
  for (int k = 0; k < 32; ++k) {
    x = fma(x, 1.5f, 0.25f);
    if (k % 4 == 0) x = x * 1.1f;
  }
  out[i] = x;
}
)";

void check(const char* what, cl_int code) {
  if (code == CL_SUCCESS) return;
  fprintf(stderr, "%s: OpenCL error %d\n", what, code);
  exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const size_t global = argc > 2 ? strtoul(argv[2], nullptr, 10) : 1024,
               local = argc > 3 ? strtoul(argv[3], nullptr, 10) : 64;
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  cl_int code = CL_SUCCESS;
  check("clGetPlatformIDs", clGetPlatformIDs(1, &platform, nullptr));
  check("clGetDeviceIDs", clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr));
  const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
  check("clCreateContext", code);
  const cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
  check("clCreateCommandQueue", code);
  const char* text = kSource;
  const cl_program program = clCreateProgramWithSource(context, 1, &text, nullptr, &code);
  check("clCreateProgramWithSource", code);
  if (clBuildProgram(program, 1, &device, "", nullptr, nullptr) != CL_SUCCESS) {
    std::vector<char> log(1 << 16);
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), nullptr);
    fprintf(stderr, "%s\n", log.data());
    return 1;
  }
  const size_t bytes = global * 64;
  std::vector<char> zeros(bytes);
  const cl_mem in = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, zeros.data(), &code);
  check("clCreateBuffer", code);
  const cl_mem out = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, zeros.data(), &code);
  check("clCreateBuffer", code);
  for (const char* name = strtok(argv[1], ","); name != nullptr; name = strtok(nullptr, ",")) {
    const cl_kernel kernel = clCreateKernel(program, name, &code);
    check(name, code);
    check("clSetKernelArg", clSetKernelArg(kernel, 0, sizeof in, &in));
    check("clSetKernelArg", clSetKernelArg(kernel, 1, sizeof out, &out));
    check("clEnqueueNDRangeKernel",
          clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr));
    check("clFinish", clFinish(queue));
    clReleaseKernel(kernel);
  }
  clReleaseMemObject(in);
  clReleaseMemObject(out);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  if (const char* code_text = getenv("PATTERNS_EXIT")) return atoi(code_text);
  return 0;
}
