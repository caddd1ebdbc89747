// Opens the trace that a command was given (open_trace.h).
#include "cli/files/open_trace.h"

#include "analysis/trim.h"
#include "cli/command.h"
#include "format/format.h"

namespace tacho::cli {

Result<std::shared_ptr<const trace::Trace>> open_trace(const std::string& path) {
  auto trace = format::open_any(path);
  if (!trace) return trace;
  if (!(*trace)->unknown().empty()) complain(kOk, (*trace)->unknown());
  if (const std::string sentence = analysis::unaligned_sentence(**trace); !sentence.empty())
    complain(kOk, path + ": " + sentence);
  return trace;
}

}  // namespace tacho::cli
