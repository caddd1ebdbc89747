// A program to attach to: launches a kernel and reads its result back, again and again, until a signal or a number of
// rounds ends it. Its output says how many rounds it made and what came out, which does not depend on whether somebody
// looked. Arguments: ROUNDS PAUSE_US [profiling] [slow]
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

volatile sig_atomic_t g_stop = 0;
void on_signal(int) {
  g_stop = 1;
}

void check(cl_int code, const char* what) {
  if (code == CL_SUCCESS) return;
  printf("%s: %d\n", what, code);
  exit(2);
}

}  // namespace

int main(int count, char** words) {
  const long rounds = count > 1 ? atol(words[1]) : 1000;
  const long pause_us = count > 2 ? atol(words[2]) : 0;
  bool profiling = false, slow = false;
  for (int i = 3; i < count; ++i) {
    profiling = profiling || strcmp(words[i], "profiling") == 0;
    slow = slow || strcmp(words[i], "slow") == 0;
  }
  signal(SIGTERM, on_signal);
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
  cl_int code = CL_SUCCESS;
  const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
  check(code, "clCreateContext");
  const cl_command_queue queue =
      clCreateCommandQueue(context, device, profiling ? CL_QUEUE_PROFILING_ENABLE : 0, &code);
  check(code, "clCreateCommandQueue");
  const char* const source =
      slow ? "kernel void mix_up(global uint* a, uint k) { size_t i = get_global_id(0); uint x = a[i];\n"
             "  for (uint n = 0; n < 2000; ++n) x = x * 1664525u + k; a[i] = x; }"
           : "kernel void mix_up(global uint* a, uint k) { size_t i = get_global_id(0); a[i] = a[i] * 1664525u + k; }";
  const char* text = source;
  const cl_program program = clCreateProgramWithSource(context, 1, &text, nullptr, &code);
  check(code, "clCreateProgramWithSource");
  check(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
  const cl_kernel kernel = clCreateKernel(program, "mix_up", &code);
  check(code, "clCreateKernel");
  constexpr size_t kItems = 4096;
  std::vector<cl_uint> host(kItems, 0);
  const cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, kItems * sizeof(cl_uint), nullptr, &code);
  check(code, "clCreateBuffer");
  const auto read = [&] {
    check(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, kItems * sizeof(cl_uint), host.data(), 0, nullptr, nullptr),
          "clEnqueueReadBuffer");
  };
  check(clEnqueueWriteBuffer(queue, memory, CL_TRUE, 0, kItems * sizeof(cl_uint), host.data(), 0, nullptr, nullptr),
        "clEnqueueWriteBuffer");
  check(clSetKernelArg(kernel, 0, sizeof memory, &memory), "clSetKernelArg");
  puts("ready");
  fflush(stdout);
  long round = 0;
  for (; round < rounds && g_stop == 0; ++round) {
    const auto number = static_cast<cl_uint>(round);
    check(clSetKernelArg(kernel, 1, sizeof number, &number), "clSetKernelArg");
    const size_t items = kItems;
    check(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr),
          "clEnqueueNDRangeKernel");
    if (round % 16 == 15) read();
    if (pause_us == 0) continue;
    const timespec pause{pause_us / 1'000'000, pause_us % 1'000'000 * 1000};
    if (nanosleep(&pause, nullptr) != 0 && g_stop == 0) {
      puts("nanosleep was interrupted");
      return 3;
    }
  }
  check(clFinish(queue), "clFinish");
  read();
  unsigned long sum = 0;
  for (const cl_uint each : host) sum = sum * 31 + each;
  printf("%ld rounds: %lx\n", round, sum);
  clReleaseMemObject(memory);
  clReleaseKernel(kernel);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return 0;
}
