// The OpenCL functions that the benchmarks call, loaded with dlopen so that tacho also runs on machines without OpenCL.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "roofline/measurement.h"

namespace tacho::roofline {

/// The functions in use, found in the loader at run time.
struct OpenCl {
#define TACHO_CL(name) decltype(&::cl##name) name = nullptr;
#define TACHO_CL_ALL                \
  TACHO_CL(GetPlatformIDs)          \
  TACHO_CL(GetPlatformInfo)         \
  TACHO_CL(GetDeviceIDs)            \
  TACHO_CL(GetDeviceInfo)           \
  TACHO_CL(CreateContext)           \
  TACHO_CL(ReleaseContext)          \
  TACHO_CL(CreateCommandQueue)      \
  TACHO_CL(ReleaseCommandQueue)     \
  TACHO_CL(CreateBuffer)            \
  TACHO_CL(ReleaseMemObject)        \
  TACHO_CL(CreateProgramWithSource) \
  TACHO_CL(BuildProgram)            \
  TACHO_CL(GetProgramBuildInfo)     \
  TACHO_CL(ReleaseProgram)          \
  TACHO_CL(CreateKernel)            \
  TACHO_CL(SetKernelArg)            \
  TACHO_CL(ReleaseKernel)           \
  TACHO_CL(EnqueueNDRangeKernel)    \
  TACHO_CL(EnqueueReadBuffer)       \
  TACHO_CL(EnqueueWriteBuffer)      \
  TACHO_CL(Finish)                  \
  TACHO_CL(GetEventProfilingInfo)   \
  TACHO_CL(ReleaseEvent)
  TACHO_CL_ALL
#undef TACHO_CL
  std::string why;  ///< not empty: why there is none

  OpenCl();
};

const OpenCl& opencl();

/// An error with the call's name and the code's meaning, unless `code` is CL_SUCCESS.
Status check(const char* call, cl_int code);

/// A property of a device; `otherwise` if the device lacks it.
template <typename T>
T device_value(cl_device_id device, cl_device_info what, T otherwise = {}) {
  T value{};
  return opencl().GetDeviceInfo(device, what, sizeof value, &value, nullptr) == CL_SUCCESS ? value : otherwise;
}
std::string device_text(cl_device_id device, cl_device_info what);

/// Context, queue and other state that a device shares with its benchmarks.
struct ClSession {
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  DeviceInfo info;
  bool cpu = false;
  std::string extensions;

  ClSession() = default;
  ClSession(const ClSession&) = delete;
  ClSession& operator=(const ClSession&) = delete;
  ~ClSession() {
    if (queue != nullptr) opencl().ReleaseCommandQueue(queue);
    if (context != nullptr) opencl().ReleaseContext(context);
  }
};

/// A kernel with its buffers, which are its first arguments.
class ClKernel {
 protected:
  explicit ClKernel(std::shared_ptr<ClSession> session) : session_(std::move(session)) {}
  ClKernel(const ClKernel&) = delete;
  ClKernel& operator=(const ClKernel&) = delete;
  ~ClKernel();

  /// Compiles the kernel. The error quotes the first line of the compiler's log that contains an error.
  Status build(std::string_view source, const std::string& options, const char* kernel);
  /// Allocates buffer `which` and, unless `data` is null, fills it.
  Status allocate(int which, size_t size, const void* data);
  template <typename T>
  Result<std::vector<T>> download(int which, size_t offset, size_t count) {
    std::vector<T> values(count);
    TACHO_TRY(read(which, offset, count * sizeof(T), values.data()));
    return values;
  }
  template <typename T>
  Status argument(cl_uint index, const T& value) {
    return roofline::check("clSetKernelArg", opencl().SetKernelArg(kernel_, index, sizeof value, &value));
  }
  Status local_argument(cl_uint index, size_t size) {
    return roofline::check("clSetKernelArg", opencl().SetKernelArg(kernel_, index, size, nullptr));
  }
  /// Runs groups_ work-groups of group_size_ items. Returns the duration in ns.
  Result<double> launch();

  std::shared_ptr<ClSession> session_;
  std::array<cl_mem, 4> memory_{};
  uint32_t group_size_ = 1, groups_ = 1;

 private:
  Status read(int which, size_t offset, size_t size, void* to);

  cl_program program_ = nullptr;
  cl_kernel kernel_ = nullptr;
};

}  // namespace tacho::roofline
