// The parameters of the HIP calls with the most useful arguments: launches, copies, fills, memory, events, streams.
// Names and kinds are those of HIP's headers, by which rocprofiler-sdk lays out its structures of arguments
// (hip/api_args.h); scripts/check-rocm-abi.sh compares some.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "vendor/call_parameters.h"

namespace tacho::vendor::amd {

inline constexpr CallParameters kHipCallParameters[] = {
    {"hipDeviceEnablePeerAccess", "peerDeviceId:i flags:u"},
    {"hipEventCreateWithFlags", "event:p flags:u"},
    {"hipEventElapsedTime", "ms:p start:p stop:p"},
    {"hipEventRecord", "event:p stream:p"},
    {"hipEventSynchronize", "event:p"},
    {"hipExtLaunchKernel",
     "function_address:p numBlocks:d dimBlocks:d args:p sharedMemBytes:z stream:p startEvent:p stopEvent:p flags:i"},
    {"hipExtMallocWithFlags", "ptr:p sizeBytes:z flags:u"},
    {"hipFree", "ptr:p"},
    {"hipFreeArray", "array:p"},
    {"hipFreeAsync", "dev_ptr:p stream:p"},
    {"hipFreeHost", "ptr:p"},
    {"hipFreeMipmappedArray", "mipmappedArray:p"},
    {"hipGraphLaunch", "graphExec:p stream:p"},
    {"hipHostAlloc", "ptr:p size:z flags:u"},
    {"hipHostFree", "ptr:p"},
    {"hipHostMalloc", "ptr:p size:z flags:u"},
    {"hipHostRegister", "hostPtr:p sizeBytes:z flags:u"},
    {"hipHostUnregister", "hostPtr:p"},
    {"hipLaunchCooperativeKernel", "func:p gridDim:d blockDimX:d kernelParams:p sharedMemBytes:u stream:p"},
    {"hipLaunchKernel", "function_address:p numBlocks:d dimBlocks:d args:p sharedMemBytes:z stream:p"},
    {"hipMalloc", "ptr:p size:z"},
    {"hipMallocArray", "array:p desc:p width:z height:z flags:u"},
    {"hipMallocAsync", "dev_ptr:p size:z stream:p"},
    {"hipMallocFromPoolAsync", "dev_ptr:p size:z mem_pool:p stream:p"},
    {"hipMallocHost", "ptr:p size:z"},
    {"hipMallocManaged", "dev_ptr:p size:z flags:u"},
    {"hipMallocPitch", "ptr:p pitch:p width:z height:z"},
    {"hipMemAdvise", "dev_ptr:p count:z advice:i device:i"},
    {"hipMemAllocHost", "ptr:p size:z"},
    {"hipMemAllocPitch", "dptr:p pitch:p widthInBytes:z height:z elementSizeBytes:u"},
    {"hipMemCreate", "handle:p size:z prop:p flags:z"},
    {"hipMemPrefetchAsync", "dev_ptr:p count:z device:i stream:p"},
    {"hipMemRelease", "handle:p"},
    {"hipMemcpy", "dst:p src:p sizeBytes:z kind:k"},
    {"hipMemcpy2D", "dst:p dpitch:z src:p spitch:z width:z height:z kind:k"},
    {"hipMemcpy2DAsync", "dst:p dpitch:z src:p spitch:z width:z height:z kind:k stream:p"},
    {"hipMemcpy2DFromArray", "dst:p dpitch:z src:p wOffset:z hOffset:z width:z height:z kind:k"},
    {"hipMemcpy2DFromArrayAsync", "dst:p dpitch:z src:p wOffset:z hOffset:z width:z height:z kind:k stream:p"},
    {"hipMemcpy2DToArray", "dst:p wOffset:z hOffset:z src:p spitch:z width:z height:z kind:k"},
    {"hipMemcpy2DToArrayAsync", "dst:p wOffset:z hOffset:z src:p spitch:z width:z height:z kind:k stream:p"},
    {"hipMemcpy3D", "p:p"},
    {"hipMemcpy3DAsync", "p:p stream:p"},
    {"hipMemcpyAsync", "dst:p src:p sizeBytes:z kind:k stream:p"},
    {"hipMemcpyAtoH", "dst:p srcArray:p srcOffset:z count:z"},
    {"hipMemcpyDtoD", "dst:p src:p sizeBytes:z"},
    {"hipMemcpyDtoDAsync", "dst:p src:p sizeBytes:z stream:p"},
    {"hipMemcpyDtoH", "dst:p src:p sizeBytes:z"},
    {"hipMemcpyDtoHAsync", "dst:p src:p sizeBytes:z stream:p"},
    {"hipMemcpyFromArray", "dst:p srcArray:p wOffset:z hOffset:z count:z kind:k"},
    {"hipMemcpyFromSymbol", "dst:p symbol:p sizeBytes:z offset:z kind:k"},
    {"hipMemcpyFromSymbolAsync", "dst:p symbol:p sizeBytes:z offset:z kind:k stream:p"},
    {"hipMemcpyHtoA", "dstArray:p dstOffset:z srcHost:p count:z"},
    {"hipMemcpyHtoD", "dst:p src:p sizeBytes:z"},
    {"hipMemcpyHtoDAsync", "dst:p src:p sizeBytes:z stream:p"},
    {"hipMemcpyParam2D", "pCopy:p"},
    {"hipMemcpyParam2DAsync", "pCopy:p stream:p"},
    {"hipMemcpyPeer", "dst:p dstDeviceId:i src:p srcDeviceId:i sizeBytes:z"},
    {"hipMemcpyPeerAsync", "dst:p dstDeviceId:i src:p srcDevice:i sizeBytes:z stream:p"},
    {"hipMemcpyToArray", "dst:p wOffset:z hOffset:z src:p count:z kind:k"},
    {"hipMemcpyToSymbol", "symbol:p src:p sizeBytes:z offset:z kind:k"},
    {"hipMemcpyToSymbolAsync", "symbol:p src:p sizeBytes:z offset:z kind:k stream:p"},
    {"hipMemcpyWithStream", "dst:p src:p sizeBytes:z kind:k stream:p"},
    {"hipMemset", "dst:p value:i sizeBytes:z"},
    {"hipMemset2D", "dst:p pitch:z value:i width:z height:z"},
    {"hipMemset2DAsync", "dst:p pitch:z value:i width:z height:z stream:p"},
    {"hipMemsetAsync", "dst:p value:i sizeBytes:z stream:p"},
    {"hipMemsetD16", "dest:p value:h count:z"},
    {"hipMemsetD16Async", "dest:p value:h count:z stream:p"},
    {"hipMemsetD32", "dest:p value:i count:z"},
    {"hipMemsetD32Async", "dst:p value:i count:z stream:p"},
    {"hipMemsetD8", "dest:p value:c count:z"},
    {"hipMemsetD8Async", "dest:p value:c count:z stream:p"},
    {"hipModuleGetFunction", "function:p module:p kname:p"},
    {"hipModuleLaunchCooperativeKernel", "func:p gridDimX:u gridDimY:u gridDimZ:u blockDimX:u blockDimY:u blockDimZ:u "
                                         "sharedMemBytes:u stream:p kernelParams:p"},
    {"hipModuleLaunchKernel", "func:p gridDimX:u gridDimY:u gridDimZ:u blockDimX:u blockDimY:u blockDimZ:u "
                              "sharedMemBytes:u stream:p kernelParams:p extra:p"},
    {"hipModuleLoad", "module:p fname:p"},
    {"hipModuleLoadData", "module:p image:p"},
    {"hipSetDevice", "deviceId:i"},
    {"hipStreamCreate", "stream:p"},
    {"hipStreamCreateWithFlags", "stream:p flags:u"},
    {"hipStreamCreateWithPriority", "stream:p flags:u priority:i"},
    {"hipStreamDestroy", "stream:p"},
    {"hipStreamSynchronize", "stream:p"},
    {"hipStreamWaitEvent", "stream:p event:p flags:u"},
    {"hipExtModuleLaunchKernel",
     "func:p globalWorkSizeX:u globalWorkSizeY:u globalWorkSizeZ:u localWorkSizeX:u localWorkSizeY:u localWorkSizeZ:u "
     "sharedMemBytes:z stream:p kernelParams:p extra:p startEvent:p stopEvent:p flags:u"},
    {"hipMemcpyAtoD", "dstDevice:p srcArray:p srcOffset:z ByteCount:z"},
    {"hipMemcpyDtoA", "dstArray:p dstOffset:z srcDevice:p ByteCount:z"},
    {"hipMemcpyAtoA", "dstArray:p dstOffset:z srcArray:p srcOffset:z ByteCount:z"},
    {"hipMemcpyAtoHAsync", "dstHost:p srcArray:p srcOffset:z ByteCount:z stream:p"},
    {"hipMemcpyHtoAAsync", "dstArray:p dstOffset:z srcHost:p ByteCount:z stream:p"},
    {"hipMemcpy2DArrayToArray",
     "dst:p wOffsetDst:z hOffsetDst:z src:p wOffsetSrc:z hOffsetSrc:z width:z height:z kind:k"},
    {"hipEventRecordWithFlags", "event:p stream:p flags:u"},
    {"hipLaunchKernelExC", "config:p fPtr:p args:p"},
};

/// nullptr for a function that is not listed here. `hip..._spt`, on the thread's own default stream, have the same
/// parameters.
constexpr const CallParameters* find_hip_call(std::string_view name) {
  if (name.ends_with("_spt")) name.remove_suffix(4);
  for (const CallParameters& call : kHipCallParameters)
    if (call.function == name) return &call;
  return nullptr;
}

/// The words in which a member is handed to the function itself: the first six lie in registers, the rest on the stack,
/// and a dim3 takes two, next to each other. `registers` and `stack` count the words of the members before. Returns the
/// first word's number: 0 to 5 are registers, from 6 on the stack (System V's calling convention).
constexpr size_t word_of(const CallMember& member, size_t& registers, size_t& stack) {
  constexpr size_t kRegisters = 6;
  const size_t words = member.kind == 'd' ? 2 : 1;
  if (registers + words <= kRegisters) {
    registers += words;
    return registers - words;
  }
  stack += words;
  return kRegisters + stack - words;
}
/// How many of those words hold the function's arguments.
constexpr size_t words_of(const CallParameters& call) {
  std::string_view members = call.members;
  size_t end = 0, registers = 0, stack = 0, most = 0;
  CallMember member;
  while (next_member(members, end, member)) {
    const size_t behind = word_of(member, registers, stack) + (member.kind == 'd' ? 2 : 1);
    most = behind > most ? behind : most;
  }
  return most;
}

}  // namespace tacho::vendor::amd
