// The ranges of the program, told apart from what torch.profiler writes about itself and from what it repeats.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "trace/trace.h"

namespace tacho::walk {

/// Whether a row of table process stands for no process: torch.profiler's files have "Spans" and "Traces" as the place
/// of its own spans, and the pid -1 for what belongs to none. Files made of them by tacho give such rows pids above
/// those of Linux.
bool made_up_process(const trace::Trace& trace, int64_t process);

/// Which rows of table marker are the program's. Not those that a profiler wrote about itself ("PyTorch Profiler (0)",
/// "Iteration Start: PyTorch Profiler", "Record Window End"), and no range on a device whose name a range of the host
/// has: torch.profiler repeats each host range around the kernels that it launched.
class ProgramRanges {
 public:
  /// Reads the summaries of table marker.
  static Result<ProgramRanges> make(const trace::Trace& trace);
  /// `track` and `label`: rows of the tables.
  bool has(int64_t track, int64_t label) const;

 private:
  explicit ProgramRanges(const trace::Trace& trace) : trace_(&trace) {}
  bool profilers_own(int64_t track, int64_t label) const;
  bool on_device(int64_t track) const;

  const trace::Trace* trace_;
  std::vector<bool> of_host_;  // by row of table string: a range on a host's track has the name
};

}  // namespace tacho::walk
