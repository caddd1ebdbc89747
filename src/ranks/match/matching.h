// Brings the ranks' collectives together: the k-th of a communicator is one operation on all of its ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "ranks/read/clock_fit.h"
#include "ranks/read/rank_pass.h"

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

/// A run's clock against that of the first run that it shares collectives with, and so on to run 0.
struct RunClock {
  ClockFit fit;          // against `against`
  uint32_t against = 0;  // an earlier run; its own number for runs that nothing relates to an earlier one
  double residual = 0;   // ns, of the whole chain
  int64_t typical = 0;   // ns: the median of what it is ahead of run 0
  bool related = false;
  bool by_messages = false;  // not by collectives
  bool numbered = false;     // by what has its number in the traces: MPI's
};

/// Moments for the clocks: collectives that no rank can leave before all have come end on all at about the same time;
/// where a pair of runs has fewer than eight of them, messages both ways (messages.h). Times are the runs' with their
/// clock_shift added.
Result<std::vector<RunClock>> relate_clocks(std::span<const RankRun> runs, const Spools& spools);

/// Forgets the fits of clocks that agree within what can be told (20 us and three residuals), and those between runs of
/// one known host. Returns the runs of the latter whose collectives end more than a millisecond from each other all the
/// same.
std::vector<uint32_t> drop_equal_clocks(std::span<const RankRun> runs, std::span<RunClock> clocks);

/// A run's time (clock_shift added) on run 0's clock.
int64_t common_time(std::span<const RunClock> clocks, uint32_t run, int64_t time);

}  // namespace tacho::ranks
