// The summary that `tacho trace` prints after a run, and `tacho info` of a file.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "report/text.h"
#include "trace/trace.h"

namespace tacho::cli {

struct SummaryOptions {
  size_t top = 10;                        // rows of each table
  bool next_steps = true;                 // suggest further commands
  bool kept = true;                       // the trace file stays; else the summary does not mention it
  std::vector<std::string> written = {};  // other files made from it
};

/// The whole summary as text. No line is longer than `screen` is wide, names of files apart.
std::string summary_text(const trace::Trace& trace, const report::Screen& screen,
                         const SummaryOptions& options = {});

/// "4 more processes without GPU work: ld (2), sh, python3-config"; empty when there are none. `shown` gets the rows of the
/// others. A process is left out when it made no call of a GPU API, set no marker and has no call stacks, and is a tool that
/// programs use (shells, compilers, linkers, version managers) or did nothing at all; one process is
/// always shown.
std::string helper_processes(const trace::Trace& trace, std::vector<int64_t>& shown);

}  // namespace tacho::cli
