// What system profiling is tested on: a marked step that works on the host (spin), launches a kernel on a device and copies,
// a second thread that works too (in_thread), for a given number of milliseconds; "fork" makes a child that does the same.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tacho/tacho.h>

#include <thread>
#include <vector>

static volatile uint64_t g_sink;

static double now_ms() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}
extern "C" __attribute__((noinline)) void spin(double until) {
  uint64_t value = 1;
  while (now_ms() < until)
    for (int i = 0; i < 2000; ++i) value = value * 6364136223846793005ull + 1;
  g_sink = value;
}
extern "C" __attribute__((noinline)) void in_thread(double until) {
  spin(until);
  g_sink = g_sink + 1;  // not a tail call
}

static void work(double milliseconds, bool device) {
  cl_command_queue queue = nullptr;
  cl_kernel kernel = nullptr;
  cl_mem buffer = nullptr;
  const size_t count = 4096;
  std::vector<float> host(count, 1.0f);
  if (device) {
    cl_platform_id platform;
    cl_device_id id;
    if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, nullptr) != CL_SUCCESS) exit(3);
    cl_context context = clCreateContext(nullptr, 1, &id, nullptr, nullptr, nullptr);
    queue = clCreateCommandQueue(context, id, CL_QUEUE_PROFILING_ENABLE, nullptr);
    const char* source = "kernel void twice(global float* x) { x[get_global_id(0)] *= 2.0f; }";
    cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, nullptr);
    if (clBuildProgram(program, 1, &id, "", nullptr, nullptr) != CL_SUCCESS) exit(4);
    kernel = clCreateKernel(program, "twice", nullptr);
    buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, count * sizeof(float), nullptr, nullptr);
    clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
  }
  const double end = now_ms() + milliseconds;
  std::thread other(in_thread, end);
  for (int step = 0; step < 5; ++step) {
    tacho_range_push("step");
    if (device) {
      clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, count * sizeof(float), host.data(), 0, nullptr, nullptr);
      clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &count, nullptr, 0, nullptr, nullptr);
      clFinish(queue);
    }
    spin(now_ms() + milliseconds / 5);
    tacho_range_pop();
  }
  other.join();
}

int main(int argc, char** argv) {
  double milliseconds = 60;
  bool device = true, forks = false;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "host") == 0)
      device = false;
    else if (strcmp(argv[i], "fork") == 0)
      forks = true;
    else
      milliseconds = atof(argv[i]);
  }
  if (forks) {
    const pid_t child = fork();
    if (child == 0) {
      work(milliseconds, device);
      return 0;
    }
    waitpid(child, nullptr, 0);
  }
  work(milliseconds, device);
  puts("done");
  return 0;
}
