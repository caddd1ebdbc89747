// One rank's trace in one pass: how its GPU spent the time, and every collective with what came before it. Memory is
// bounded by the number of collectives and steps of one rank; what is kept for later goes to files without a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ranks/read/rank_run.h"
#include "trace/trace.h"

namespace tacho::ranks {

/// Whether ranges of this name mark the steps of a program: "step 3", "Iteration", "train_step" ...
bool names_a_step(std::string_view range);

/// Where steps begin when nothing in the files says so: after so many collectives each.
struct Period {
  size_t collectives = 0;  // 0 = unknown
  size_t first = 0;        // collectives before the first whole step
  bool operator==(const Period&) const = default;
};

/// The rank's pass. `run` comes with file, rank and process.
Status pass_over(const trace::Trace& trace, const Period& period, Names& names, Spools& spools, RankRun& run);

/// The period of a sequence of collectives: the shortest that repeats at least three times; nothing found gives 0.
/// `signatures`: what each is (communicator, operation, size); `before`: ns from the collective before it.
Period period_of(const std::vector<uint64_t>& signatures, const std::vector<int64_t>& before);

}  // namespace tacho::ranks
