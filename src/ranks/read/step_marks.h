// Where the steps of a program begin: at ranges that mark them, or by how its collectives repeat.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trace/trace.h"

namespace tacho::ranks {

/// Whether ranges of this name mark the steps of a program: "step 3", "Iteration", "train_step" ...
bool names_a_step(std::string_view range);

struct StepMarks {
  std::vector<int64_t> begins;  // host time, ascending; empty = nothing marks steps
  std::string from;             // what marks them: "ProfilerStep", "Optimizer.step", ...
  int64_t first = 0;            // what the program calls step 0
  std::vector<bool> is_step;    // by row of table label

  /// The number of the step at `time`; -1 = before the first.
  int32_t of(int64_t time) const {
    return static_cast<int32_t>(std::upper_bound(begins.begin(), begins.end(), time) - begins.begin()) - 1;
  }
};

/// The steps that host ranges of `process` (row; 0 = of all) mark: a profiler's, else from one optimizer's step to the
/// next, else ranges of the program's own. Errors: damaged data.
Result<StepMarks> marked_steps(const trace::Trace& trace, int64_t process);

/// Where steps begin if nothing marks them: every `collectives` collectives.
struct Period {
  size_t collectives = 0;  // 0 = unknown
  size_t first = 0;        // collectives before the first whole step
  bool operator==(const Period&) const = default;
};

/// The period of a sequence of collectives: the shortest that repeats at least three times; nothing found gives 0.
/// `signatures`: a hash of each one's communicator, operation and size; `before`: ns since the collective before it.
Period period_of(const std::vector<uint64_t>& signatures, const std::vector<int64_t>& before);

}  // namespace tacho::ranks
