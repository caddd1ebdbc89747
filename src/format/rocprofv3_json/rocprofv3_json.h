// rocprofv3's own JSON output (<prefix>_results.json, also gzip) as a trace.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/trace.h"
#include "trace/writer.h"

namespace tacho::format::rocprofv3 {

bool accepts(std::string_view path, std::string_view head, bool folder);
/// Kernel dispatches, copies, allocations, API calls, markers and counters of every process in the file, its
/// agents with all their properties. Times in the file are CLOCK_BOOTTIME and stay what they are.
Result<std::shared_ptr<const trace::Trace>> read(const std::string& path);
Status read_into(const std::string& path, trace::TraceWriter& writer);

}  // namespace tacho::format::rocprofv3
