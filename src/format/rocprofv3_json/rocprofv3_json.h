// Reads rocprofv3's own JSON output (<prefix>_results.json, also gzip) as a trace.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "format/format.h"
#include "trace/trace.h"
#include "trace/writer.h"

namespace tacho::format::rocprofv3 {

bool accepts(std::string_view path, std::string_view head, bool folder);
/// Kernel dispatches, copies, allocations, API calls, markers and counters of every process in the file, its
/// agents with all their properties. Times in the file are CLOCK_BOOTTIME and stay what they are.
Result<std::shared_ptr<const trace::Trace>> read(const std::string& path);
/// Writes target.file in the same structure; one process in the list per process of the trace that has an
/// agent or record (options.process: only that one). APIs that rocprofv3 does not know have buffers of their
/// own, "opencl_api" and so on.
Status write(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
             std::vector<std::string>& written);
Status read_into(const std::string& path, trace::TraceWriter& writer);

}  // namespace tacho::format::rocprofv3
