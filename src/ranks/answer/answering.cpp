// From matched collectives to answers, question by question (answering.h, answers.h).
#include "ranks/answer/answering.h"

#include <cmath>
#include <set>

#include "base/saturating.h"
#include "base/text/how_many.h"
#include "ranks/answer/late_hosts.h"
#include "ranks/match/late_senders.h"
#include "report/text.h"

namespace tacho::ranks {
namespace {

std::string nothing_found(const std::vector<RankRun>& runs) {
  int64_t kernels = 0;
  std::set<std::string_view> files;
  for (const RankRun& run : runs) {
    kernels += run.kernels;
    files.insert(run.file);
  }
  return fmt::format(
      "{}{}: no collective among the {} of {}, and no message or collective of MPI: tacho looked for "
      "kernels named nccl*, rccl* and *msccl*, for torch.distributed's \"Collective name\" in Kineto files, and for "
      "table message; record a span in which the ranks communicate",
      runs[0].file, files.size() > 1 ? " and " + how_many(files.size() - 1, "more file", "more files") : "",
      how_many(kernels, "kernel", "kernels"), how_many(runs.size(), "rank", "ranks"));
}

}  // namespace

RankStep* Answering::step_at(uint32_t run, int32_t step) {
  std::vector<RankStep>& steps = report.ranks[run].steps;
  return step >= 0 && static_cast<size_t>(step) < steps.size() ? &steps[static_cast<size_t>(step)] : nullptr;
}

void Answering::add_waited(uint32_t run, int32_t step, int64_t time) {
  if (step < 0 || static_cast<size_t>(step) >= runs[run].steps) return;
  if (waited_in[run].empty()) waited_in[run].resize(runs[run].steps);
  add_saturating(waited_in[run][static_cast<size_t>(step)], time);
}

void Answering::add_meanwhile(uint32_t sender, int64_t from, int64_t to, Cause& cause) const {
  if (cause.kind != Cause::Kind::kLateSends) return;
  for (const LateMessage& message : report.messages.late)  // the latest first
    if (message.from == sender && message.sent_at >= from && message.sent_at <= to) {
      cause.meanwhile = message.meanwhile;
      return;
    }
}

Status relate_ranks(Answering& work) {
  const std::vector<RankRun>& runs = work.runs;
  Report& report = work.report;
  TACHO_ASSIGN(work.clocks, relate_clocks(runs, work.job.spools));
  std::vector<RunClock>& clocks = work.clocks;
  report.aligned = runs.size() > 1;
  for (size_t run = 0; run < runs.size(); ++run) {
    const RunClock& clock = clocks[run];
    RankAnswer& rank = report.ranks[run];
    rank.related = clock.related;
    rank.clock_residual = clock.residual;
    if (!clock.related) report.aligned = false;
    report.clock_residual = std::max(report.clock_residual, clock.residual);
  }
  for (const uint32_t run : drop_equal_clocks(runs, clocks))
    report.remarks.push_back(fmt::format(
        "rank {}: its collectives end {} from rank {}'s of the same number: does its trace begin at another "
        "collective? Record all ranks over the same steps",
        runs[run].rank, report::format_duration(std::abs(static_cast<double>(clocks[run].typical))),
        runs[clocks[run].against].rank));
  for (size_t run = 1; run < runs.size(); ++run) {
    report.ranks[run].corrected = !clocks[run].fit.pieces.empty();
    if (report.ranks[run].corrected) report.ranks[run].clock_offset = clocks[run].typical;
  }
  return {};
}

Result<Report> answer(Job& job, bool details) {
  size_t found = 0;
  for (const RankRun& run : job.runs) found += run.arrivals + run.messages;
  if (found == 0) return fail("{}", nothing_found(job.runs));
  Answering work{.job = job, .details = details};
  work.report.ranks.resize(job.runs.size());
  work.waited_in.resize(job.runs.size());
  if (details) {
    for (size_t run = 0; run < job.runs.size(); ++run) work.report.ranks[run].steps.resize(job.runs[run].steps);
    TACHO_ASSIGN(work.report.arrivals, Spool<RankArrival>::create());
  }
  TACHO_TRY(relate_ranks(work));
  TACHO_ASSIGN(work.report.messages, look_at_messages(job.runs, job.spools.messages, work.clocks));
  explain_late_messages(job.runs, job.names, work.report.messages);
  TACHO_TRY(answer_collectives(work));
  TACHO_TRY(answer_steps(work));
  explain_late_hosts(job.runs, job.names, work.report);
  answer_kinds(work);
  answer_bytes(work);
  add_remarks(work);
  return std::move(work.report);
}

}  // namespace tacho::ranks
