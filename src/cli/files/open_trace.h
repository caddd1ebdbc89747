// Opens the trace that a command was given.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "trace/trace.h"

namespace tacho::cli {

/// A trace that was cut off before its first event: an error, or a trace like any other.
enum class WhenEmpty : uint8_t { kRefuse, kAccept };

/// Like format::open_any(), but prints one line on stderr if the file holds tables, columns or values from another
/// version of tacho that this one does not know and leaves out, one if it was cut off (analysis::cut_off_sentence()),
/// and one if it was merged from traces whose clocks nothing ties to each other (analysis::unaligned_sentence()). The
/// error names the command that reads `path` if it is no trace but a profile folder, several traces, or a program.
Result<std::shared_ptr<const trace::Trace>> open_trace(const std::string& path, WhenEmpty empty = WhenEmpty::kRefuse);

/// The same for commands that ask for single operations. A file of `tacho watch -o FILE.tacho` has none: an error that
/// says what reads it.
Result<std::shared_ptr<const trace::Trace>> open_events(const std::string& path);

}  // namespace tacho::cli
