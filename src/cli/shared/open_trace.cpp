// Opens the trace that a command was given (open_trace.h).
#include "cli/shared/open_trace.h"

#include "cli/command.h"
#include "format/format.h"

namespace tacho::cli {

Result<std::shared_ptr<const trace::Trace>> open_trace(const std::string& path) {
  auto trace = format::open_any(path);
  if (trace && !(*trace)->unknown().empty()) complain(kOk, (*trace)->unknown());
  return trace;
}

}  // namespace tacho::cli
