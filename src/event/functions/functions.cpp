// Function names by domain (functions.h).
#include "event/functions/functions.h"

#include <algorithm>
#include <iterator>

#include "event/functions/functions_opencl.h"

namespace tacho::event {
namespace {

struct Function {
  uint32_t number;
  std::string_view name;
};
constexpr Function kHip[] = {
#define TACHO_HIP_FUNCTION(number, name) {number, #name},
#define TACHO_HIP_OPAQUE(number, name) {number, #name},
#include "event/functions/functions_hip.def"
};
static_assert(std::is_sorted(std::begin(kHip), std::end(kHip),
                             [](const Function& a, const Function& b) { return a.number < b.number; }));

std::string_view hip_name(uint32_t number) {
  const Function* const found = std::lower_bound(std::begin(kHip), std::end(kHip), number,
                                                 [](const Function& a, uint32_t b) { return a.number < b; });
  return found != std::end(kHip) && found->number == number ? found->name : std::string_view();
}

constexpr std::string_view kHsaCore[] = {
#define TACHO_HSA_CORE(name) #name,
#include "event/functions/functions_hsa.def"
};
constexpr std::string_view kHsaAmd[] = {
#define TACHO_HSA_AMD(name) #name,
#include "event/functions/functions_hsa.def"
};
static_assert(std::size(kHsaCore) < kFirstHsaAmd);

constexpr std::string_view kMpi[] = {
#define TACHO_MPI(name, ...) #name,
#include "event/functions/functions_mpi.def"
};

std::string_view hsa_name(uint32_t number) {
  if (number >= 1 && number <= std::size(kHsaCore)) return kHsaCore[number - 1];
  if (number >= kFirstHsaAmd && number - kFirstHsaAmd < std::size(kHsaAmd)) return kHsaAmd[number - kFirstHsaAmd];
  return {};
}

// HSA's functions on signals' values and queues' indices return those, not a status.
bool hsa_has_status(std::string_view name) {
  const bool value =
      name.starts_with("hsa_signal_") || name.starts_with("hsa_queue_") || name.starts_with("hsa_amd_signal_wait");
  return !value || name.find("create") != std::string_view::npos || name.find("destroy") != std::string_view::npos ||
         name.ends_with("inactivate") || name.starts_with("hsa_signal_group_");
}

// HIP's functions that return something else than an error code.
constexpr std::string_view kHipWithoutResult[] = {"hipApiName",       "hipCreateChannelDesc", "hipGetCmdName",
                                                  "hipGetErrorName",  "hipGetErrorString",    "hipGetStreamDeviceId",
                                                  "hipKernelNameRef", "hipKernelNameRefByPtr"};

// OpenCL's by number: those of the dispatch table from 1, extension functions from 1000.
struct OpenClFunction {
  std::string_view name, parameters;
};
constexpr OpenClFunction kOpenClCore[] = {
#define TACHO_CL_FUNCTION(number, name, count, parameters) {#name, parameters},
#define TACHO_CL_OPAQUE(number, name) {#name, ""},
#include "event/functions/functions_opencl.def"
};
constexpr OpenClFunction kOpenClExtensions[] = {
#define TACHO_CL_EXTENSION(number, name, parameters) {#name, parameters},
#include "event/functions/functions_opencl.def"
};
constexpr auto kFirstOpenClExtension = static_cast<size_t>(opencl::Function::clCreateCommandBufferKHR);
static_assert(static_cast<size_t>(opencl::Function::clSetContextDestructorCallback) == std::size(kOpenClCore));
static_assert(static_cast<size_t>(opencl::Function::clCreateCommandQueueWithPropertiesKHR) + 1 ==
              kFirstOpenClExtension + std::size(kOpenClExtensions));

OpenClFunction opencl_function(size_t number) {
  if (number >= 1 && number <= std::size(kOpenClCore)) return kOpenClCore[number - 1];
  if (number >= kFirstOpenClExtension && number - kFirstOpenClExtension < std::size(kOpenClExtensions))
    return kOpenClExtensions[number - kFirstOpenClExtension];
  return {};
}

}  // namespace

namespace opencl {

std::string_view function_name(uint16_t number) {
  return opencl_function(number).name;
}

std::string_view function_parameters(uint16_t number) {
  return opencl_function(number).parameters;
}

bool has_result(uint16_t number) {
  switch (static_cast<Function>(number)) {
    case Function::clGetExtensionFunctionAddress:
    case Function::clGetExtensionFunctionAddressForPlatform:
    case Function::clSVMAlloc:
    case Function::clSVMFree:
      return false;
    default:
      return !function_name(number).empty();
  }
}

}  // namespace opencl

std::string_view function_name(Domain domain, uint32_t number) {
  if (domain == Domain::kOpenCL) return opencl::function_name(static_cast<uint16_t>(number));
  if (domain == Domain::kHipRuntime) return hip_name(number);
  if (domain == Domain::kHsa) return hsa_name(number);
  if (domain == Domain::kMpi && number >= 1 && number <= std::size(kMpi)) return kMpi[number - 1];
  return {};
}

bool function_has_result(Domain domain, uint32_t number) {
  if (domain == Domain::kHipRuntime)
    return std::find(std::begin(kHipWithoutResult), std::end(kHipWithoutResult), hip_name(number)) ==
           std::end(kHipWithoutResult);
  if (domain == Domain::kHsa) return hsa_has_status(hsa_name(number));
  return domain != Domain::kOpenCL || opencl::has_result(static_cast<uint16_t>(number));
}

}  // namespace tacho::event
