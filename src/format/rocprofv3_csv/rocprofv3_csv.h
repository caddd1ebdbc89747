// Reads rocprofv3's CSV files: a folder of `rocprofv3 -d DIR`, or one trace file; rocprof v1's and v2's results.csv,
// too.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::format::rocprofv3_csv {

/// True for a folder with *_trace.csv, *counter_collection.csv or rocprof v2's files in it or one level below, and for
/// such a file, recognised by its header.
bool accepts(std::string_view path, std::string_view head, bool folder);

/// For the name of a trace that the folder around it is read for ("123_kernel_trace.csv", "results_77.csv"): what its
/// run's other files share with it ("123_", "77.csv"), a part of `name`.
std::optional<std::string_view> run_of_part(std::string_view name);

/// Reads all files into a temporary trace. Files with the same prefix ("<pid>_", "out_") belong to one process, files
/// in the same folder to one host. Finds columns by their headers, so it reads the files of all versions of rocprofv3.
/// Times stay CLOCK_BOOTTIME. Passes over rows whose numbers or cells make no sense, counts them as lost and says
/// which; fails, naming the file, if columns that events need are missing or not one row can be read.
Result<std::shared_ptr<const trace::Trace>> read(const std::string& path);
Status read_into(const std::string& path, trace::TraceWriter& writer);

}  // namespace tacho::format::rocprofv3_csv
