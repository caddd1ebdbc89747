// Writes the result of trim and merge in the format that the output's name asks for.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "trace/writer.h"

namespace tacho::cli {

/// "tacho" or the name of a writer, by --format when given, else by the file's ending.
Result<std::string> output_format(const std::string& path, const std::string& format);

/// Lets `fill` write a trace and stores it at `path`: a .tacho file directly, other formats through a temporary trace.
Status write_converted(const std::string& path, const std::string& format, bool overwrite,
                       const std::function<Status(trace::TraceWriter&)>& fill);

/// Everything that the file at `path` holds, of any format that tacho reads, into `writer`.
Status copy_trace(const std::string& path, trace::TraceWriter& writer);

bool same_file(const std::string& a, const std::string& b);
bool is_rpd(const std::string& path);

}  // namespace tacho::cli
