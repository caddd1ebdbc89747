// The options of `tacho trace`: what to record, when, how much and into which files, bound to a
// launch::Recording.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/options/bound_options.h"
#include "launch/launcher.h"

namespace tacho::cli {

struct TraceRequest {
  launch::LaunchOptions launch;  ///< launch.recording gets what the options say
  std::string output;            ///< -o; empty = <command>.tacho with a suffix when taken
  std::string ranks;             ///< --ranks; empty = all
  bool overwrite = false;
  std::vector<std::string> formats;  ///< beside tacho: csv, json, pftrace ...
  uint32_t rpd_schema = 2;
  std::string shown_as;  ///< what the summary calls the written file; empty = its name
  /// The kinds that -k and similar options name; none = everything cheap.
  bool kernels = false, copies = false, allocations = false, runtime = false, markers = false, system = false;
  bool launch_stacks = true;  ///< with a sampler: Python stacks of launching calls
};

std::span<const options::Row<TraceRequest>> trace_options();

/// Turns the parts of the request that depend on each other into its Recording: sources from the kinds,
/// stacks of launches from the sampler. Call it once, after the command line was read.
Status complete(TraceRequest& request);

/// "timer" -> Sampler::kTimer and so on; an error that lists the names otherwise.
Result<event::Sampler> sampler_named(const std::string& name);

}  // namespace tacho::cli
