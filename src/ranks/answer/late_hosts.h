// What the host did while its GPU waited for a launch: by the call stacks and Python functions that the trace holds.
#pragma once

#include <span>

#include "ranks/answer/answers.h"
#include "ranks/read/rank_run.h"

namespace tacho::ranks {

/// Fills in Cause::place of the steps and stragglers whose host launched late and for which no call or range stands
/// out. Opens the files of those ranks once more where they tell of the host: of at most kMostHostFiles ranks, those
/// for whom the others waited most, at most kMostHostWindows delays each. A file that cannot be read again leaves its
/// causes as they are.
void explain_late_hosts(std::span<const RankRun> runs, Names& names, Report& report);

inline constexpr size_t kMostHostWindows = 32, kMostHostFiles = 16;

}  // namespace tacho::ranks
