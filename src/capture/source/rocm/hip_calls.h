// The role of each HIP function as far as tacho needs it, derived from its name at compile time: where its stream is
// among its arguments, whether it waits, launches a graph, makes a stream, allocates or frees. Arguments are counted in
// words as hip.cpp hands them on: 0 to 5 are registers, 6 to 13 lie on the stack. From HIP's headers
// (hip_runtime_api.h, version 7.2).
#pragma once

#include <cstdint>
#include <string_view>

#include "vendor/amd/call_parameters.h"

namespace tacho::capture::rocm {

enum class HipMemory : uint8_t {
  kNone,
  kSized,    // (void** out, size_t bytes, ...)
  kPitched,  // (void** out, size_t* pitch, size_t width, size_t height, ...)
  kCubic,    // (hipPitchedPtr* out, hipExtent)
  kFrees,    // (void* or handle)
};

/// How a launch names its kernel and its arguments.
enum class HipLaunch : uint8_t {
  kNone,                // no launch, or one that cannot be made again as it is
  kByPointer,           // a host function in word 0, void** arguments in word 5
  kByFunction,          // a hipFunction_t in word 0, arguments in word 9, a buffer of them in word 10
  kConfigured,          // a configuration in word 0, a host function in word 1, arguments in word 2
  kConfiguredFunction,  // the same with a hipFunction_t; a buffer of arguments in word 3
};

struct HipCall {
  int8_t stream = -1;       // word of the stream; -1 = the default stream, -2 = several
  bool asks = false;        // only asks, is over in nanoseconds and comes by the thousand
  bool waits = false;       // returns when device work has ended
  bool works = false;       // causes device work
  bool graph = false;       // launches a graph
  bool per_thread = false;  // the default stream is the thread's own
  bool creates = false;     // a stream, into *word 0
  bool destroys = false;    // the stream in word 0
  bool finds = false;       // a function of HIP's by its name (word 0), into *word 1
  HipMemory memory = HipMemory::kNone;
  bool pinned = false, managed = false;  // the kind of memory that it allocates
  HipLaunch launch = HipLaunch::kNone;
  bool passive = false;                         // neither gives the GPU work nor changes anything
  bool harmless = false;                        // does not even reveal GPU progress
  bool captures = false, ends_capture = false;  // of a stream, for a graph
  bool chooses_device = false;                  // the number in word 0
  bool resets = false;                          // the device
  uint8_t words = 0;                            // that hold its arguments; 0 = they are not recorded
};

namespace hip_internal {

struct StreamAt {
  std::string_view name;
  int8_t word;
};
inline constexpr StreamAt kStreams[] = {
    {"hipLaunchKernel", 7},
    {"hipExtLaunchKernel", 7},
    {"hipLaunchCooperativeKernel", 7},
    {"hipModuleLaunchKernel", 8},
    {"hipExtModuleLaunchKernel", 8},
    {"hipHccModuleLaunchKernel", 8},
    {"hipModuleLaunchCooperativeKernel", 8},
    {"hipLaunchCooperativeKernelMultiDevice", -2},
    {"hipModuleLaunchCooperativeKernelMultiDevice", -2},
    {"hipExtLaunchMultiKernelMultiDevice", -2},
    {"hipLaunchHostFunc", 0},
    {"hipGraphLaunch", 1},
    {"hipGraphUpload", 1},
    {"hipMemcpyAsync", 4},
    {"hipMemcpyWithStream", 4},
    {"hipMemcpyHtoDAsync", 3},
    {"hipMemcpyDtoHAsync", 3},
    {"hipMemcpyDtoDAsync", 3},
    {"hipMemcpyHtoAAsync", 4},
    {"hipMemcpyAtoHAsync", 4},
    {"hipMemcpyPeerAsync", 5},
    {"hipMemcpyToSymbolAsync", 5},
    {"hipMemcpyFromSymbolAsync", 5},
    {"hipMemcpy2DAsync", 7},
    {"hipMemcpy2DToArrayAsync", 8},
    {"hipMemcpy2DFromArrayAsync", 8},
    {"hipMemcpyParam2DAsync", 1},
    {"hipMemcpy3DAsync", 1},
    {"hipMemcpy3DPeerAsync", 1},
    {"hipDrvMemcpy3DAsync", 1},
    {"hipMemcpyBatchAsync", 8},
    {"hipMemcpy3DBatchAsync", 4},
    {"hipMemsetAsync", 3},
    {"hipMemsetD8Async", 3},
    {"hipMemsetD16Async", 3},
    {"hipMemsetD32Async", 3},
    {"hipMemset2DAsync", 5},
    {"hipMemset3DAsync", 1},  // the two structs before it lie on the stack
    {"hipMemsetD2D8Async", 5},
    {"hipMemsetD2D16Async", 5},
    {"hipMemsetD2D32Async", 5},
    {"hipMallocAsync", 2},
    {"hipMallocFromPoolAsync", 3},
    {"hipFreeAsync", 1},
    {"hipMemPrefetchAsync", 3},
    {"hipEventRecord", 1},
    {"hipEventRecordWithFlags", 1},
};

// Calls that only ask: not recorded by default, as with CUDA.
inline constexpr std::string_view kQuestions[] = {
    "hipGetDevice",          "hipGetLastError",      "hipExtGetLastError",   "hipPeekAtLastError",
    "hipDeviceGetAttribute", "hipGetDeviceFlags",    "hipStreamIsCapturing", "hipStreamGetCaptureInfo",
    "hipDriverGetVersion",   "hipRuntimeGetVersion", "hipStreamGetPriority", "hipThreadExchangeStreamCaptureMode",
    "hipStreamGetFlags",     "hipStreamGetDevice",   "hipGetErrorName",      "hipGetErrorString"};

constexpr bool has(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

}  // namespace hip_internal

consteval HipCall hip_call(std::string_view name) {
  using namespace hip_internal;
  HipCall call;
  for (const std::string_view question : kQuestions)
    if (name == question) call.asks = true;
  const bool asynchronous = has(name, "Async");
  call.waits = has(name, "Synchronize") || (name.starts_with("hipMemcpy") && !asynchronous) || name == "hipFree" ||
               name == "hipDeviceReset";
  call.per_thread = name.ends_with("_spt");
  const std::string_view plain = call.per_thread ? name.substr(0, name.size() - 4) : name;
  for (const StreamAt& at : kStreams)
    if (plain == at.name) call.stream = at.word;
  call.creates = name.starts_with("hipStreamCreate") || name == "hipExtStreamCreateWithCUMask";
  call.destroys = name == "hipStreamDestroy";
  if (plain.starts_with("hipStream") && !call.creates) call.stream = 0;
  call.graph = plain == "hipGraphLaunch";
  call.works = call.graph || (has(name, "Launch") && !has(name, "HostFunc")) || name.starts_with("hipMemcpy") ||
               name.starts_with("hipMemset");
  call.finds = name == "hipGetProcAddress" || name == "hipGetDriverEntryPoint";
  const auto is = [&](auto... names) { return ((name == names) || ...); };
  call.pinned = is("hipHostMalloc", "hipHostAlloc", "hipMallocHost", "hipMemAllocHost");
  call.managed = is("hipMallocManaged");
  if (call.pinned || call.managed ||
      is("hipMalloc", "hipExtMallocWithFlags", "hipMallocAsync", "hipMallocFromPoolAsync", "hipMemCreate"))
    call.memory = HipMemory::kSized;
  if (is("hipMallocPitch", "hipMemAllocPitch")) call.memory = HipMemory::kPitched;
  if (is("hipMalloc3D")) call.memory = HipMemory::kCubic;
  if (is("hipFree", "hipFreeHost", "hipHostFree", "hipFreeAsync", "hipMemRelease")) call.memory = HipMemory::kFrees;
  if (is("hipLaunchKernel", "hipLaunchKernel_spt", "hipExtLaunchKernel")) call.launch = HipLaunch::kByPointer;
  if (is("hipModuleLaunchKernel", "hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel"))
    call.launch = HipLaunch::kByFunction;
  if (is("hipLaunchKernelExC")) call.launch = HipLaunch::kConfigured;
  if (is("hipDrvLaunchKernelEx")) call.launch = HipLaunch::kConfiguredFunction;
  call.passive = call.asks || has(name, "Synchronize") || has(name, "Query");
  call.harmless = is("hipSetDevice", "hipPointerGetAttribute", "hipPointerGetAttributes", "hipFuncGetAttribute",
                     "hipFuncGetAttributes", "hipFuncSetAttribute", "hipGetDeviceCount", "hipDeviceGet",
                     "hipStreamGetPriority", "hipDeviceGetStreamPriorityRange", "hipModuleGetFunction",
                     "hipGetFuncBySymbol", "hipDeviceCanAccessPeer", "hipDeviceGetPCIBusId") ||
                  has(name, "Occupancy") || name.starts_with("hipGetDeviceProperties");
  call.captures = name.starts_with("hipStreamBeginCapture");
  call.ends_capture = name.starts_with("hipStreamEndCapture");
  call.chooses_device = is("hipSetDevice");
  call.resets = is("hipDeviceReset");
  if (const vendor::CallParameters* const parameters = vendor::amd::find_hip_call(name))
    call.words = static_cast<uint8_t>(vendor::amd::words_of(*parameters));
  return call;
}

}  // namespace tacho::capture::rocm
