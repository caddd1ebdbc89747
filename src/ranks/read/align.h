// Clocks of several traces brought onto the first one's, by the collectives and messages that the traces share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ranks/read/rank_run.h"
#include "ranks/read/recordings.h"
#include "trace/trace.h"

namespace tacho::ranks {

/// How one trace's clock stands against the first trace's.
struct Alignment {
  bool related = false;    // they share enough collectives or messages
  bool corrected = false;  // and the clocks differ by more than the resolution: `map` is set
  bool has_realtime = false;
  bool by_messages = false;  // of MPI, not by collectives
  size_t samples = 0, outliers = 0;
  size_t pieces = 0;                         // of the line; more than one: the clock jumped or changed its rate
  double residual = 0;                       // ns: 95 of 100 samples that are no outliers lie nearer
  int64_t offset = 0;                        // ns: the trace's median lead, beyond that of its real-time clock
  double drift = 0;                          // of the first piece, ns per ns
  std::function<int64_t(int64_t time)> map;  // the trace's time -> the first one's
};

/// What several traces hold, for without_repeated(), jobs_of() and align(). Of an aggregated trace, which has no
/// events, the runs stand without their passes.
struct TraceSurvey {
  Names names;
  Spools spools;
  std::vector<PassedTrace> traces;
};

/// Passes over all runs of `traces`; `files`: their names. Errors: as of pass_over().
Status survey(std::span<const std::shared_ptr<const trace::Trace>> traces, std::span<const std::string> files,
              TraceSurvey& found);

/// One for each of the surveyed traces `which`; the first is always related. Clocks of one known host are never
/// corrected. Adds to the survey's names and spools.
Result<std::vector<Alignment>> align(TraceSurvey& surveyed, std::span<const size_t> which);

}  // namespace tacho::ranks
