// The names of GPU operations in .rpd files, and their meaning in a trace.
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
  bool generic = false;  // unknown word: a dispatch of kind task that bears it as its name
};

/// Meaning of a word in rocpd_op.opType. Words of roctracer, rocprofiler-sdk and the CUPTI backend are known.
OpType parse_op_type(std::string_view word);

/// The word for a dispatch, a copy or a fill; CUDA traces get the same words as all others, so that queries
/// written for one vendor work on every vendor.
std::string_view op_type_of_dispatch(event::DispatchKind kind);
std::string_view op_type_of_copy(event::CopyDirection direction);
inline constexpr std::string_view kOpTypeOfFill = "FillBuffer";

/// What rocpd_monitor.deviceType says of a telemetry series: of a GPU (deviceId is its number), of a process (its pid), of
/// the whole machine (0). Upstream's own files have GPUs only.
inline constexpr std::string_view kMonitorTypes[] = {"gpu", "process", "host"};
inline constexpr size_t kMonitorOfGpu = 0, kMonitorOfProcess = 1, kMonitorOfHost = 2;
/// Of a series by the device and the process (rows) of its track; 0 = none.
inline size_t monitor_type(int64_t device, int64_t process) {
  return device > 0 ? kMonitorOfGpu : process > 0 ? kMonitorOfProcess : kMonitorOfHost;
}

/// Launch functions whose grid stands in work-items in rocpd_kernelapi; all others count workgroups.
bool launches_items(std::string_view function);

}  // namespace tacho::format::rpd
