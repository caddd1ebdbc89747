// The answers of `tacho ranks` as text and as JSON.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ranks/answer/answers.h"

namespace tacho::ranks {

struct RankTextOptions {
  size_t width = 80;  // 0 = any
  bool colour = false;
  size_t top = 16;          // rows of a table; 0 = all
  int64_t step = kUnknown;  // whose critical path; kUnknown = of the longest step
};

/// Sentences first, then the tables. Fails if there is no such step.
Result<std::string> to_text(const Job& job, const Report& report, const RankTextOptions& options);

struct RankJsonOptions {
  int64_t zero = 0;  // ns of the common clock: the zero of all moments
  size_t most = 0;   // pairs of a rank and a step or collective, those with most waiting; 0 = all
};
/// tacho-ranks/1: everything, exact (docs/ranks.md), handed to `put` piece by piece; with arrivals where the report has
/// details. Fails if temporary data cannot be read back.
Status to_json(const Job& job, const Report& report, const std::function<void(std::string_view)>& put,
               const RankJsonOptions& options = {});

/// For a page that shows a trace: the output of `tacho ranks INPUTS --output-format json --arrivals`, cut to the size
/// of a page. Moments are ns after `t0`, a time of the trace that `tacho merge` makes of the inputs. Fails without a
/// collective.
Result<std::string> page_json(const std::vector<std::string>& inputs, int64_t t0);

}  // namespace tacho::ranks
