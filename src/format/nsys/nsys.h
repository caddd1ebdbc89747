// Writes the SQLite tables that `nsys export --type sqlite` makes, so that scripts made for Nsight Systems go on.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "format/shared/options.h"
#include "trace/trace.h"

namespace tacho::format::nsys {

/// Writes target.file: kernels, copies, fills, waits and calls as CUPTI_ACTIVITY_KIND_*, markers as NVTX_EVENTS,
/// devices, processes and threads, on any vendor. Times are ns since the trace began; TARGET_INFO_SESSION_START_TIME
/// has the moment in UTC.
Status write(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
             std::vector<std::string>& written);

}  // namespace tacho::format::nsys
