// Findings about a trace for the terminal: `tacho report findings` and the last lines of a run's summary.
#pragma once

#include <string>

#include "analysis/findings/findings.h"
#include "report/sections.h"
#include "trace/trace.h"

namespace tacho::cli {

/// Judges the rules of traces. If the trace holds several ranks, src/ranks says how late each was.
Result<analysis::Findings> findings_of(const trace::Trace& trace);

/// The findings, largest savings first, at most `most` of them (0 = all), and how many rules could not be judged;
/// `missing`: also which, and what each needs. Lines are no wider than the screen.
std::string findings_text(const analysis::Findings& findings, const trace::Trace& trace, size_t most, bool missing,
                          const report::Screen& screen);

/// A heading and one line for each of the first three, and where the rest is; nothing where nothing was found.
void add_findings_lines(report::Sections& out, const analysis::Findings& findings, const std::string& file);

/// {"from": ns, "length": ns, "findings": [...], "not_judged": [...], "remarks": [...]}; spans count from `from`.
std::string findings_json(const analysis::Findings& findings);

}  // namespace tacho::cli
