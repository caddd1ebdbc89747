// The verdict of the rules on a run, for people: implausible inputs, findings, and rules without inputs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "metric/analysis/analysis.h"
#include "report/text.h"

namespace tacho::metric {

/// "could save 0 to 63 % of its time"; counts by their names.
std::string savings_text(const Finding& finding);
/// A metric's unit as people write it: "%" for rocprof-compute's "pct", "% of peak" for "Pct of Peak".
std::string_view readable_unit(std::string_view unit);
/// "62.56 %, between 58.7 and 66.4 (> 60)".
std::string evidence_text(const Evidence& evidence);

/// Implausible inputs, a paragraph for each problem, those that withhold most findings first and at most `most`; ""
/// where there is none. `of` names the run among several.
std::string implausible_text(const Diagnosis& diagnosis, std::string_view of, const report::Screen& screen,
                             size_t most);
/// All findings, by kernel. Brief: the evidence of conditions and the first thing to try only, at most `most` findings;
/// the last line counts the others. Also says that there is none, and how many rules that rests on.
std::string findings_text(const Analysis& run, const report::Screen& screen, bool brief, size_t most);
/// The rules that lack inputs and what to collect for them; "" where there is none.
std::string not_judged_text(const Diagnosis& diagnosis, const report::Screen& screen, bool brief);

}  // namespace tacho::metric
