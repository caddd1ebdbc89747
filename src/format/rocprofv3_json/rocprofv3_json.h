// Reads rocprofv3's own JSON (<prefix>_results.json, plain or gzip) as a trace, and writes it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "format/shared/options.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::format::rocprofv3 {

bool accepts(std::string_view path, std::string_view head, bool folder);
/// Reads kernel dispatches, copies, allocations, API calls, markers and counters of every process in the file, and its
/// agents with all their properties. Times stay CLOCK_BOOTTIME.
Result<std::shared_ptr<const trace::Trace>> read(const std::string& path);
/// Writes target.file with the same structure: one list entry for each process of the trace that has an agent or a
/// record (options.process: only for that one). APIs unknown to rocprofv3 get buffers of their own, "opencl_api" and so
/// on.
Status write(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
             std::vector<std::string>& written);
Status read_into(const std::string& path, trace::TraceWriter& writer);

}  // namespace tacho::format::rocprofv3
