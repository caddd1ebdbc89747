// Sentences about the limits of the answers (answering.h).
#include <cmath>
#include <set>

#include "ranks/answer/answering.h"
#include "report/text.h"

namespace tacho::ranks {

void add_remarks(Answering& work) {
  const std::vector<RankRun>& runs = work.runs;
  Report& report = work.report;
  if (!report.missing.empty()) {
    std::string list;
    for (size_t i = 0; i < report.missing.size() && i < 8; ++i)
      list += fmt::format("{}{}", i > 0 ? ", " : "", report.missing[i]);
    if (report.missing.size() > 8) list += fmt::format(" and {} more", report.missing.size() - 8);
    report.remarks.push_back(fmt::format("rank{} {} no file: the results cover only the other ranks",
                                         report.missing.size() == 1 ? "" : "s",
                                         list + (report.missing.size() == 1 ? " has" : " have")));
  }
  if (report.mismatched > 0)
    report.remarks.push_back(
        fmt::format("{} collective{} left out because the ranks disagree ({}): do all traces begin at the same step?",
                    report.mismatched, report.mismatched == 1 ? " is" : "s are", work.disagreement));
  if (report.incomplete > 0)
    report.remarks.push_back(
        fmt::format("{} collective{} on some ranks only: did a rank die, or are the traces of different lengths?",
                    report.incomplete, report.incomplete == 1 ? " is" : "s are"));
  if (report.messages.unmatched > 0)
    report.remarks.push_back(
        fmt::format("{} message{} of MPI lack{} the other half: its rank has no file, is a process that "
                    "MPI_Comm_spawn started, or lost the record, or tacho attached after its communicator was made",
                    report.messages.unmatched, report.messages.unmatched == 1 ? "" : "s",
                    report.messages.unmatched == 1 ? "s" : ""));
  if (report.point_to_point > 0)
    report.remarks.push_back(
        fmt::format("{} sends and receives count as communication but are not matched", report.point_to_point));
  for (size_t run = 0; run < runs.size(); ++run) {
    if (runs[run].arrivals == 0 && !report.collectives.empty())
      report.remarks.push_back(fmt::format("rank {} takes part in no collective", runs[run].rank));
    if (report.ranks[run].corrected && std::abs(report.ranks[run].clock_offset) > 1'000'000)
      report.remarks.push_back(
          work.clocks[run].numbered
              ? fmt::format("the clock of rank {} seems to be {} off", runs[run].rank,
                            report::format_duration(static_cast<double>(std::abs(report.ranks[run].clock_offset))))
              : fmt::format("the clock of rank {} seems to be {} off; if its trace begins at "
                            "another collective than rank {}'s, this is the reason",
                            runs[run].rank,
                            report::format_duration(static_cast<double>(std::abs(report.ranks[run].clock_offset))),
                            runs[0].rank));
  }
  if (runs.size() > 1 && !report.aligned) {
    bool one_host = true;
    for (const RankRun& run : runs) one_host = one_host && !run.host.empty() && run.host == runs[0].host;
    if (!one_host)
      report.remarks.emplace_back("unaligned: some ranks share no collective or message with rank 0's, so their clocks "
                                  "cannot be compared with its own");
  }
  if (runs.size() == 1)
    report.remarks.push_back(fmt::format(
        "{} holds one rank only: give the files of all ranks to see which rank waits for which", runs[0].file));
  std::set<std::string> programs;
  for (const RankRun& run : runs)
    if (!run.program.empty()) programs.insert(run.program);
  if (programs.size() > 1) {
    std::string list;
    for (const std::string& program : programs) list += (list.empty() ? "" : ", ") + program;
    report.remarks.push_back("the traces are of different programs (" + list + "): do they belong to one job?");
  }
}

}  // namespace tacho::ranks
