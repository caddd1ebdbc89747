// HIP's own interface for tracers: hipRegisterTracerCallback(function), which libamdhip64 exports since ROCm 5.3 and
// which may be called at any time. Sources: AMD's prof_protocol.h, hip_prof_api.h and activity.cpp (CLR, ROCm 5.6 to
// 7.2) and hip_prof_str.h of HIP 6.4 and 7.2. tests/rocm/attach_test.py compares them with what the libraries do.
//
//   domain   operation           data                         result
//   calls    a number of HIP's   TracedCall*, not filled in   0 = the tracer wants this call and has filled it in
//   work     TracedWork          nullptr                      0 = the tracer wants the work that is being made
//   work     TracedWork          kWillCome                    such a record will come (since HIP 7.2)
//   work     TracedWork          Record*                      the work has ended
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::vendor::hip_tracer {

using Callback = int(uint32_t domain, uint32_t operation, void* data);
using Register = void(Callback*);
using NameOf = const char*(uint32_t operation);  // hipApiName
using Version = int(int*);                       // hipRuntimeGetVersion: major * 10^7 + minor * 10^5 + patch

inline constexpr uint32_t kWork = 2, kCalls = 3;  // domains
enum class TracedWork : uint32_t { kDispatch = 0, kCopy = 1, kBarrier = 2 };

inline constexpr uintptr_t kWillCome = 1;
inline constexpr int kFirstThatAnnounces = 702;  // version / 100000

/// Work that has ended. Times are HSA's (hsa_system_get_info), in ns.
struct Record {
  uint32_t domain, kind, operation;  // kind: OpenCL's number of the command
  uint64_t correlation;              // that of the call that made it (TracedCall), 0 = none
  uint64_t begin, end;
  int32_t device;  // the driver's number of its node
  uint64_t queue;  // HIP's number of the stream's queue on that device
  union {
    uint64_t bytes;
    const char* kernel;  // mangled
  };
};
static_assert(sizeof(Record) == 64 && offsetof(Record, correlation) == 16 && offsetof(Record, queue) == 48);

// Kinds
inline constexpr uint32_t kKernel = 0x11f0, kGraphKernels = 0x11f1, kReadBuffer = 0x11f3, kWriteBuffer = 0x11f4,
                          kCopyBuffer = 0x11f5, kReadImage = 0x11f6, kWriteImage = 0x11f7, kCopyImage = 0x11f8,
                          kImageToBuffer = 0x11f9, kBufferToImage = 0x11fa, kReadRectangle = 0x1201,
                          kWriteRectangle = 0x1202, kCopyRectangle = 0x1203, kFillBuffer = 0x1207, kFillImage = 0x1208;

/// A call, in the frame of the function. The largest arguments are those of hipGetDeviceProperties, whose struct is the
/// same since HIP 6.0: they say where the rest lies. HIP fills in the arguments before it calls `enter`.
struct TracedCall {
  using Phase = void(uint32_t operation, TracedCall* call);
  uint64_t correlation;
  uint32_t phase, pad;
  std::byte arguments[1504];
  uint64_t time, tracers_own;
  Phase* enter;
  Phase* exit;
};
static_assert(offsetof(TracedCall, arguments) == 16 && offsetof(TracedCall, time) == 1520 &&
              offsetof(TracedCall, exit) == 1544);
inline constexpr int kFirstMajor = 6;  // of HIP

/// Where a launch's arguments lie in TracedCall::arguments: three uint32_t each for grid and workgroup, a uint32_t and
/// a stream.
struct ArgumentsAt {
  uint16_t grid, group, shared, stream;
  bool in_threads;  // the grid is in work-items, else in workgroups
  bool by_pointer;  // they lie where the first argument points to, less 8
};

}  // namespace tacho::vendor::hip_tracer
