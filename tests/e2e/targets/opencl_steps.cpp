// A small OpenCL program with markers, for the tests of the rocprofv3 command line:
//   opencl_steps [--steps N] [--sleep MS] [--fork K] [--regions] [--code C] [--no-markers] [--windows N]
// Each step: a range "step", two kernels copy_values, and in a range "inner" one kernel whose name is mangled
// C++. With --windows the program goes on until it has seen recording begin and end N times and ten steps longer,
// prints a
// letter per step (+ recorded, - not recorded, ? changed meanwhile), and exits with 77 when that takes over a minute.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tacho/tacho.h"

namespace {

const char* const kSource = "__kernel void copy_values(__global const float* a, __global float* b) { "
                            "b[get_global_id(0)] = a[get_global_id(0)]; }\n"
                            "__kernel void _Z5scalePfi(__global const float* a, __global float* b) { "
                            "b[get_global_id(0)] = 2 * a[get_global_id(0)]; }\n";

int g_steps = 3, g_sleep_ms = 0, g_children = 0, g_code = 0, g_windows = 0;
bool g_regions = false, g_markers = true;

void check(cl_int code, const char* what) {
  if (code == CL_SUCCESS) return;
  std::fprintf(stderr, "%s: %d\n", what, code);
  std::exit(90);
}

void switch_recording(const char* name) {
  using Switch = int (*)(uint64_t);
  if (const auto function = reinterpret_cast<Switch>(dlsym(RTLD_DEFAULT, name)); function != nullptr) function(0);
}

// The program's own view of the times when it is recorded.
class Windows {
 public:
  void step_begins() { before_ = tacho_active() != 0; }
  void step_ends() {
    const bool after = tacho_active() != 0;
    steps_ += before_ != after ? '?' : after ? '+' : '-';
    if (was_ && !after) ++ended_;
    was_ = after;
    beyond_ = ended_ >= g_windows ? beyond_ + 1 : 0;
  }
  bool seen() const { return beyond_ > 10; }
  const std::string& steps() const { return steps_; }

 private:
  std::string steps_;
  bool before_ = false, was_ = false;
  int ended_ = 0, beyond_ = 0;
};

void work() {
  cl_platform_id platform;
  cl_device_id device;
  check(clGetPlatformIDs(1, &platform, nullptr), "platform");
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "device");
  cl_int code;
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
  check(code, "context");
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
  check(code, "queue");
  const char* source = kSource;
  cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, &code);
  check(code, "program");
  check(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "build");
  cl_kernel copy = clCreateKernel(program, "copy_values", &code);
  check(code, "copy_values");
  cl_kernel scale = clCreateKernel(program, "_Z5scalePfi", &code);
  check(code, "scale");
  const size_t count = 4096, group = 64;
  std::vector<float> host(count, 1.0f);
  cl_mem a = clCreateBuffer(context, CL_MEM_READ_WRITE, count * sizeof(float), nullptr, &code);
  cl_mem b = clCreateBuffer(context, CL_MEM_READ_WRITE, count * sizeof(float), nullptr, &code);
  for (cl_kernel kernel : {copy, scale}) {
    check(clSetKernelArg(kernel, 0, sizeof a, &a), "argument");
    check(clSetKernelArg(kernel, 1, sizeof b, &b), "argument");
  }
  check(clEnqueueWriteBuffer(queue, a, CL_TRUE, 0, count * sizeof(float), host.data(), 0, nullptr, nullptr), "write");
  const auto push = [](const char* text) {
    if (g_markers) tacho_range_push(text);
  };
  const auto pop = [] {
    if (g_markers) tacho_range_pop();
  };
  Windows windows;
  const time_t begin = time(nullptr);
  for (int step = 0; g_windows != 0 ? !windows.seen() : step < g_steps; ++step) {
    if (time(nullptr) - begin > 60 && g_windows != 0) std::exit(77);
    windows.step_begins();
    // With --regions only every second step is to be recorded.
    if (g_regions) switch_recording(step % 2 == 1 ? "roctxProfilerResume" : "roctxProfilerPause");
    push("step");
    for (int i = 0; i < 2; ++i)
      check(clEnqueueNDRangeKernel(queue, copy, 1, nullptr, &count, &group, 0, nullptr, nullptr), "launch");
    push("inner");
    check(clEnqueueNDRangeKernel(queue, scale, 1, nullptr, &count, &group, 0, nullptr, nullptr), "launch");
    pop();
    check(clFinish(queue), "finish");
    pop();
    windows.step_ends();
    if (g_sleep_ms > 0) usleep(static_cast<useconds_t>(g_sleep_ms) * 1000);
  }
  if (g_windows != 0) std::printf("steps %s\n", windows.steps().c_str());
  check(clEnqueueReadBuffer(queue, b, CL_TRUE, 0, count * sizeof(float), host.data(), 0, nullptr, nullptr), "read");
  clReleaseMemObject(a);
  clReleaseMemObject(b);
  clReleaseKernel(copy);
  clReleaseKernel(scale);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  if (host[7] != 2.0f) std::exit(91);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const auto number = [&] { return i + 1 < argc ? std::atoi(argv[++i]) : 0; };
    if (std::strcmp(argv[i], "--steps") == 0)
      g_steps = number();
    else if (std::strcmp(argv[i], "--sleep") == 0)
      g_sleep_ms = number();
    else if (std::strcmp(argv[i], "--fork") == 0)
      g_children = number();
    else if (std::strcmp(argv[i], "--windows") == 0)
      g_windows = number();
    else if (std::strcmp(argv[i], "--code") == 0)
      g_code = number();
    else if (std::strcmp(argv[i], "--regions") == 0)
      g_regions = true;
    else if (std::strcmp(argv[i], "--no-markers") == 0)
      g_markers = false;
  }
  for (int child = 0; child < g_children; ++child)
    if (fork() == 0) {
      work();
      std::exit(0);
    }
  if (g_children == 0) work();
  int status, failures = 0;
  while (wait(&status) > 0) failures += status != 0;
  std::printf("done %d\n", g_steps);
  return failures != 0 ? 92 : g_code;
}
