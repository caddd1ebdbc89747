// Programs with a fault that a trace shows, and the same work without it, for the tests of findings:
//   opencl_findings launches [mended]   some code of the host before each short kernel; mended: one long kernel at a time
//   opencl_findings copies [mended]     reads the result after every kernel and waits; mended: reads once at the end
//   opencl_findings waits [mended]      waits after every kernel, then computes; mended: waits at the end
//   opencl_findings build               builds a program, and runs one kernel
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

const char* const kSource = "__kernel void work(__global float* a, int rounds) {\n"
                            "  float x = a[get_global_id(0)];\n"
                            "  for (int i = 0; i < rounds; ++i) x = x * 1.0001f + 0.5f;\n"
                            "  a[get_global_id(0)] = x;\n"
                            "}\n";
constexpr size_t kItems = 1 << 21;  // 8 MiB

void check(cl_int code, const char* what) {
  if (code == CL_SUCCESS) return;
  std::fprintf(stderr, "%s: %d\n", what, code);
  std::exit(90);
}

void spin(int64_t microseconds) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto at = [&] { return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec; };
  const int64_t until = at() + microseconds * 1000;
  while (at() < until) clock_gettime(CLOCK_MONOTONIC, &now);
}

class Program {
 public:
  Program() {
    cl_platform_id platform;
    check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
    cl_device_id device;
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
    cl_int code;
    const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
    check(code, "clCreateContext");
    queue_ = clCreateCommandQueue(context, device, 0, &code);
    check(code, "clCreateCommandQueue");
    const cl_program program =
        clCreateProgramWithSource(context, 1, &const_cast<const char*&>(kSource), nullptr, &code);
    check(code, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
    kernel_ = clCreateKernel(program, "work", &code);
    check(code, "clCreateKernel");
    host_.resize(kItems, 1.0f);
    buffer_ =
        clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, kItems * sizeof(float), host_.data(), &code);
    check(code, "clCreateBuffer");
    check(clSetKernelArg(kernel_, 0, sizeof buffer_, &buffer_), "clSetKernelArg");
  }
  void launch(size_t items, int rounds) {
    check(clSetKernelArg(kernel_, 1, sizeof rounds, &rounds), "clSetKernelArg");
    check(clEnqueueNDRangeKernel(queue_, kernel_, 1, nullptr, &items, nullptr, 0, nullptr, nullptr),
          "clEnqueueNDRangeKernel");
  }
  void read(cl_bool blocking) {
    check(clEnqueueReadBuffer(queue_, buffer_, blocking, 0, kItems * sizeof(float), host_.data(), 0, nullptr, nullptr),
          "clEnqueueReadBuffer");
  }
  void finish() { check(clFinish(queue_), "clFinish"); }

 private:
  cl_command_queue queue_ = nullptr;
  cl_kernel kernel_ = nullptr;
  cl_mem buffer_ = nullptr;
  std::vector<float> host_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const bool mended = argc > 2 && std::strcmp(argv[2], "mended") == 0;
  Program program;
  program.launch(64, 1);  // a cost of the first launch only
  program.finish();
  if (what == "launches") {
    for (int i = 0; i < (mended ? 40 : 2000); ++i) {
      if (!mended) spin(60);
      program.launch(mended ? kItems : 64, mended ? 200 : 10);
    }
  } else if (what == "copies") {
    for (int i = 0; i < 200; ++i) {
      program.launch(kItems, 1);
      if (!mended) program.read(CL_TRUE);
    }
    program.read(CL_FALSE);
  } else if (what == "waits") {
    for (int i = 0; i < 500; ++i) {
      program.launch(1 << 16, 20);
      if (!mended) program.finish();
      if (!mended) spin(80);
    }
    if (mended) spin(500 * 80);
  } else if (what != "build") {
    std::fprintf(stderr, "usage: opencl_findings launches|copies|waits|build [mended]\n");
    return 2;
  }
  program.finish();
  return 0;
}
