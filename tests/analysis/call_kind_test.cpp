// Kinds of calls by name: one function of every kind and API, and the exceptions.
#include "analysis/call_kind.h"

#include <gtest/gtest.h>

#include <string>

namespace tacho::analysis {
namespace {

using event::Domain;

struct Case {
  Domain domain;
  const char* function;
  CallKind kind;
};

constexpr Case kCases[] = {
    {Domain::kCudaRuntime, "cudaStreamSynchronize", CallKind::kWait},
    {Domain::kCudaDriver, "cuCtxSynchronize", CallKind::kWait},
    {Domain::kHipRuntime, "hipDeviceSynchronize", CallKind::kWait},
    {Domain::kHsa, "hsa_signal_wait_scacquire", CallKind::kWait},
    {Domain::kOpenCL, "clFinish", CallKind::kWait},
    {Domain::kOpenCL, "clWaitForEvents", CallKind::kWait},

    {Domain::kCudaRuntime, "cudaLaunchKernel", CallKind::kLaunch},
    {Domain::kCudaRuntime, "cudaGraphLaunch_ptsz", CallKind::kLaunch},
    {Domain::kCudaDriver, "cuLaunchKernelEx", CallKind::kLaunch},
    {Domain::kCudaDriver, "cuLaunchHostFunc", CallKind::kOther},
    {Domain::kHipRuntime, "hipModuleLaunchKernel", CallKind::kLaunch},
    {Domain::kHipRuntime, "hipLaunchHostFunc", CallKind::kOther},
    {Domain::kOpenCL, "clEnqueueNDRangeKernel", CallKind::kLaunch},
    {Domain::kRccl, "ncclAllReduce", CallKind::kLaunch},

    {Domain::kCudaRuntime, "cudaMallocAsync", CallKind::kAllocate},
    {Domain::kCudaRuntime, "cudaFree", CallKind::kAllocate},
    {Domain::kCudaDriver, "cuMemFree_v2", CallKind::kAllocate},
    {Domain::kCudaDriver, "cuMemMap", CallKind::kAllocate},
    {Domain::kHipRuntime, "hipHostFree", CallKind::kAllocate},
    {Domain::kHsa, "hsa_amd_memory_pool_allocate", CallKind::kAllocate},
    {Domain::kOpenCL, "clCreateBuffer", CallKind::kAllocate},
    {Domain::kOpenCL, "clEnqueueSVMFree", CallKind::kAllocate},

    {Domain::kCudaRuntime, "cudaMemcpyAsync", CallKind::kCopy},
    {Domain::kCudaDriver, "cuMemsetD8Async", CallKind::kCopy},
    {Domain::kHipRuntime, "hipMemcpyWithStream", CallKind::kCopy},
    {Domain::kHsa, "hsa_amd_memory_async_copy", CallKind::kCopy},
    {Domain::kOpenCL, "clEnqueueUnmapMemObject", CallKind::kCopy},
    {Domain::kOpenCL, "clEnqueueSVMMemcpy", CallKind::kCopy},

    {Domain::kCudaDriver, "cuInit", CallKind::kLoad},
    {Domain::kCudaDriver, "cuModuleLoadData", CallKind::kLoad},
    {Domain::kHipCompiler, "__hipRegisterFatBinary", CallKind::kLoad},
    {Domain::kHsa, "hsa_init", CallKind::kLoad},
    {Domain::kHsa, "hsa_executable_freeze", CallKind::kLoad},
    {Domain::kOpenCL, "clBuildProgram", CallKind::kLoad},
    {Domain::kOpenCL, "clGetPlatformIDs", CallKind::kLoad},

    {Domain::kCudaRuntime, "cudaGetDevice", CallKind::kOther},
    {Domain::kHipRuntime, "hipInitSomething", CallKind::kOther},
    {Domain::kHsa, "hsa_agent_get_info", CallKind::kOther},
    {Domain::kOpenCL, "clSetKernelArg", CallKind::kOther},
    // A list counts for the functions of its own API.
    {Domain::kOpenCL, "clLaunchParty", CallKind::kOther},
    {Domain::kHsa, "hsa_clFinish", CallKind::kOther},
    // The API is unknown: all lists count.
    {Domain::kUnknown, "cudaFree", CallKind::kAllocate},
    {Domain::kUnknown, "hsa_signal_wait_relaxed", CallKind::kWait},
    {Domain::kUnknown, "clEnqueueReadBuffer", CallKind::kCopy},
    {Domain::kUnknown, "something", CallKind::kOther},
    // No calls of a GPU's API, whatever their names.
    {Domain::kMarker, "cudaFree", CallKind::kNone},
    {Domain::kPython, "Launch", CallKind::kNone},
    {Domain::kMpi, "MPI_Wait", CallKind::kNone},
    {Domain::kHost, "Malloc", CallKind::kNone},
    {Domain::kOperator, "aten::Memcpy", CallKind::kNone},
};

TEST(CallKind, IsThatOfTheApisList) {
  for (const Case& each : kCases)
    EXPECT_EQ(call_kind(each.domain, each.function), each.kind)
        << event::to_string(each.domain) << ' ' << each.function;
}

}  // namespace
}  // namespace tacho::analysis
