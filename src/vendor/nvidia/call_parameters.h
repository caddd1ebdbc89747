// The structures of parameters that CUPTI hands to callbacks, for the CUDA calls with the most useful arguments:
// launches, copies, fills, memory. Names and members are those of CUDA's generated_cuda_runtime_api_meta.h and
// generated_cuda_meta.h; a test compares them with those headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "vendor/call_parameters.h"

namespace tacho::vendor::nvidia {

/// Functions as CUPTI names them, without version and stream suffix of the runtime (cudaMemcpy).
inline constexpr CallParameters kCallParameters[] = {
    {"cudaLaunchKernel", "func:p gridDim:d blockDim:d args:p sharedMem:z stream:p"},
    {"cudaLaunchCooperativeKernel", "func:p gridDim:d blockDim:d args:p sharedMem:z stream:p"},
    {"cudaMemcpy", "dst:p src:p count:z kind:k"},
    {"cudaMemcpyAsync", "dst:p src:p count:z kind:k stream:p"},
    {"cudaMemcpy2D", "dst:p dpitch:z src:p spitch:z width:z height:z kind:k"},
    {"cudaMemcpy2DAsync", "dst:p dpitch:z src:p spitch:z width:z height:z kind:k stream:p"},
    {"cudaMemcpyToSymbol", "symbol:p src:p count:z offset:z kind:k"},
    {"cudaMemcpyPeerAsync", "dst:p dstDevice:i src:p srcDevice:i count:z stream:p"},
    {"cudaMemset", "devPtr:p value:i count:z"},
    {"cudaMemsetAsync", "devPtr:p value:i count:z stream:p"},
    {"cudaMalloc", "devPtr:p size:z"},
    {"cudaMallocAsync", "devPtr:p size:z hStream:p"},
    {"cudaMallocManaged", "devPtr:p size:z flags:u"},
    {"cudaMallocHost", "ptr:p size:z"},
    {"cudaMallocPitch", "devPtr:p pitch:p width:z height:z"},
    {"cudaHostAlloc", "pHost:p size:z flags:u"},
    {"cudaFree", "devPtr:p"},
    {"cudaFreeAsync", "devPtr:p hStream:p"},
    {"cudaEventRecord", "event:p stream:p"},
    {"cudaStreamWaitEvent", "stream:p event:p flags:u"},
    {"cudaStreamCreateWithFlags", "pStream:p flags:u"},
    {"cuLaunchKernel", "f:p gridDimX:u gridDimY:u gridDimZ:u blockDimX:u blockDimY:u blockDimZ:u sharedMemBytes:u "
                       "hStream:p kernelParams:p extra:p"},
    {"cuLaunchCooperativeKernel", "f:p gridDimX:u gridDimY:u gridDimZ:u blockDimX:u blockDimY:u blockDimZ:u "
                                  "sharedMemBytes:u hStream:p kernelParams:p"},
    {"cuMemcpy", "dst:p src:p ByteCount:z"},
    {"cuMemcpyAsync", "dst:p src:p ByteCount:z hStream:p"},
    {"cuMemcpyHtoD_v2", "dstDevice:p srcHost:p ByteCount:z"},
    {"cuMemcpyDtoH_v2", "dstHost:p srcDevice:p ByteCount:z"},
    {"cuMemcpyDtoD_v2", "dstDevice:p srcDevice:p ByteCount:z"},
    {"cuMemcpyHtoDAsync_v2", "dstDevice:p srcHost:p ByteCount:z hStream:p"},
    {"cuMemcpyDtoHAsync_v2", "dstHost:p srcDevice:p ByteCount:z hStream:p"},
    {"cuMemcpyDtoDAsync_v2", "dstDevice:p srcDevice:p ByteCount:z hStream:p"},
    {"cuMemsetD8_v2", "dstDevice:p uc:c N:z"},
    {"cuMemsetD16_v2", "dstDevice:p us:h N:z"},
    {"cuMemsetD32_v2", "dstDevice:p ui:u N:z"},
    {"cuMemsetD8Async", "dstDevice:p uc:c N:z hStream:p"},
    {"cuMemsetD16Async", "dstDevice:p us:h N:z hStream:p"},
    {"cuMemsetD32Async", "dstDevice:p ui:u N:z hStream:p"},
    {"cuMemAlloc_v2", "dptr:p bytesize:z"},
    {"cuMemAllocAsync", "dptr:p bytesize:z hStream:p"},
    {"cuMemAllocManaged", "dptr:p bytesize:z flags:u"},
    {"cuMemAllocHost_v2", "pp:p bytesize:z"},
    {"cuMemHostAlloc", "pp:p bytesize:z Flags:u"},
    {"cuMemFree_v2", "dptr:p"},
    {"cuMemFreeAsync", "dptr:p hStream:p"},
    {"cuEventRecord", "hEvent:p hStream:p"},
    {"cuStreamWaitEvent", "hStream:p hEvent:p Flags:u"},
};

/// By the name that CUPTI has for the callback (cudaMemcpyAsync_ptsz_v7000, cuMemcpyHtoD_v2_ptds); nullptr when its
/// structure is not listed here.
constexpr const CallParameters* find_call_parameters(std::string_view name) {
  for (const std::string_view suffix : {std::string_view("_ptsz"), std::string_view("_ptds")})
    if (const size_t at = name.find(suffix); at != std::string_view::npos) name = name.substr(0, at);
  if (name.starts_with("cuda"))
    if (const size_t version = name.rfind("_v"); version != std::string_view::npos) name = name.substr(0, version);
  for (const CallParameters& call : kCallParameters)
    if (call.function == name) return &call;
  return nullptr;
}
inline constexpr size_t kMostCallParameterBytes = 128;

}  // namespace tacho::vendor::nvidia
