// One trace's ranks through the same pass and answer as many files (lateness.h).
#include "ranks/match/lateness.h"

#include <algorithm>

#include "ranks/answer/answers.h"
#include "ranks/read/rank_pass.h"

namespace tacho::ranks {

namespace column = event::column;
using event::Table;

Result<std::optional<analysis::RankLateness>> lateness(const trace::Trace& trace) {
  Job job;
  TACHO_ASSIGN(job.runs, runs_of(trace, trace.path()));
  int64_t rows = 0;
  for (const Table table : {Table::kApi, Table::kDispatch, Table::kCopy, Table::kFill, Table::kMarker})
    rows += trace.rows(table);
  const auto ranks = static_cast<int64_t>(job.runs.size());
  if (ranks < 2 || rows > kMostRows / ranks) return std::nullopt;
  std::sort(job.runs.begin(), job.runs.end(), [](const RankRun& a, const RankRun& b) { return a.rank < b.rank; });
  TACHO_ASSIGN(job.spools, Spools::create());
  for (RankRun& run : job.runs) TACHO_TRY(pass_over(trace, {}, job.names, job.spools, run));
  const Result<Report> report = answer(job);
  // Without collectives there is nothing to wait for.
  if (!report || report->stragglers.empty()) return std::nullopt;
  const Straggler& worst = report->stragglers.front();
  analysis::RankLateness out;
  out.rank = worst.rank;
  out.ranks = ranks;
  out.waited = worst.waited / (ranks - 1);
  out.late_in = static_cast<int64_t>(worst.collectives);
  out.collectives = static_cast<int64_t>(report->collectives.size());
  out.cause = cause_text(worst.cause, job.names);
  std::vector<const Collective*> latest;
  for (const Collective& collective : report->collectives)
    if (collective.last_rank == worst.rank && collective.spread > 0) latest.push_back(&collective);
  constexpr size_t kSpans = 5;
  const size_t kept = std::min(kSpans, latest.size());
  std::partial_sort(latest.begin(), latest.begin() + static_cast<ptrdiff_t>(kept), latest.end(),
                    [](const Collective* a, const Collective* b) {
                      return a->spread != b->spread ? a->spread > b->spread : a->first_start < b->first_start;
                    });
  latest.resize(kept);
  for (const Collective* const collective : latest) {
    const RankRun& run = job.runs[collective->last_run];
    // From the common clock to the trace's own.
    const int64_t shift = run.clock_shift - report->ranks[collective->last_run].clock_offset;
    analysis::FindingSpan& span = out.spans.emplace_back();
    span.from = collective->first_start - shift;
    span.to = collective->end - shift;
    for (int64_t track = 1; track < trace.rows(Table::kTrack) && span.tracks.size() < 2; ++track)
      if (trace.cell(Table::kTrack, track, column::Track::kind) == static_cast<int64_t>(event::TrackKind::kQueue) &&
          trace.cell(Table::kTrack, track, column::Track::process) == run.process)
        span.tracks.push_back(track);
  }
  return out;
}

}  // namespace tacho::ranks
