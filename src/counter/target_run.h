// One execution of the target for a provider: started through launch::run, its output passed on untouched and told to
// the observer, its dispatches read back from the trace.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "counter/provider.h"

namespace tacho::counter {

struct TargetRunOptions {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  ///< further variables
  event::Configuration target;  ///< for sources in the target (launch::Recording)
  uint64_t sources = 0;         ///< tape::source_bit of what is traced; 0 with inject = false: nothing
  bool inject = true;           ///< our libraries in the target
  std::string folder;           ///< where the trace lies meanwhile
  std::function<void()> tick;   ///< called a few times a second
};

struct TargetRun {
  launch::RunResult result;
  std::vector<Dispatch> dispatches;  ///< in the order in which they started; empty when nothing was traced
};

/// Runs the target to its end. Reads dispatches when kDispatch is among the sources.
tl::expected<TargetRun, launch::LaunchError> run_target(const TargetRunOptions& options, Observer& observer);

/// Gives `dispatches` the start and end of the same dispatches in `timed`: those of equal kernel, grid, workgroup and
/// running number among these. Returns how many found none.
size_t join_times(std::vector<Dispatch>& dispatches, const std::vector<Dispatch>& timed);

}  // namespace tacho::counter
