// Reads and writes the SQLite tables that `nsys export --type sqlite` makes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/shared/options.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::format::nsys {

/// True for a SQLite database with nsys' StringIds and one of its tables of events.
bool accepts(std::string_view path, std::string_view head, bool folder);
/// Reads kernels, graphs, copies, fills, waits, calls and NVTX events into a temporary trace. Times stay those of the
/// file. Tables that it lacks are empty; the rows of tables of events that tacho does not read are counted in a note.
Result<std::shared_ptr<const trace::Trace>> read(const std::string& path);
/// The same into `writer`.
Status read_into(const std::string& path, trace::TraceWriter& writer);

/// Writes target.file: kernels, copies, fills, waits and calls as CUPTI_ACTIVITY_KIND_*, markers as NVTX_EVENTS,
/// devices, processes and threads, on any vendor. Times are ns since the trace began; TARGET_INFO_SESSION_START_TIME
/// has the moment in UTC.
Status write(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
             std::vector<std::string>& written);

}  // namespace tacho::format::nsys
