// Reads rocprofv3's CSV files: a folder of `rocprofv3 -d DIR`, or one trace file; rocprof v1's and v2's results.csv, too.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/trace.h"
#include "trace/writer.h"

namespace tacho::format::rocprofv3_csv {

/// A folder that has *_trace.csv or *counter_collection.csv in it or one level below, or such a file by its
/// header.
bool accepts(std::string_view path, std::string_view head, bool folder);

/// Reads everything there is into a temporary trace: each file prefix ("<pid>_", "out_") is one process's
/// files, each folder one host's. Columns are found by their headers' names, so all versions of rocprofv3 can
/// be read. Times are kept (CLOCK_BOOTTIME). Rows whose numbers make no sense are counted as lost, not read;
/// a file without the columns that make its rows events is an error that names it.
Result<std::shared_ptr<const trace::Trace>> read(const std::string& path);
Status read_into(const std::string& path, trace::TraceWriter& writer);

}  // namespace tacho::format::rocprofv3_csv
