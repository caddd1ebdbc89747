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

/// The whole summary as text, made for `screen`.
std::string summary_text(const trace::Trace& trace, const report::Screen& screen,
                         const SummaryOptions& options = {});

}  // namespace tacho::cli
