// Reads rocprofv3's CSV files: a folder of `rocprofv3 -d DIR`, or one trace file; rocprof v1's and v2's results.csv,
// too.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::format::rocprofv3_csv {

/// True for a folder with *_trace.csv or *counter_collection.csv in it or one level below, and for such a file,
/// recognised by its header.
bool accepts(std::string_view path, std::string_view head, bool folder);

/// Reads all files into a temporary trace. Files with the same prefix ("<pid>_", "out_") belong to one process, files
/// in the same folder to one host. Finds columns by their headers, so it reads the files of all versions of rocprofv3.
/// Times stay CLOCK_BOOTTIME. Skips rows with senseless numbers and counts them as lost; fails, naming the file, if the
/// columns that events need are missing.
Result<std::shared_ptr<const trace::Trace>> read(const std::string& path);
Status read_into(const std::string& path, trace::TraceWriter& writer);

}  // namespace tacho::format::rocprofv3_csv
