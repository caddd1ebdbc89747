// From metrics to counters: which columns of a run the formulas of a selection read.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "metric/catalog/catalog.h"

namespace tacho::counter {

struct WantedCounters {
  /// Sorted; without those that come with every dispatch (Grid_Size, ...). "SQ_LEVEL_WAVES:SQ_WAVES" is SQ_WAVES as it
  /// was in the pass of that level, whose values a metric does not mix with those of other passes.
  std::vector<std::string> counters;
  std::vector<std::string> levels;  ///< level passes that metrics read from, sorted ("SQ_LEVEL_WAVES")
  size_t metrics = 0;
};

/// Counters of the selected metrics (all of the catalog when `selections` is empty), of $denom in every normalisation and
/// of the built-in values they use. Instances of a counter are its base name with a bracket: "TCC_HIT[".
Result<WantedCounters> wanted_counters(const metric::Catalog& catalog,
                                       std::span<const metric::Selection> selections);

}  // namespace tacho::counter
