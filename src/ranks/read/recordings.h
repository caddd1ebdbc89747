// Which of several traces hold the same recording, and which of them belong to one job.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ranks/read/rank_run.h"

namespace tacho::ranks {

/// A trace's runs after their passes.
struct PassedTrace {
  std::string file;
  std::vector<RankRun> runs = {};
  size_t recordings = 1;  // that were merged into it: values of column run of table process
};

/// The traces to keep, ascending: without those whose recordings all lie in others as well, as an export of a
/// trace, a copy of it or a merge of all ranks does. Two runs of no different rank are one recording if their work
/// is the same to the ns, and in files of one form begins at the same time; a merge may have corrected times by a
/// clock's drift. Of equal traces the first stays, and of a merge and its parts the parts. `remarks` gets a
/// sentence for each trace that goes.
std::vector<size_t> without_repeated(std::span<const PassedTrace> traces, std::vector<std::string>& remarks);

/// The traces of each job, ascending, in the order of their first traces. Two traces are tied to one job by different
/// rank numbers, by collectives or messages of one group of ranks, or by one host and a common time; never if they name
/// different numbers of ranks, or if their clocks say that they ran apart. `names`: of the passes.
std::vector<std::vector<size_t>> jobs_of(std::span<const PassedTrace> traces, const Names& names);

}  // namespace tacho::ranks
