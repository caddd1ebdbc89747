// Kernels of two queues that can only end together: each reports its arrival and waits for the other one. A tracer that
// makes queues wait for each other keeps them from meeting; that does not depend on how busy the machine is.
// opencl_meet ROUNDS          prints "met N of ROUNDS"
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <cstdio>
#include <cstdlib>

namespace {

// Gives up after this many looks: seconds, whereas a meeting takes microseconds or, on a busy machine, a time slice.
const char* const kSource = R"(
kernel void meet(volatile global int* here, int self, int round, global int* met) {
  atomic_xchg(&here[self], round);
  for (int i = 0; i < 400000000; ++i)
    if (here[1 - self] >= round) {
      met[self] += 1;
      return;
    }
}
)";

void check(const char* what, cl_int code) {
  if (code == CL_SUCCESS) return;
  std::fprintf(stderr, "opencl_meet: %s: OpenCL error %d\n", what, code);
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  check("clGetPlatformIDs", clGetPlatformIDs(1, &platform, nullptr));
  check("clGetDeviceIDs", clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr));
  cl_int code = CL_SUCCESS;
  const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
  check("clCreateContext", code);
  const char* text = kSource;
  const cl_program program = clCreateProgramWithSource(context, 1, &text, nullptr, &code);
  check("clCreateProgramWithSource", code);
  check("clBuildProgram", clBuildProgram(program, 1, &device, "", nullptr, nullptr));
  cl_int zeros[4] = {};
  const cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
  const cl_mem here = clCreateBuffer(context, flags, sizeof zeros, zeros, &code);
  check("clCreateBuffer", code);
  const cl_mem met = clCreateBuffer(context, flags, sizeof zeros, zeros, &code);
  check("clCreateBuffer", code);
  cl_command_queue queues[2];
  cl_kernel kernels[2];
  for (cl_int self = 0; self < 2; ++self) {
    queues[self] = clCreateCommandQueue(context, device, 0, &code);
    check("clCreateCommandQueue", code);
    kernels[self] = clCreateKernel(program, "meet", &code);
    check("clCreateKernel", code);
    check("clSetKernelArg", clSetKernelArg(kernels[self], 0, sizeof here, &here));
    check("clSetKernelArg", clSetKernelArg(kernels[self], 1, sizeof self, &self));
    check("clSetKernelArg", clSetKernelArg(kernels[self], 3, sizeof met, &met));
  }
  for (cl_int round = 1; round <= rounds; ++round) {
    const size_t one = 1;
    for (int self = 0; self < 2; ++self) {
      check("clSetKernelArg", clSetKernelArg(kernels[self], 2, sizeof round, &round));
      check("clEnqueueNDRangeKernel",
            clEnqueueNDRangeKernel(queues[self], kernels[self], 1, nullptr, &one, &one, 0, nullptr, nullptr));
      check("clFlush", clFlush(queues[self]));
    }
    for (const cl_command_queue queue : queues) check("clFinish", clFinish(queue));
  }
  cl_int count[2] = {};
  check("clEnqueueReadBuffer",
        clEnqueueReadBuffer(queues[0], met, CL_TRUE, 0, sizeof count, count, 0, nullptr, nullptr));
  std::printf("met %d of %d\n", count[0] < count[1] ? count[0] : count[1], rounds);
  for (int self = 0; self < 2; ++self) {
    clReleaseKernel(kernels[self]);
    clReleaseCommandQueue(queues[self]);
  }
  clReleaseMemObject(here);
  clReleaseMemObject(met);
  clReleaseProgram(program);
  clReleaseContext(context);
  return 0;
}
