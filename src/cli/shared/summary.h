// The summary that people see after a run and from `tacho info`.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "report/text.h"
#include "trace/trace.h"

namespace tacho::cli {

struct SummaryOptions {
  size_t top = 10;                        // rows of each table
  bool next_steps = true;                 // commands to go on with
  bool kept = true;                       // the trace file stays (else it is not mentioned)
  std::vector<std::string> written = {};  // other files that were made of it
};

/// The whole summary as text, made for `screen`.
std::string summary_text(const trace::Trace& trace, const report::Screen& screen,
                         const SummaryOptions& options = {});

}  // namespace tacho::cli
