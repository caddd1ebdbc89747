// Brings the ranks' collectives together: the k-th of a communicator is one operation on all of its ranks.
#pragma once

#include <cstdint>
#include <functional>
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

/// Gives every collective with all that took part, ascending by run; one of which a rank of the communicator lacks its
/// part comes last, with complete = false. Reads all ranks side by side; memory is bounded by how far they are apart,
/// counted in collectives.
Status match_collectives(std::span<const RankRun> runs, const Spool<Arrival>& spool,
                         const std::function<void(std::span<Participant> participants, bool complete)>& visit);

/// Moments for the clocks: collectives that no rank can leave before all have come end on all at about the same time;
/// where a pair of runs has fewer than eight of them, messages both ways (messages.h). Times are the runs' with their
/// clock_shift added.
Result<std::vector<RunClock>> relate_clocks(std::span<const RankRun> runs, const Spools& spools);

/// Forgets the fits of clocks that agree within what can be told (20 us and three residuals), and those between runs of
/// one known host. Returns the runs of the latter whose collectives end more than a millisecond from each other all the
/// same.
std::vector<uint32_t> drop_equal_clocks(std::span<const RankRun> runs, std::span<RunClock> clocks);

}  // namespace tacho::ranks
