// Runs the target once for a provider: starts it through launch::run, passes its output on untouched and shows it to
// the observer, then reads its dispatches back from the trace.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "counter/provider.h"

namespace tacho::counter {

struct TargetRunOptions {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  ///< further variables
  event::Configuration target;                                   ///< for sources in the target (launch::Recording)
  uint64_t sources = 0;            ///< tape::source_bit of each traced source; 0 with inject = false traces nothing
  std::optional<Regions> regions;  ///< recording starts paused, and the program resumes and pauses it
  bool inject = true;              ///< load our libraries into the target
  bool torch_trace = false;        ///< record PyTorch's operators, with the sources that they need
  std::string keep;                ///< the trace stays under this name; "" = it is removed
  std::string folder;              ///< for the temporary trace
  std::function<void()> tick;      ///< called a few times a second
};

struct TargetRun {
  launch::RunResult result;
  std::vector<ObservedDispatch> dispatches;  ///< in order of start; empty when nothing was traced
  bool called_mpi = false;                   ///< MPI_Init; known where our libraries were loaded into the target
};

/// Runs the target to its end. Reads dispatches when kDispatch is among the sources.
tl::expected<TargetRun, launch::LaunchError> run_target(const TargetRunOptions& options, Observer& observer);

/// Says, once for all runs, that recording never began and why (Filter::regions).
void tell_never_began(const TargetRun& run, Outcome& outcome, Observer& observer);

/// Runs the program once to record which operators of PyTorch launch its kernels; Outcome::operators gets the trace.
/// `environment`: as for the counting runs, so that the program finds the same devices.
tl::expected<void, launch::LaunchError> record_operators(const CollectRequest& request,
                                                         std::vector<std::pair<std::string, std::string>> environment,
                                                         Observer& observer, Outcome& outcome);
/// Name of the trace with operators in the workload's folder.
std::string operators_file(const std::string& folder);

/// A process of a launcher's job can call MPI_Init once. True, with a warning that says so, where run `number` (from 0)
/// of `runs` did and more were to come: make no further run.
bool mpi_ends_replay(const Outcome& outcome, size_t number, size_t runs, Observer& observer);

/// The same before the run that takes PC samples.
bool mpi_ends_sampling(const Outcome& outcome, Observer& observer);

/// Copies start and end from `timed` to the matching `dispatches`: equal kernel, grid, workgroup and running number
/// among these. Returns the number of dispatches without a match.
size_t join_times(std::vector<ObservedDispatch>& dispatches, const std::vector<ObservedDispatch>& timed);

}  // namespace tacho::counter
