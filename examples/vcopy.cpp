// vcopy for OpenCL: copies a vector of doubles on the device, -i times, and checks the result.
//   vcopy [-n elements] [-b block size] [-i iterations] [-d device]
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

const char* const kSource = R"(
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void vecCopy(global const double* from, global double* to, int n) {
  int i = (int)get_global_id(0);
  if (i < n) to[i] = from[i];
}
)";

constexpr size_t kWave = 64;  // work-items in a wave of the hardware that the printed figures speak of

[[noreturn]] void stop(const char* what, cl_int code) {
  fprintf(stderr, "vcopy: %s failed with OpenCL error %d\n", what, code);
  exit(1);
}
void check(const char* what, cl_int code) {
  if (code != CL_SUCCESS) stop(what, code);
}

cl_device_id choose_device(unsigned wanted) {
  cl_uint platform_count = 0;
  const cl_int code = clGetPlatformIDs(0, nullptr, &platform_count);
  if (code != CL_SUCCESS || platform_count == 0) stop("looking for an OpenCL platform (is a driver installed?)", code);
  std::vector<cl_platform_id> platforms(platform_count);
  check("clGetPlatformIDs", clGetPlatformIDs(platform_count, platforms.data(), nullptr));
  unsigned seen = 0;
  for (const cl_platform_id platform : platforms) {
    cl_uint count = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) continue;
    std::vector<cl_device_id> devices(count);
    check("clGetDeviceIDs", clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr));
    if (wanted < seen + count) return devices[wanted - seen];
    seen += count;
  }
  fprintf(stderr, "vcopy: there is no device %u; devices are numbered from 0 to %u\n", wanted,
          seen == 0 ? 0 : seen - 1);
  exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  long elements = 1 << 20, block = 256, iterations = 1, wanted_device = 0;
  for (int option; (option = getopt(argc, argv, "n:b:i:d:h")) != -1;) {
    char* end = nullptr;
    long* const value = option == 'n'   ? &elements
                        : option == 'b' ? &block
                        : option == 'i' ? &iterations
                        : option == 'd' ? &wanted_device
                                        : nullptr;
    if (value == nullptr || (*value = strtol(optarg, &end, 10), *end != '\0' || *value < 0)) {
      fprintf(stderr, "usage: vcopy [-n elements] [-b block size] [-i iterations] [-d device]\n");
      return option == 'h' ? 0 : 1;
    }
  }
  if (elements < 1 || elements > (1L << 30) || block < 1 || iterations < 1) {
    fprintf(stderr, "vcopy: -n must be 1 to 2^30, -b and -i at least 1\n");
    return 1;
  }
  const size_t bytes = static_cast<size_t>(elements) * sizeof(double);
  const size_t groups = (static_cast<size_t>(elements) + static_cast<size_t>(block) - 1) / static_cast<size_t>(block);
  const size_t local = static_cast<size_t>(block), global = groups * local;

  const cl_device_id device = choose_device(static_cast<unsigned>(wanted_device));
  printf("vcopy testing on GCD %ld\n", wanted_device);

  cl_int code = CL_SUCCESS;
  const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
  check("clCreateContext", code);
  const cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
  check("clCreateCommandQueue", code);
  const char* text = kSource;
  const cl_program program = clCreateProgramWithSource(context, 1, &text, nullptr, &code);
  check("clCreateProgramWithSource", code);
  check("clBuildProgram", clBuildProgram(program, 1, &device, "", nullptr, nullptr));
  const cl_kernel kernel = clCreateKernel(program, "vecCopy", &code);
  check("clCreateKernel", code);

  std::vector<double> from(static_cast<size_t>(elements)), to(static_cast<size_t>(elements));
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<double>(i % 1000) * 0.5;
  printf("Finished allocating vectors on the CPU\n");

  const cl_mem device_from = clCreateBuffer(context, CL_MEM_READ_ONLY, bytes, nullptr, &code);
  check("clCreateBuffer", code);
  const cl_mem device_to = clCreateBuffer(context, CL_MEM_WRITE_ONLY, bytes, nullptr, &code);
  check("clCreateBuffer", code);
  printf("Finished allocating vectors on the GPU\n");

  check("clEnqueueWriteBuffer",
        clEnqueueWriteBuffer(queue, device_from, CL_TRUE, 0, bytes, from.data(), 0, nullptr, nullptr));
  check("clEnqueueWriteBuffer",
        clEnqueueWriteBuffer(queue, device_to, CL_TRUE, 0, bytes, to.data(), 0, nullptr, nullptr));
  printf("Finished copying vectors to the GPU\n");

  printf("sw thinks it moved %f KB per wave\n", 2.0 * kWave * sizeof(double) / 1024.0);
  printf("Total threads: %ld, Grid Size: %zu block Size:%ld, Wavefronts:%zu:\n", elements, groups, block,
         groups * local / kWave);
  const cl_int n = static_cast<cl_int>(elements);
  check("clSetKernelArg", clSetKernelArg(kernel, 0, sizeof device_from, &device_from));
  check("clSetKernelArg", clSetKernelArg(kernel, 1, sizeof device_to, &device_to));
  check("clSetKernelArg", clSetKernelArg(kernel, 2, sizeof n, &n));
  printf("Launching the  kernel on the GPU\n");
  for (long i = 0; i < iterations; ++i)
    check("clEnqueueNDRangeKernel",
          clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr));
  check("clFinish", clFinish(queue));
  printf("Finished executing kernel\n");

  check("clEnqueueReadBuffer",
        clEnqueueReadBuffer(queue, device_to, CL_TRUE, 0, bytes, to.data(), 0, nullptr, nullptr));
  printf("Finished copying the output vector from the GPU to the CPU\n");
  const bool right = memcmp(from.data(), to.data(), bytes) == 0;

  printf("Releasing GPU memory\n");
  clReleaseMemObject(device_from);
  clReleaseMemObject(device_to);
  clReleaseKernel(kernel);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  printf("Releasing CPU memory\n");
  if (!right) fprintf(stderr, "vcopy: the copy differs from the original\n");
  return right ? 0 : 1;
}
