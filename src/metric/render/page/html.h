// Renders the analysis as one self-contained page.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "metric/analysis/analysis.h"

namespace tacho::metric {

/// The page that is built from web/ with the JSON of the runs inside (schema tacho-analysis/1, with "page").
Result<std::string> to_html(std::span<const Analysis> runs);

}  // namespace tacho::metric
