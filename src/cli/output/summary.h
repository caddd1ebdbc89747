// The summary of a run that `tacho trace` prints, and `tacho info` for a file.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "report/text.h"
#include "trace/trace.h"

namespace tacho::cli {

struct SummaryOptions {
  size_t top = 10;                        // rows of each table
  bool next_steps = true;                 // suggest further commands
  int64_t judged_rows = 20'000'000;       // findings: of traces with no more rows than this
  bool kept = true;                       // the trace file stays; otherwise the summary omits it
  std::vector<std::string> written = {};  // other files made from it
  int64_t rank = -1, ranks = -1;          // of the job that this run was part of; -1 = of none, unknown
};

/// The whole summary as text. Except for file names, no line is wider than `screen`.
std::string summary_text(const trace::Trace& trace, const report::Screen& screen, const SummaryOptions& options = {});

/// What a run says at its end on stderr: the whole summary, or, as a rank of a job whose first recorded rank prints
/// that (`ranks`: the list of --ranks, may be empty), one line and one for each loss.
std::string summary_of_run(const trace::Trace& trace, SummaryOptions options, std::string_view ranks);

/// "4 more processes without GPU work: ld (2), sh, python3-config"; empty if there are none. `shown` gets the rows of
/// the other processes. Leaves out a process without GPU work, API calls and markers if it is a tool that programs use
/// (shell, compiler, linker, version manager), even with call stacks, or if it has no call stacks either. Always shows
/// at least one process, and the first one unless it is a tool. What a profiler calls a process to have a place for its
/// own spans is none.
std::string helper_processes(const trace::Trace& trace, std::vector<int64_t>& shown);

}  // namespace tacho::cli
