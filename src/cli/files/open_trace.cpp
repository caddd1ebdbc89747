// Opens the trace that a command was given (open_trace.h).
#include "cli/files/open_trace.h"

#include <malloc.h>

#include "analysis/sums/sums.h"
#include "analysis/trim.h"
#include "cli/command.h"
#include "cli/shared/meant.h"
#include "format/format.h"

namespace tacho::cli {

Result<std::shared_ptr<const trace::Trace>> open_trace(const std::string& path, WhenEmpty empty) {
  // A reader's tables are freed before the analysis makes its own. Above this size malloc gives them back at once; by
  // itself it raises the limit to the size of what was freed, and keeps the pages.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  auto trace = format::open_any(path);
  if (!trace) {
    if (const std::string sentence = not_a_trace(path); !sentence.empty()) return fail("{}", sentence);
    return trace;
  }
  if (!(*trace)->unknown().empty()) complain(kOk, (*trace)->unknown());
  if (const std::string cut = analysis::cut_off_sentence(**trace, path); !cut.empty()) {
    if (empty == WhenEmpty::kRefuse && analysis::holds_no_event(**trace)) return fail("{}; no event is left", cut);
    complain(kOk, cut);
  }
  if (const std::string sentence = analysis::unaligned_sentence(**trace); !sentence.empty())
    complain(kOk, path + ": " + sentence);
  if (const std::string sentence = format::passes::sentence(**trace); !sentence.empty())
    complain(kOk, path + ": " + sentence);
  return trace;
}

Result<std::shared_ptr<const trace::Trace>> open_events(const std::string& path) {
  TACHO_ASSIGN(auto trace, open_trace(path));
  if (analysis::holds_sums(*trace)) return fail("{}", analysis::sums_sentence(path));
  return trace;
}

}  // namespace tacho::cli
