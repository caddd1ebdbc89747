// A program that uses OpenCL when it is told to: reads commands from its standard input and answers each with a line.
//   run N     N launches in a queue with profiling, a read of 4096 bytes after every tenth, and clFinish
//   plain N   the same in a queue that was made without profiling
//   new N     the same in a queue that is made now, without profiling, and released again
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
  const char* const source =
      "kernel void mix_up(global uint* a, uint k) { size_t i = get_global_id(0); a[i] = a[i] * 1664525u + k; }";
  const char* text = source;
  const cl_program program = clCreateProgramWithSource(g_context, 1, &text, nullptr, &code);
  check(code, "clCreateProgramWithSource");
  check(clBuildProgram(program, 1, &g_device, "", nullptr, nullptr), "clBuildProgram");
  g_kernel = clCreateKernel(program, "mix_up", &code);
  check(code, "clCreateKernel");
  g_memory = clCreateBuffer(g_context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, kItems * sizeof(cl_uint),
                            g_host.data(), &code);
  check(code, "clCreateBuffer");
  check(clSetKernelArg(g_kernel, 0, sizeof g_memory, &g_memory), "clSetKernelArg");
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
