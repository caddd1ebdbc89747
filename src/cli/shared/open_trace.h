// Opens the trace that a command was given.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "trace/trace.h"

namespace tacho::cli {

/// format::open_any(), and one line on stderr when the file holds tables, columns or values of another version of tacho
/// that this one does not know and leaves out.
Result<std::shared_ptr<const trace::Trace>> open_trace(const std::string& path);

}  // namespace tacho::cli
