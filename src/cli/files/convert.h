// Writes the result of trim and merge in the format that the output's name implies.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "trace/write/writer.h"

namespace tacho::cli {

/// "tacho" or the name of a writer: --format if given, else by the file's extension. No folder formats.
Result<std::string> output_format(const std::string& path, const std::string& format);

/// Stores the trace that `fill` writes at `path`: .tacho directly, other formats via a temporary trace.
Status write_converted(const std::string& path, const std::string& format, bool overwrite,
                       const std::function<Status(trace::TraceWriter&)>& fill);

/// Copies everything in the file at `path`, in any format that tacho reads, into `writer`.
Status copy_trace(const std::string& path, trace::TraceWriter& writer);

bool same_file(const std::string& a, const std::string& b);
bool is_rpd(const std::string& path);

}  // namespace tacho::cli
