// The cost of a traced OpenCL call: times a loop of the cheapest call that an application can make (clRetainEvent and
// clReleaseEvent of a user event) and prints ns per call. Run with and without tacho; the difference is ours.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  const long calls = argc > 1 ? std::atol(argv[1]) : 400000;
  cl_platform_id platform;
  cl_device_id device;
  if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS) return 1;
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS) return 1;
  cl_int error;
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
  cl_event event = clCreateUserEvent(context, &error);
  if (error != CL_SUCCESS) return 1;
  const auto now = [] {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC_RAW, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
  };
  double best = 1e30;
  for (int round = 0; round < 5; ++round) {
    const double begin = now();
    for (long i = 0; i < calls / 2; ++i) {
      clRetainEvent(event);
      clReleaseEvent(event);
    }
    const double each = (now() - begin) / static_cast<double>(calls / 2 * 2);
    best = each < best ? each : best;
  }
  std::printf("%.2f ns per call\n", best);
  clSetUserEventStatus(event, CL_COMPLETE);
  clReleaseEvent(event);
  clReleaseContext(context);
  return 0;
}
