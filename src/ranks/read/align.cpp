// Alignment of traces (align.h).
#include "ranks/read/align.h"

#include <algorithm>
#include <cmath>

#include "ranks/match/matching.h"
#include "ranks/read/load.h"
#include "ranks/read/rank_pass.h"

namespace tacho::ranks {

Result<std::vector<Alignment>> align(std::span<const std::shared_ptr<const trace::Trace>> traces) {
  Job job;
  TACHO_ASSIGN(job.spools, Spools::create());
  for (const auto& trace : traces) {
    TACHO_ASSIGN(std::vector<RankRun> runs, runs_of(*trace, trace->path()));
    TACHO_TRY(pass_over(*trace, {}, job.names, job.spools, runs[0]));
    job.runs.push_back(std::move(runs[0]));
  }
  std::vector<Alignment> alignments(traces.size());
  for (size_t run = 0; run < traces.size(); ++run) alignments[run].has_realtime = job.runs[run].has_realtime;
  // Without a real-time clock in one of them, none helps.
  if (std::any_of(job.runs.begin(), job.runs.end(), [](const RankRun& run) { return !run.has_realtime; }))
    for (RankRun& run : job.runs) run.clock_shift = 0;
  TACHO_ASSIGN(std::vector<RunClock> clocks, relate_clocks(job.runs, job.spools));
  drop_equal_clocks(job.runs, clocks);
  const auto shared = std::make_shared<const std::vector<RunClock>>(std::move(clocks));
  for (uint32_t run = 0; run < traces.size(); ++run) {
    const RunClock& clock = (*shared)[run];
    Alignment& alignment = alignments[run];
    alignment.related = clock.related;
    if (run == 0 || !clock.related) continue;
    alignment.by_messages = clock.by_messages;
    alignment.samples = clock.fit.samples;
    alignment.outliers = clock.fit.outliers;
    alignment.residual = clock.residual;
    alignment.offset = clock.typical;
    alignment.pieces = clock.fit.pieces.size();
    if (!clock.fit.pieces.empty()) alignment.drift = clock.fit.pieces[0].drift;
    for (uint32_t at = run; (*shared)[at].against != at; at = (*shared)[at].against)
      alignment.corrected = alignment.corrected || !(*shared)[at].fit.pieces.empty();
    if (!alignment.corrected) continue;
    alignment.map = [shared, run, to = job.runs[run].clock_shift, from = job.runs[0].clock_shift](int64_t time) {
      return common_time(*shared, run, time + to) - from;
    };
  }
  return alignments;
}

}  // namespace tacho::ranks
