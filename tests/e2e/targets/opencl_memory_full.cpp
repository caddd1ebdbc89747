// Allocates buffers until the device has no memory left, uses each, and ends as such a program does:
// opencl_memory_full MIB_OF_EACH MOST. A device of PoCL has as much as the process may map: from the start on that is
// 1 GiB more. Prints how many it got; exit code 3 if memory ran out.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  const size_t bytes = (argc > 1 ? static_cast<size_t>(atoi(argv[1])) : 64) << 20;
  const int most = argc > 2 ? atoi(argv[2]) : 64;
  cl_platform_id platform;
  cl_device_id device;
  if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS ||
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS)
    return 1;
  cl_int status = CL_SUCCESS;
  const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
  const cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
  unsigned long pages = 0;
  if (FILE* const statm = fopen("/proc/self/statm", "r")) {
    if (fscanf(statm, "%lu", &pages) != 1) pages = 0;
    fclose(statm);
  }
  const rlimit limit = {pages * 4096 + (1UL << 30), RLIM_INFINITY};
  if (pages == 0 || setrlimit(RLIMIT_AS, &limit) != 0) return 1;
  std::vector<cl_mem> buffers;
  const char zero = 0;
  while (static_cast<int>(buffers.size()) < most) {
    const cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, nullptr, &status);
    if (status == CL_SUCCESS) {
      buffers.push_back(buffer);
      status = clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, 1, &zero, 0, nullptr, nullptr);
    }
    if (status == CL_SUCCESS) continue;
    printf("%zu buffers, then error %d\n", buffers.size(), status);
    fflush(stdout);
    _Exit(3);
  }
  printf("%zu buffers\n", buffers.size());
  for (const cl_mem buffer : buffers) clReleaseMemObject(buffer);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return 0;
}
