// Findings about a trace: where its time went that it need not go, in sentences with evidence (docs/findings.md). The
// rules are data, catalog/trace/rules.yaml; `tacho report findings`, the summary of `tacho trace` and `tacho view` show
// the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/findings/rank_lateness.h"
#include "base/result.h"
#include "report/value.h"
#include "trace/trace.h"

namespace tacho::analysis {

struct TraceFinding {
  std::string rule;       ///< "launch-bound"
  std::string title;      ///< the finding in a few words
  std::string where;      ///< "GPU 0"; empty = the whole run
  bool possible = false;  ///< an interval straddles its threshold, or what would refute it is not in the trace
  std::string doubt;      ///< why it is only possible
  std::string sentence;   ///< with numbers and units
  std::vector<std::string> evidence;
  /// Wall time that it could save, ns; nullopt = unknown. Low is 0 for a possible finding.
  std::optional<std::pair<int64_t, int64_t>> saves;
  /// Bytes of memory that it could free, of a finding about memory. Low is 0 for a possible finding.
  std::optional<std::pair<int64_t, int64_t>> frees;
  std::string model;       ///< where the range comes from
  std::string refuted_by;  ///< what would speak against it
  std::vector<std::string> advice;
  std::vector<FindingSpan> spans;  ///< the worst stretches, costliest first
};

struct UnjudgedRule {
  std::string rule, title;
  std::string needs;  ///< "call stacks (tacho sys sample)"
};

struct Findings {
  std::vector<TraceFinding> findings;  ///< by the time that could be saved, most first, then those about memory
  std::vector<UnjudgedRule> not_judged;
  size_t rules = 0;
  bool device_work = false;  ///< the trace has kernels, copies or fills
  int64_t from = 0;          ///< where the trace begins, ns: what times in texts are counted from, as in the page
  int64_t length = 0;        ///< of the run, ns (docs/definitions.md)
  std::vector<std::string> remarks;  ///< what stands against trusting times here: sentences
};

/// Judges all rules. Bounded memory; some hundred ns a row. An error where the file cannot be read.
Result<Findings> find(const trace::Trace& trace, const FindOptions& options = {});

/// Appends "findings", "not_judged" and "remarks", lists, to an object. Times of spans are relative to `zero`.
void add_findings(report::JsonValue& document, const Findings& findings, int64_t zero);

/// One line each, for csv.
report::Answer findings_answer(const Findings& findings);

/// "could save 0.8 to 1.6 s", "could free up to 2.00 GiB"; "" if neither is known.
std::string gains_text(const TraceFinding& finding);
/// "0.8 to 1.6 s", "up to 11 ms"; "" if its savings are unknown.
std::string savings_text(const TraceFinding& finding);

}  // namespace tacho::analysis
