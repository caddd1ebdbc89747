// Reads Chrome trace JSON of any length, .json or .json.gz, above all torch.profiler's (Kineto).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::format::kineto {

/// True for JSON, plain or gzip, unless it is rocprofv3's.
bool accepts(std::string_view path, std::string_view head, bool folder);
/// Reads the whole file into a temporary trace, events in the file's order, with bounded memory. Converts the file's
/// microseconds (with fractions) to ns exactly.
Result<std::shared_ptr<const trace::Trace>> read(const std::string& path);
/// The same into `writer`.
Status read_into(const std::string& path, trace::TraceWriter& writer);

}  // namespace tacho::format::kineto
