// many_kernels: a storm of small launches of many kernels, as small-batch inference does it, and what one
// launch costs.
//   many_kernels [-n launches] [-k different kernels] [-s work-items] [-p]
// With -p the queue measures every launch (CL_QUEUE_PROFILING_ENABLE), as a profiler makes it do: what that
// alone costs.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

void check(const char* what, cl_int code) {
  if (code == CL_SUCCESS) return;
  fprintf(stderr, "many_kernels: %s failed with OpenCL error %d\n", what, code);
  exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  long launches = 20000, kinds = 16, items = 256;
  cl_command_queue_properties properties = 0;
  for (int option; (option = getopt(argc, argv, "n:k:s:ph")) != -1;) {
    if (option == 'p') {
      properties = CL_QUEUE_PROFILING_ENABLE;
      continue;
    }
    char* end = nullptr;
    long* const value = option == 'n' ? &launches : option == 'k' ? &kinds : option == 's' ? &items : nullptr;
    if (value == nullptr || (*value = strtol(optarg, &end, 10), *end != '\0' || *value < 1)) {
      fprintf(stderr, "usage: many_kernels [-n launches] [-k different kernels] [-s work-items] [-p]\n");
      return option == 'h' ? 0 : 1;
    }
  }
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  check("clGetPlatformIDs (is a driver installed?)", clGetPlatformIDs(1, &platform, nullptr));
  check("clGetDeviceIDs", clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr));
  cl_int code = CL_SUCCESS;
  const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
  check("clCreateContext", code);
  const cl_command_queue queue = clCreateCommandQueue(context, device, properties, &code);
  check("clCreateCommandQueue", code);
  std::string source;
  for (long i = 0; i < kinds; ++i)
    source += "kernel void layer_" + std::to_string(i) +
              "(global int* a) { a[get_global_id(0)] += " + std::to_string(i + 1) + "; }\n";
  const char* text = source.c_str();
  const cl_program program = clCreateProgramWithSource(context, 1, &text, nullptr, &code);
  check("clCreateProgramWithSource", code);
  check("clBuildProgram", clBuildProgram(program, 1, &device, "", nullptr, nullptr));
  const size_t global = static_cast<size_t>(items);
  // One workgroup while the items fit into one; else the runtime divides them.
  constexpr size_t kOneGroup = 1024;
  const size_t* const local = global <= kOneGroup ? &global : nullptr;
  std::vector<int> values(global);
  const cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                       global * sizeof(int), values.data(), &code);
  check("clCreateBuffer", code);
  std::vector<cl_kernel> kernels;
  for (long i = 0; i < kinds; ++i) {
    kernels.push_back(clCreateKernel(program, ("layer_" + std::to_string(i)).c_str(), &code));
    check("clCreateKernel", code);
    check("clSetKernelArg", clSetKernelArg(kernels.back(), 0, sizeof buffer, &buffer));
    check("clEnqueueNDRangeKernel",
          clEnqueueNDRangeKernel(queue, kernels.back(), 1, nullptr, &global, local, 0, nullptr, nullptr));
  }
  check("clFinish", clFinish(queue));

  const auto start = std::chrono::steady_clock::now();
  for (long i = 0; i < launches; ++i)
    check("clEnqueueNDRangeKernel", clEnqueueNDRangeKernel(queue, kernels[static_cast<size_t>(i % kinds)], 1,
                                                           nullptr, &global, local, 0, nullptr, nullptr));
  const auto enqueued = std::chrono::steady_clock::now();
  check("clFinish", clFinish(queue));
  const auto end = std::chrono::steady_clock::now();
  check("clEnqueueReadBuffer", clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, global * sizeof(int),
                                                   values.data(), 0, nullptr, nullptr));

  long expected = 0;
  for (long i = 0; i < kinds; ++i) expected += i + 1;
  for (long i = 0; i < launches; ++i) expected += i % kinds + 1;
  const auto each = [&](auto span) {
    return std::chrono::duration<double, std::nano>(span).count() / static_cast<double>(launches);
  };
  printf("%ld launches of %ld kernels: %.0f ns each to enqueue, %.0f ns each until all were done\n", launches,
         kinds, each(enqueued - start), each(end - start));
  if (values[0] != static_cast<int>(expected)) {
    fprintf(stderr, "many_kernels: the sum is %d, not %ld\n", values[0], expected);
    return 1;
  }
  for (const cl_kernel kernel : kernels) clReleaseKernel(kernel);
  clReleaseMemObject(buffer);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return 0;
}
