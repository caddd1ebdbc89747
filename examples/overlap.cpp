// overlap: two queues with work that can run side by side, and how much of it did, measured by the program itself.
//   overlap [-n kernels per queue] [-w work per work-item] [-q queues]
// Prints for all queues the time from the first start to the last end, the sum of the kernels' times, and the
// overlap: the share of that span during which kernels of more than one queue ran.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace {

// One workgroup each: on a device with several compute units two such kernels do not wait for each other.
const char* const kSource = R"(
kernel void churn(global uint* values, int rounds) {
  uint v = values[get_global_id(0)];
  for (int i = 0; i < rounds; ++i) v = v * 1664525u + 1013904223u;
  values[get_global_id(0)] = v;
}
)";

void check(const char* what, cl_int code) {
  if (code == CL_SUCCESS) return;
  fprintf(stderr, "overlap: %s failed with OpenCL error %d\n", what, code);
  exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  long kernels = 100, work = 20000, queue_count = 2;
  for (int option; (option = getopt(argc, argv, "n:w:q:h")) != -1;) {
    char* end = nullptr;
    long* const value = option == 'n' ? &kernels : option == 'w' ? &work : option == 'q' ? &queue_count : nullptr;
    if (value == nullptr || (*value = strtol(optarg, &end, 10), *end != '\0' || *value < 1)) {
      fprintf(stderr, "usage: overlap [-n kernels per queue] [-w work per work-item] [-q queues]\n");
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
  const char* text = kSource;
  const cl_program program = clCreateProgramWithSource(context, 1, &text, nullptr, &code);
  check("clCreateProgramWithSource", code);
  check("clBuildProgram", clBuildProgram(program, 1, &device, "", nullptr, nullptr));

  const size_t items = 64;
  std::vector<cl_command_queue> queues;
  std::vector<cl_kernel> queue_kernels;
  std::vector<cl_mem> buffers;
  const cl_int rounds = static_cast<cl_int>(work);
  for (long i = 0; i < queue_count; ++i) {
    queues.push_back(clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &code));
    check("clCreateCommandQueue", code);
    queue_kernels.push_back(clCreateKernel(program, "churn", &code));
    check("clCreateKernel", code);
    std::vector<cl_uint> start(items, static_cast<cl_uint>(i));
    buffers.push_back(clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, items * sizeof(cl_uint),
                                     start.data(), &code));
    check("clCreateBuffer", code);
    check("clSetKernelArg", clSetKernelArg(queue_kernels.back(), 0, sizeof(cl_mem), &buffers.back()));
    check("clSetKernelArg", clSetKernelArg(queue_kernels.back(), 1, sizeof rounds, &rounds));
    // The first launch compiles for this workgroup size.
    check("clEnqueueNDRangeKernel",
          clEnqueueNDRangeKernel(queues.back(), queue_kernels.back(), 1, nullptr, &items, &items, 0, nullptr, nullptr));
    check("clFinish", clFinish(queues.back()));
  }

  // All queues start at one gate.
  const cl_event gate = clCreateUserEvent(context, &code);
  check("clCreateUserEvent", code);
  std::vector<std::vector<cl_event>> events(queues.size());
  for (long n = 0; n < kernels; ++n)
    for (size_t q = 0; q < queues.size(); ++q) {
      cl_event event = nullptr;
      check("clEnqueueNDRangeKernel", clEnqueueNDRangeKernel(queues[q], queue_kernels[q], 1, nullptr, &items, &items,
                                                             n == 0 ? 1 : 0, n == 0 ? &gate : nullptr, &event));
      events[q].push_back(event);
    }
  for (const cl_command_queue queue : queues) check("clFlush", clFlush(queue));
  check("clSetUserEventStatus", clSetUserEventStatus(gate, CL_COMPLETE));
  for (const cl_command_queue queue : queues) check("clFinish", clFinish(queue));

  // A sweep over starts and ends: how long at least one kernel ran, and how long more than one.
  std::vector<std::pair<cl_ulong, int>> edges;
  cl_ulong total = 0;
  for (const auto& list : events)
    for (const cl_event event : list) {
      cl_ulong start = 0, end = 0;
      check("clGetEventProfilingInfo",
            clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, nullptr));
      check("clGetEventProfilingInfo",
            clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr));
      edges.push_back({start, 1});
      edges.push_back({end, -1});
      total += end - start;
      check("clReleaseEvent", clReleaseEvent(event));
    }
  std::sort(edges.begin(), edges.end());
  int running = 0;
  cl_ulong busy = 0, shared = 0;
  for (size_t i = 0; i + 1 < edges.size(); ++i) {
    running += edges[i].second;
    const cl_ulong length = edges[i + 1].first - edges[i].first;
    if (running > 0) busy += length;
    if (running > 1) shared += length;
  }
  printf("queues %zu, kernels %zu\n", queues.size(), queues.size() * static_cast<size_t>(kernels));
  printf("span %.3f ms, kernel time %.3f ms\n", static_cast<double>(edges.back().first - edges.front().first) / 1e6,
         static_cast<double>(total) / 1e6);
  printf("overlap %.1f %%\n", busy == 0 ? 0.0 : 100.0 * static_cast<double>(shared) / static_cast<double>(busy));

  clReleaseEvent(gate);
  for (const cl_mem buffer : buffers) clReleaseMemObject(buffer);
  for (const cl_kernel kernel : queue_kernels) clReleaseKernel(kernel);
  for (const cl_command_queue queue : queues) clReleaseCommandQueue(queue);
  clReleaseProgram(program);
  clReleaseContext(context);
  return 0;
}
