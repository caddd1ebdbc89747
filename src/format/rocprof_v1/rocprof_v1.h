// Reads the JSON trace of rocprof (v1, ROCm 3 to 6: `rocprof --sys-trace` and the like, results.json): Chrome trace
// events that carry HIP's and HSA's calls, ROCTx ranges, kernels and copies with their times in ns.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::format::rocprof_v1 {

/// True for JSON, plain or gzip, that begins as rocprof writes it: an empty event, then the label of one of its
/// sections.
bool accepts(std::string_view path, std::string_view head, bool folder);

/// Reads all events. Times are rocprof's ns, CLOCK_MONOTONIC on most systems. The flows between calls and device work
/// become correlations. Events with senseless numbers are left out and counted as lost, barrier packets are left out
/// and counted in a note.
Result<std::shared_ptr<const trace::Trace>> read(const std::string& path);
Status read_into(const std::string& path, trace::TraceWriter& writer);

}  // namespace tacho::format::rocprof_v1
