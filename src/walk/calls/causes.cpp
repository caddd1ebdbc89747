// The calls that device work may have been caused by (causes.h).
#include "walk/calls/causes.h"

#include "walk/calls/launches.h"

namespace tacho::walk {

Result<Causes<Span>> runtime_calls(const trace::Trace& trace, int64_t process) {
  using A = event::column::Api;
  const std::vector<bool> runtime = calls_of_runtimes(trace);
  Causes<Span> calls;
  Status status;
  for (const auto& rows : trace::chunks<A::track, A::start, A::duration, A::dim, A::correlation>(trace, status))
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto function = static_cast<size_t>(rows.dim[i]);
      if (rows.correlation[i] == 0 || (function < runtime.size() && !runtime[function])) continue;
      const int64_t owner = trace::cell<event::column::Track::process>(trace, rows.track[i]);
      if (process != 0 && owner != process) continue;
      const int64_t start = rows.start[i], duration = rows.duration[i];
      calls.add(owner, rows.correlation[i], {start, duration == event::kUnknown ? start : start + duration});
    }
  TACHO_TRY(status);
  TACHO_TRY(calls.finish());
  return calls;
}

}  // namespace tacho::walk
