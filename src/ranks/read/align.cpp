// Alignment of traces (align.h).
#include "ranks/read/align.h"

#include <algorithm>
#include <cmath>

#include "ranks/match/identities.h"
#include "ranks/match/matching.h"
#include "ranks/read/load.h"

namespace tacho::ranks {

Status survey(std::span<const std::shared_ptr<const trace::Trace>> traces, std::span<const std::string> files,
              TraceSurvey& found) {
  TACHO_ASSIGN(found.spools, Spools::create());
  for (size_t i = 0; i < traces.size(); ++i) {
    if (traces[i]->aggregated()) {
      PassedTrace& passed = found.traces.emplace_back(PassedTrace{.file = files[i]});
      TACHO_ASSIGN(passed.runs, runs_of(*traces[i], files[i]));
      continue;
    }
    TACHO_ASSIGN(PassedTrace passed, pass_over_runs(*traces[i], files[i], {}, found.names, found.spools));
    found.traces.push_back(std::move(passed));
  }
  return {};
}

Result<std::vector<Alignment>> align(TraceSurvey& surveyed, std::span<const size_t> which) {
  std::vector<RankRun> runs;
  for (const size_t trace : which) runs.push_back(surveyed.traces[trace].runs[0]);
  std::vector<Alignment> alignments(runs.size());
  for (size_t run = 0; run < runs.size(); ++run) alignments[run].has_realtime = runs[run].has_realtime;
  // Without a real-time clock in one of them, none helps.
  if (std::ranges::any_of(runs, [](const RankRun& run) { return !run.has_realtime; }))
    for (RankRun& run : runs) run.clock_shift = 0;
  std::vector<RankRun*> each;
  for (RankRun& run : runs) each.push_back(&run);
  keep_machines_apart(each);
  TACHO_TRY(match_by_identity(each, surveyed.spools, surveyed.names));
  TACHO_ASSIGN(std::vector<RunClock> clocks, relate_clocks(runs, surveyed.spools));
  drop_equal_clocks(runs, clocks);
  const auto shared = std::make_shared<const std::vector<RunClock>>(std::move(clocks));
  for (uint32_t run = 0; run < runs.size(); ++run) {
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
    alignment.map = [shared, run, to = runs[run].clock_shift, from = runs[0].clock_shift](int64_t time) {
      return common_time(*shared, run, time + to) - from;
    };
  }
  return alignments;
}

}  // namespace tacho::ranks
