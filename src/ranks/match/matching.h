// Brings the ranks' collectives together: the k-th of a communicator is one operation on all of its ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "base/result.h"
#include "ranks/match/run_clock.h"
#include "ranks/read/rank_run.h"

namespace tacho::ranks {

/// A collective on one of its ranks.
struct Participant {
  uint32_t run;  // place in the list of runs
  Arrival arrival;
};

/// Communicators whose collectives the program numbers on every rank, and the smallest number. Ranks whose recordings
/// begin or end at other collectives meet by these numbers.
std::map<uint32_t, int64_t> numbered_on_all(std::span<const RankRun> runs);

/// Visits every collective with its participants, ascending by run. Collectives that some rank of the communicator
/// lacks come last, with complete = false. Reads all ranks side by side; memory is bounded by how many collectives they
/// are apart.
Status match_collectives(std::span<const RankRun> runs, const Spool<Arrival>& spool,
                         const std::function<void(std::span<Participant> participants, bool complete)>& visit);

/// Fits the clocks by collectives that no rank can leave before all have come: they end on all ranks at about the same
/// time. A pair of runs with fewer than eight of them is fitted by messages both ways (messages.h). Times are the runs'
/// with their clock_shift added.
Result<std::vector<RunClock>> relate_clocks(std::span<const RankRun> runs, const Spools& spools);

/// Drops the fits of clocks that agree within the resolution (20 us and three residuals), and those between runs of one
/// known host. Returns the runs of one host whose collectives nevertheless end more than a millisecond apart.
std::vector<uint32_t> drop_equal_clocks(std::span<const RankRun> runs, std::span<RunClock> clocks);

}  // namespace tacho::ranks
