// For tests of system profiling: a marked step that works on the host (spin), launches a kernel on a device and copies,
// a second thread that works too (in_thread), for a given number of milliseconds of CPU time each, so that there is as
// much to sample on a busy machine as on an idle one; "fork" makes a child that does the same. "window": marked steps
// until recording has been seen to begin and to end and five steps longer (exits with 77 when that takes over a
// minute).
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tacho/tacho.h>
#include <time.h>
#include <unistd.h>

#include <thread>
#include <vector>

static volatile uint64_t g_sink;

static double now_ms() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}
static double cpu_ms() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}
extern "C" __attribute__((noinline)) void spin(double milliseconds) {
  uint64_t value = 1;
  for (const double end = cpu_ms() + milliseconds; cpu_ms() < end;)
    for (int i = 0; i < 20000; ++i) value = value * 6364136223846793005ull + 1;
  g_sink = value;
}
extern "C" __attribute__((noinline)) void in_thread(double milliseconds) {
  spin(milliseconds);
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
    if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, nullptr) != CL_SUCCESS)
      exit(3);
    cl_context context = clCreateContext(nullptr, 1, &id, nullptr, nullptr, nullptr);
    queue = clCreateCommandQueue(context, id, CL_QUEUE_PROFILING_ENABLE, nullptr);
    const char* source = "kernel void twice(global float* x) { x[get_global_id(0)] *= 2.0f; }";
    cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, nullptr);
    if (clBuildProgram(program, 1, &id, "", nullptr, nullptr) != CL_SUCCESS) exit(4);
    kernel = clCreateKernel(program, "twice", nullptr);
    buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, count * sizeof(float), nullptr, nullptr);
    clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
  }
  std::thread other(in_thread, milliseconds);
  for (int step = 0; step < 5; ++step) {
    tacho_range_push("step");
    if (device) {
      clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, count * sizeof(float), host.data(), 0, nullptr, nullptr);
      clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &count, nullptr, 0, nullptr, nullptr);
      clFinish(queue);
    }
    spin(milliseconds / 5);
    tacho_range_pop();
  }
  other.join();
}

// Steps of 20 ms; prints how many there were, and how many of them while recording was on from begin to end.
static int until_recording_ends() {
  bool seen = false;
  int beyond = 0, steps = 0, recorded = 0;
  for (const double begin = now_ms(); beyond < 5; ++steps) {
    if (now_ms() - begin > 60000) return 77;
    const bool before = tacho_active() != 0;
    tacho_range_push("step");
    spin(20);
    tacho_range_pop();
    const bool after = tacho_active() != 0;
    recorded += before && after;
    seen = seen || after;
    beyond += seen && !after;
  }
  printf("%d of %d\ndone\n", recorded, steps);
  return 0;
}

int main(int argc, char** argv) {
  double milliseconds = 60;
  bool device = true, forks = false;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "window") == 0) return until_recording_ends();
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
