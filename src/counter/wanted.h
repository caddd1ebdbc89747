// From metrics to counters: finds the columns of a run that the formulas of a selection read.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "metric/catalog/catalog.h"

namespace tacho::counter {

struct WantedCounters {
  /// Sorted, without those that every dispatch has (Grid_Size, ...). "SQ_LEVEL_WAVES:SQ_WAVES" is SQ_WAVES as read in
  /// the pass of that level; a metric never mixes values of a level pass with those of other passes.
  std::vector<std::string> counters;
  std::vector<std::string> levels;  ///< level passes that the metrics read, sorted ("SQ_LEVEL_WAVES")
  size_t metrics = 0;
};

/// Finds the counters of the selected metrics (of the whole catalog when `selections` is empty), of $denom in every
/// normalisation, and of the built-in values they use. A counter with instances is its base name with a bracket:
/// "TCC_HIT[".
Result<WantedCounters> wanted_counters(const metric::Catalog& catalog, std::span<const metric::Selection> selections);

}  // namespace tacho::counter
