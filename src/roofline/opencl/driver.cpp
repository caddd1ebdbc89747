// OpenCL's loader and what its answers mean (opencl_driver.h).
#include "roofline/opencl/driver.h"

#include <dlfcn.h>

#include <array>
#include <cstring>
#include <utility>

namespace tacho::roofline {

OpenCl::OpenCl() {
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    why = "no libOpenCL.so.1, so no OpenCL devices";
    return;
  }
#define TACHO_CL(name)                                                 \
  name = reinterpret_cast<decltype(name)>(dlsym(library, "cl" #name)); \
  if (name == nullptr) why = "libOpenCL.so.1 has no cl" #name;
  TACHO_CL_ALL
#undef TACHO_CL
}

const OpenCl& opencl() {
  static const OpenCl loaded;
  return loaded;
}

Status check(const char* call, cl_int code) {
  if (code == CL_SUCCESS) return {};
  static constexpr std::array<std::pair<cl_int, const char*>, 8> kNames = {
      {{CL_DEVICE_NOT_AVAILABLE, "device not available"},
       {CL_MEM_OBJECT_ALLOCATION_FAILURE, "out of device memory"},
       {CL_OUT_OF_RESOURCES, "out of resources"},
       {CL_OUT_OF_HOST_MEMORY, "out of host memory"},
       {CL_BUILD_PROGRAM_FAILURE, "the device's compiler refuses the kernel"},
       {CL_INVALID_BUFFER_SIZE, "buffer too large for the device"},
       {CL_INVALID_WORK_GROUP_SIZE, "work-group too large for the device"},
       {CL_COMPILER_NOT_AVAILABLE, "the device has no compiler"}}};
  for (const auto& [known, text] : kNames)
    if (known == code) return fail("{}: {} ({})", call, text, code);
  return fail("{}: error {}", call, code);
}

std::string device_text(cl_device_id device, cl_device_info what) {
  size_t size = 0;
  if (opencl().GetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0 || size > 1 << 20) return {};
  std::string text(size, '\0');
  if (opencl().GetDeviceInfo(device, what, size, text.data(), nullptr) != CL_SUCCESS) return {};
  text.resize(std::strlen(text.c_str()));
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

ClKernel::~ClKernel() {
  for (const cl_mem memory : memory_)
    if (memory != nullptr) opencl().ReleaseMemObject(memory);
  if (kernel_ != nullptr) opencl().ReleaseKernel(kernel_);
  if (program_ != nullptr) opencl().ReleaseProgram(program_);
}

Status ClKernel::build(std::string_view source, const std::string& options, const char* kernel) {
  const char* text = source.data();
  const size_t length = source.size();
  cl_int code = 0;
  program_ = opencl().CreateProgramWithSource(session_->context, 1, &text, &length, &code);
  TACHO_TRY(check("clCreateProgramWithSource", code));
  code = opencl().BuildProgram(program_, 1, &session_->device, options.c_str(), nullptr, nullptr);
  if (code != CL_SUCCESS) {
    size_t size = 0;
    std::string log;
    if (opencl().GetProgramBuildInfo(program_, session_->device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) ==
            CL_SUCCESS &&
        size > 0 && size < 1 << 24) {
      log.resize(size);
      if (opencl().GetProgramBuildInfo(program_, session_->device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr) !=
          CL_SUCCESS)
        log.clear();
      log.resize(std::strlen(log.c_str()));
    }
    const size_t at = log.find("error");
    return fail("the device's compiler refuses the kernel ({}): {}", code,
                at == std::string::npos ? "no message" : log.substr(at, log.find('\n', at) - at));
  }
  kernel_ = opencl().CreateKernel(program_, kernel, &code);
  return check("clCreateKernel", code);
}

Status ClKernel::allocate(int which, size_t size, const void* data) {
  cl_int code = 0;
  cl_mem& memory = memory_[static_cast<size_t>(which)];
  memory = opencl().CreateBuffer(session_->context, CL_MEM_READ_WRITE, size, nullptr, &code);
  if (code != CL_SUCCESS)
    return fail("{} KiB of device memory: {}", size >> 10, check("clCreateBuffer", code).error().message);
  if (data == nullptr) return {};
  return check("clEnqueueWriteBuffer",
               opencl().EnqueueWriteBuffer(session_->queue, memory, CL_TRUE, 0, size, data, 0, nullptr, nullptr));
}

Status ClKernel::read(int which, size_t offset, size_t size, void* to) {
  return check("clEnqueueReadBuffer", opencl().EnqueueReadBuffer(session_->queue, memory_[static_cast<size_t>(which)],
                                                                 CL_TRUE, offset, size, to, 0, nullptr, nullptr));
}

Result<double> ClKernel::launch() {
  const size_t global = size_t{groups_} * group_size_, local = group_size_;
  cl_event event = nullptr;
  TACHO_TRY(check("clEnqueueNDRangeKernel", opencl().EnqueueNDRangeKernel(session_->queue, kernel_, 1, nullptr, &global,
                                                                          &local, 0, nullptr, &event)));
  Status status = check("the kernel", opencl().Finish(session_->queue));
  cl_ulong begin = 0, end = 0;
  const auto profile = [&](cl_profiling_info what, cl_ulong& value) {
    if (status)
      status =
          check("clGetEventProfilingInfo", opencl().GetEventProfilingInfo(event, what, sizeof value, &value, nullptr));
  };
  profile(CL_PROFILING_COMMAND_START, begin);
  profile(CL_PROFILING_COMMAND_END, end);
  opencl().ReleaseEvent(event);
  if (!status) return fail_with(std::move(status));
  return end > begin ? static_cast<double>(end - begin) : 0;
}

}  // namespace tacho::roofline
