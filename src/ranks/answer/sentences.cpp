// Sentences about the answers (sentences.h).
#include "ranks/answer/sentences.h"

#include <cmath>

#include "base/saturating.h"
#include "base/text/how_many.h"
#include "report/text.h"

namespace tacho::ranks {

std::string time_text(int64_t time) {
  return report::format_duration(static_cast<double>(time));
}

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", part / whole * 100) : "—";
}

std::string numbers(const std::vector<int64_t>& list) {
  std::string out;
  for (size_t i = 0; i < list.size();) {
    size_t k = i;
    while (k + 1 < list.size() && list[k + 1] == list[k] + 1) ++k;
    if (!out.empty()) out += ", ";
    out += std::to_string(list[i]);
    if (k > i) out += (k == i + 1 ? ", " : "-") + std::to_string(list[k]);
    i = k + 1;
  }
  return out;
}

std::string peak_text(const Group& group) {
  if (group.peak_of.empty()) return {};
  return group.peak > 0 ? fmt::format("Peak: {:g} GB/s, {}.", group.peak, group.peak_of)
                        : fmt::format("Peak: unknown; {}.", group.peak_of);
}

std::vector<std::string> headlines(const Job& job, const Report& report) {
  std::vector<std::string> out;
  int64_t waited = 0, span = 0;
  for (size_t run = 0; run < job.runs.size(); ++run) {
    add_saturating(waited, report.ranks[run].waited);
    add_saturating(span, job.runs[run].total.span());
  }
  const size_t count = job.runs.size();
  // Of one rank alone no step has anything to compare.
  const size_t steps = count == 1 ? job.runs[0].steps : report.steps.size();
  std::string first =
      fmt::format("{}, {}, {}{}.", how_many(count, "rank", "ranks"), how_many(steps, "step", "steps"),
                  how_many(report.collectives.size(), "collective", "collectives"),
                  report.messages.matched > 0 ? ", " + how_many(report.messages.matched, "message", "messages") : "");
  if (count > 1 || waited > 0)
    first += fmt::format(" Ranks waited for others {} of their time ({} of {}).",
                         percent(static_cast<double>(waited), static_cast<double>(span)), time_text(waited),
                         time_text(span));
  out.push_back(std::move(first));
  size_t shown = 0;
  for (const Straggler& straggler : report.stragglers) {
    if (shown == 3 || straggler.waited * 20 < waited || straggler.waited == 0) break;
    ++shown;
    std::string steps;
    if (!straggler.steps.empty())
      steps = fmt::format(", most in step{} {}", straggler.steps.size() == 1 ? "" : "s", numbers(straggler.steps));
    std::string where;
    if (!report.collectives.empty())
      where = fmt::format("last to {} of {}", straggler.collectives,
                          how_many(report.collectives.size(), "collective", "collectives"));
    if (straggler.for_messages > 0)
      where += fmt::format("{}{} of it for its messages", where.empty() ? "" : ", ", time_text(straggler.for_messages));
    out.push_back(fmt::format("Rank {} made them wait {} ({}): {}{}. Cause: {}.", straggler.rank,
                              time_text(straggler.waited),
                              percent(static_cast<double>(straggler.waited), static_cast<double>(waited)), where, steps,
                              cause_text(straggler.cause, job.names)));
  }
  if (shown == 0 && waited > 0)
    out.push_back(fmt::format("No rank stands out: they waited most for rank {}, and that is {} of all waiting.",
                              report.stragglers[0].rank,
                              percent(static_cast<double>(report.stragglers[0].waited), static_cast<double>(waited))));
  return out;
}

std::string clocks_text(const Job& job, const Report& report) {
  if (job.runs.size() < 2) return {};
  size_t corrected = 0;
  for (const RankAnswer& rank : report.ranks) corrected += rank.corrected ? 1 : 0;
  if (!report.aligned)
    return "Clocks: unaligned where ranks share no collective; arrivals are compared by the times in the files.";
  if (corrected == 0)
    return fmt::format("Clocks: agree; collectives end within {} of each other on all ranks (95 of 100).",
                       time_text(std::llround(report.clock_residual)));
  return fmt::format("Clocks: {} of {} ranks corrected by when collectives end, to within {} (95 of 100).", corrected,
                     job.runs.size(), time_text(std::llround(report.clock_residual)));
}

}  // namespace tacho::ranks
