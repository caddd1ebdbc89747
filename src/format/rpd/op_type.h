// The names of GPU operations in .rpd files, and what they mean in a trace.
#pragma once

#include <string>
#include <string_view>

#include "event/schema.h"

namespace tacho::format::rpd {

struct OpType {
  event::Table table = event::Table::kDispatch;                     // dispatch, copy, fill or sync
  event::DispatchKind dispatch = event::DispatchKind::kKernel;      // of a dispatch
  event::CopyDirection direction = event::CopyDirection::kUnknown;  // of a copy
  event::CopyKind copy = event::CopyKind::kPlain;
  bool cuda = false;     // written by the CUPTI backend: queueId is the context, sequenceId the stream
  bool generic = false;  // unknown word: becomes a dispatch of kind task with that name
};

/// Meaning of a word in rocpd_op.opType; knows those of roctracer, rocprofiler-sdk and the CUPTI backend.
OpType parse_op_type(std::string_view word);

/// Texts that only .rpd files have: types of operations and of calls.
enum class RpdWord : uint8_t {
  kUserMarker,
  kKernelExecution,
  kTask,
  kNativeKernel,
  kGraph,
  kCopyHostToHost,
  kCopyHostToDevice,
  kCopyDeviceToHost,
  kCopyDeviceToDevice,
  kCopyPeerToPeer,
  kMemcpy,
  kFillBuffer,
  kRoctx,
};
inline constexpr std::string_view kWords[] = {"UserMarker",
                                              "KernelExecution",
                                              "Task",
                                              "NativeKernel",
                                              "Graph",
                                              "CopyHostToHost",
                                              "CopyHostToDevice",
                                              "CopyDeviceToHost",
                                              "CopyDeviceToDevice",
                                              "CopyPeerToPeer",
                                              "Memcpy",
                                              "FillBuffer",
                                              "roctx"};
/// Schema 2 lacks the last one.
inline constexpr size_t kWordsOfSchema2 = std::size(kWords) - 1;

/// The word for a dispatch or a copy; a fill's is kFillBuffer. CUDA traces get the same words as all others, so that
/// queries written for one vendor work for every vendor.
RpdWord op_type_of_dispatch(event::DispatchKind kind);
RpdWord op_type_of_copy(event::CopyDirection direction);

/// Values of rocpd_monitor.deviceType for telemetry: a GPU (deviceId is its number), a process (its pid), the whole
/// machine (0). Upstream's own files have only GPUs.
inline constexpr std::string_view kMonitorTypes[] = {"gpu", "process", "host"};
inline constexpr size_t kMonitorOfGpu = 0, kMonitorOfProcess = 1, kMonitorOfHost = 2;
/// The type of a series, given the device and process (rows) of its track; 0 = none.
inline size_t monitor_type(int64_t device, int64_t process) {
  return device > 0 ? kMonitorOfGpu : process > 0 ? kMonitorOfProcess : kMonitorOfHost;
}

/// True for launch functions whose grid in rocpd_kernelapi is in work-items; all others count workgroups.
bool launches_items(std::string_view function);

}  // namespace tacho::format::rpd
