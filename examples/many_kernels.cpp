// many_kernels: a storm of small launches of many kernels, as in small-batch inference, and the cost of a launch.
//   many_kernels [-n launches] [-k different kernels] [-s work-items] [-p | -q]
// With -p the queue measures every launch (CL_QUEUE_PROFILING_ENABLE), as under a profiler: the cost of that alone.
// With -q the program also asks for the four times of every launch, a few launches at a time as they end, and only
// adds them up: the runtime's cost for a program that wants to know them.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

namespace {

void check(const char* what, cl_int code) {
  if (code == CL_SUCCESS) return;
  fprintf(stderr, "many_kernels: %s failed with OpenCL error %d\n", what, code);
  exit(1);
}

// The times of launches, asked for as these end.
class Times {
 public:
  void add(cl_event event) {
    running_.push_back(event);
    constexpr size_t kBatch = 48;
    if (++added_ % kBatch == 0) collect(2 * kBatch);
  }
  /// Looks at no more than `most` launches, from the oldest on, until one still runs.
  void collect(size_t most) {
    for (; most > 0 && !running_.empty(); --most) {
      const cl_event event = running_.front();
      cl_int state = CL_QUEUED;
      check("clGetEventInfo", clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr));
      if (state != CL_COMPLETE) return;
      cl_ulong times[4] = {};
      constexpr cl_profiling_info kWhat[] = {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT,
                                             CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
      for (int i = 0; i < 4; ++i)
        check("clGetEventProfilingInfo", clGetEventProfilingInfo(event, kWhat[i], sizeof times[i], &times[i], nullptr));
      sum_ += times[3] - times[2];
      check("clReleaseEvent", clReleaseEvent(event));
      running_.pop_front();
    }
  }
  uint64_t sum() const { return sum_; }

 private:
  std::deque<cl_event> running_;
  size_t added_ = 0;
  uint64_t sum_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  long launches = 20000, kinds = 16, items = 256;
  cl_command_queue_properties properties = 0;
  bool ask = false;
  for (int option; (option = getopt(argc, argv, "n:k:s:pqh")) != -1;) {
    if (option == 'p' || option == 'q') {
      properties = CL_QUEUE_PROFILING_ENABLE;
      ask = option == 'q';
      continue;
    }
    char* end = nullptr;
    long* const value = option == 'n' ? &launches : option == 'k' ? &kinds : option == 's' ? &items : nullptr;
    if (value == nullptr || (*value = strtol(optarg, &end, 10), *end != '\0' || *value < 1)) {
      fprintf(stderr, "usage: many_kernels [-n launches] [-k different kernels] [-s work-items] [-p | -q]\n");
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
  const cl_mem buffer =
      clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, global * sizeof(int), values.data(), &code);
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
  Times times;
  for (long i = 0; i < launches; ++i) {
    cl_event event = nullptr;
    check("clEnqueueNDRangeKernel", clEnqueueNDRangeKernel(queue, kernels[static_cast<size_t>(i % kinds)], 1, nullptr,
                                                           &global, local, 0, nullptr, ask ? &event : nullptr));
    if (ask) times.add(event);
  }
  const auto enqueued = std::chrono::steady_clock::now();
  check("clFinish", clFinish(queue));
  times.collect(SIZE_MAX);
  const auto end = std::chrono::steady_clock::now();
  check("clEnqueueReadBuffer",
        clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, global * sizeof(int), values.data(), 0, nullptr, nullptr));

  long expected = 0;
  for (long i = 0; i < kinds; ++i) expected += i + 1;
  for (long i = 0; i < launches; ++i) expected += i % kinds + 1;
  const auto each = [&](auto span) {
    return std::chrono::duration<double, std::nano>(span).count() / static_cast<double>(launches);
  };
  printf("%ld launches of %ld kernels: %.0f ns each to enqueue, %.0f ns each until all were done\n", launches, kinds,
         each(enqueued - start), each(end - start));
  if (ask) printf("%.0f ns each on the device\n", static_cast<double>(times.sum()) / static_cast<double>(launches));
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
