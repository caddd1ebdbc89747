// Two runs of a document, compared: the answer of `tacho diff`, and where their timelines meet.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "view/run.h"

namespace tacho::view {

/// {"by", "columns": [{"name", "title", "unit"}], "rows": [[...]], "names": [[in a, in b], ...], "count", "total_a",
/// "total_b", "sentence", "remarks"}: rows as `tacho diff --output-format json` writes them, the largest differences
/// first and at most 2,000 of them; "names" are the numbers of a row's name in each run, 0 if it does not occur;
/// "sentence" says what changed and whether it is more than noise. `by` is one of `tacho diff --by`, or "line" or
/// "function": these compare the sampled time of the host by the innermost line or function of the user's own code,
/// "calls" are samples, and "p" is that of two Poisson counts.
Result<std::string> compare(const Run& a, const Run& b, std::string_view by);

/// {"a", "b", "on", "on_b"}: the moment of each run, ns since its t0, that is the same in both: where the first marker
/// begins
/// that both have, numbers in its text aside and markers of steps before others. "on" is its text in a, null for the
/// runs'
/// beginnings.
Result<std::string> alignment(const Run& a, const Run& b);

}  // namespace tacho::view
