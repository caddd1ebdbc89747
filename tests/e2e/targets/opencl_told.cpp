// A program that uses OpenCL when it is told to: reads commands from its standard input and answers each with a line.
//   run N     N launches in a queue with profiling, a read of 4096 bytes after every tenth, and clFinish
//   plain N   the same in a queue that was made without profiling
//   new N     the same in a queue that is made now, without profiling, and released again
//   other N   the same on the second platform, if there is one: all is made anew and released again
//   profiling what the program sees of its queues' profiling
//   fork      a child does nothing and ends in order
//   result    what came out of all launches
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr size_t kItems = 1024;
cl_context g_context;
cl_device_id g_device;
cl_kernel g_kernel;
cl_mem g_memory;
std::vector<cl_uint> g_host(kItems, 0);
cl_uint g_round = 0;

void check(cl_int code, const char* what) {
  if (code == CL_SUCCESS) return;
  printf("%s: %d\n", what, code);
  exit(2);
}
cl_command_queue make_queue(cl_command_queue_properties properties) {
  cl_int code = CL_SUCCESS;
  const cl_command_queue queue = clCreateCommandQueue(g_context, g_device, properties, &code);
  check(code, "clCreateCommandQueue");
  return queue;
}
void read(cl_command_queue queue) {
  check(clEnqueueReadBuffer(queue, g_memory, CL_TRUE, 0, kItems * sizeof(cl_uint), g_host.data(), 0, nullptr, nullptr),
        "clEnqueueReadBuffer");
}
void run(cl_command_queue queue, long count) {
  for (long i = 0; i < count; ++i) {
    ++g_round;
    check(clSetKernelArg(g_kernel, 1, sizeof g_round, &g_round), "clSetKernelArg");
    const size_t items = kItems, group = 64;
    check(clEnqueueNDRangeKernel(queue, g_kernel, 1, nullptr, &items, &group, 0, nullptr, nullptr),
          "clEnqueueNDRangeKernel");
    if (i % 10 == 9) read(queue);
  }
  check(clFinish(queue), "clFinish");
}
const char* const kSource =
    "kernel void mix_up(global uint* a, uint k) { size_t i = get_global_id(0); a[i] = a[i] * 1664525u + k; }";
cl_kernel make_kernel(cl_context context, cl_device_id device, cl_mem memory) {
  cl_int code = CL_SUCCESS;
  const char* text = kSource;
  const cl_program program = clCreateProgramWithSource(context, 1, &text, nullptr, &code);
  check(code, "clCreateProgramWithSource");
  check(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
  const cl_kernel kernel = clCreateKernel(program, "mix_up", &code);
  check(code, "clCreateKernel");
  check(clReleaseProgram(program), "clReleaseProgram");
  check(clSetKernelArg(kernel, 0, sizeof memory, &memory), "clSetKernelArg");
  return kernel;
}
cl_mem make_memory(cl_context context) {
  cl_int code = CL_SUCCESS;
  const cl_mem memory =
      clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, kItems * sizeof(cl_uint), g_host.data(), &code);
  check(code, "clCreateBuffer");
  return memory;
}
void run_on_other(long count) {
  cl_platform_id platforms[2] = {};
  cl_uint found = 0;
  check(clGetPlatformIDs(2, platforms, &found), "clGetPlatformIDs");
  if (found < 2) return;
  const cl_context context = g_context;
  const cl_device_id device = g_device;
  const cl_kernel kernel = g_kernel;
  const cl_mem memory = g_memory;
  cl_int code = CL_SUCCESS;
  check(clGetDeviceIDs(platforms[1], CL_DEVICE_TYPE_ALL, 1, &g_device, nullptr), "clGetDeviceIDs");
  g_context = clCreateContext(nullptr, 1, &g_device, nullptr, nullptr, &code);
  check(code, "clCreateContext");
  g_memory = make_memory(g_context);
  g_kernel = make_kernel(g_context, g_device, g_memory);
  const cl_command_queue queue = make_queue(CL_QUEUE_PROFILING_ENABLE);
  run(queue, count);
  check(clReleaseCommandQueue(queue), "clReleaseCommandQueue");
  check(clReleaseKernel(g_kernel), "clReleaseKernel");
  check(clReleaseMemObject(g_memory), "clReleaseMemObject");
  check(clReleaseContext(g_context), "clReleaseContext");
  g_context = context, g_device = device, g_kernel = kernel, g_memory = memory;
}
const char* profiling(cl_command_queue queue) {
  cl_command_queue_properties properties = 0;
  check(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, nullptr),
        "clGetCommandQueueInfo");
  return (properties & CL_QUEUE_PROFILING_ENABLE) != 0 ? "yes" : "no";
}

}  // namespace

int main() {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  cl_platform_id platform = nullptr;
  check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &g_device, nullptr), "clGetDeviceIDs");
  cl_int code = CL_SUCCESS;
  g_context = clCreateContext(nullptr, 1, &g_device, nullptr, nullptr, &code);
  check(code, "clCreateContext");
  const cl_command_queue timed = make_queue(CL_QUEUE_PROFILING_ENABLE), plain = make_queue(0);
  g_memory = make_memory(g_context);
  g_kernel = make_kernel(g_context, g_device, g_memory);
  run(timed, 10);
  run(plain, 10);
  puts("ready");
  char line[64];
  while (fgets(line, sizeof line, stdin) != nullptr) {
    const char* const blank = strchr(line, ' ');
    const long count = blank != nullptr ? atol(blank) : 0;
    if (strncmp(line, "run", 3) == 0) {
      run(timed, count);
    } else if (strncmp(line, "plain", 5) == 0) {
      run(plain, count);
    } else if (strncmp(line, "other", 5) == 0) {
      run_on_other(count);
    } else if (strncmp(line, "new", 3) == 0) {
      const cl_command_queue queue = make_queue(0);
      run(queue, count);
      printf("%s\n", profiling(queue));
      check(clReleaseCommandQueue(queue), "clReleaseCommandQueue");
      continue;
    } else if (strncmp(line, "profiling", 9) == 0) {
      printf("%s %s\n", profiling(timed), profiling(plain));
      continue;
    } else if (strncmp(line, "fork", 4) == 0) {
      const pid_t child = fork();
      if (child == 0) _exit(7);
      int status = 0;
      waitpid(child, &status, 0);
      printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
      continue;
    } else if (strncmp(line, "result", 6) == 0) {
      unsigned long sum = 0;
      read(timed);
      for (const cl_uint each : g_host) sum = sum * 31 + each;
      printf("%u %lx\n", g_round, sum);
      continue;
    }
    puts("done");
  }
  return 0;
}
