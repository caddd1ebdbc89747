// The structures of parameters that CUPTI hands to callbacks of CUDA's calls, of the calls whose arguments tell most:
// launches, copies, fills, memory. Names and members are those of CUDA's generated_cuda_runtime_api_meta.h and
// generated_cuda_meta.h; a test compares them with those headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tacho::vendor::nvidia {

/// `members`: name:kind in the structure's order, separated by blanks. Kinds: p pointer or handle, z size_t, i int, u unsigned
/// int, h unsigned short, c unsigned char, k cudaMemcpyKind, d dim3.
struct CallParameters {
  std::string_view
      function;  ///< as CUPTI names it, without version and stream suffix of the runtime (cudaMemcpy)
  std::string_view members;
};

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
    {"cuLaunchKernel",
     "f:p gridDimX:u gridDimY:u gridDimZ:u blockDimX:u blockDimY:u blockDimZ:u sharedMemBytes:u hStream:p "
     "kernelParams:p extra:p"},
    {"cuLaunchCooperativeKernel",
     "f:p gridDimX:u gridDimY:u gridDimZ:u blockDimX:u blockDimY:u blockDimZ:u sharedMemBytes:u hStream:p "
     "kernelParams:p"},
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

/// Bytes of a member of that kind; 0 = there is no such kind.
constexpr size_t member_bytes(char kind) {
  switch (kind) {
    case 'p':
    case 'z':
      return 8;
    case 'i':
    case 'u':
    case 'k':
      return 4;
    case 'h':
      return 2;
    case 'c':
      return 1;
    case 'd':
      return 12;
    default:
      return 0;
  }
}

/// Takes the first member off `members`: its name, kind and place behind `end`, the end of the member before, which moves to
/// the end of this one. False when there is none.
struct CallMember {
  std::string_view name;
  char kind = 0;
  size_t offset = 0;
};
constexpr bool next_member(std::string_view& members, size_t& end, CallMember& out) {
  while (!members.empty() && members[0] == ' ') members.remove_prefix(1);
  const size_t colon = members.find(':');
  if (colon == std::string_view::npos || colon + 1 >= members.size()) return false;
  out.name = members.substr(0, colon);
  out.kind = members[colon + 1];
  members.remove_prefix(colon + 2);
  const size_t bytes = member_bytes(out.kind);
  if (bytes == 0) return false;
  const size_t alignment = out.kind == 'd' ? 4 : bytes;
  out.offset = (end + alignment - 1) / alignment * alignment;
  end = out.offset + bytes;
  return true;
}
/// Bytes of the structure up to the end of its last member.
constexpr size_t bytes_of(const CallParameters& call) {
  std::string_view members = call.members;
  size_t end = 0;
  CallMember member;
  while (next_member(members, end, member)) {
  }
  return end;
}

/// By the name that CUPTI has for the callback (cudaMemcpyAsync_ptsz_v7000, cuMemcpyHtoD_v2_ptds); nullptr when its structure
/// is not listed here.
constexpr const CallParameters* find_call_parameters(std::string_view name) {
  for (const std::string_view suffix : {std::string_view("_ptsz"), std::string_view("_ptds")})
    if (const size_t at = name.find(suffix); at != std::string_view::npos) name = name.substr(0, at);
  if (name.starts_with("cuda"))
    if (const size_t version = name.rfind("_v"); version != std::string_view::npos)
      name = name.substr(0, version);
  for (const CallParameters& call : kCallParameters)
    if (call.function == name) return &call;
  return nullptr;
}
inline constexpr size_t kMostCallParameterBytes = 128;

}  // namespace tacho::vendor::nvidia
