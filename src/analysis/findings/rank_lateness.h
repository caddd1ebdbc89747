// Input of findings from outside a trace: how late its rank was, known only from the traces of many ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/findings/operator_roofs.h"

namespace tacho::analysis {

struct FindingSpan {
  int64_t from = 0, to = 0;     ///< trace time, ns
  std::vector<int64_t> tracks;  ///< rows of table track
};

/// One rank behind the others, which only many ranks' traces tell (ranks/match/lateness.h).
struct RankLateness {
  int64_t rank = 0;
  int64_t ranks = 0;
  int64_t waited = 0;   ///< ns of wall time that the others waited for it, at most
  int64_t late_in = 0;  ///< collectives to which it came last
  int64_t collectives = 0;
  std::string cause;  ///< "the host launched late"
  std::vector<FindingSpan> spans;
};

struct FindOptions {
  std::optional<RankLateness> ranks;
  std::optional<OperatorRoofs> operators;
};

}  // namespace tacho::analysis
