// Opens the trace that a command was given.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "trace/trace.h"

namespace tacho::cli {

/// Like format::open_any(), but prints one line on stderr if the file holds tables, columns or values from another
/// version of tacho that this one does not know and leaves out, and one if it was merged from traces whose clocks
/// nothing ties to each other (analysis::unaligned_sentence()).
Result<std::shared_ptr<const trace::Trace>> open_trace(const std::string& path);

}  // namespace tacho::cli
