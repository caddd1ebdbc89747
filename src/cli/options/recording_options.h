// The options of `tacho trace`, bound to a launch::Recording: what to record, when, how much and into which files.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/bound_options.h"
#include "cli/options/device_counters.h"
#include "launch/launcher.h"

namespace tacho::cli {

struct TraceRequest {
  launch::LaunchOptions launch;  ///< launch.recording gets what the options say
  std::string output;            ///< -o; empty = <command>.tacho with a suffix when taken
  std::string ranks;             ///< --ranks; empty = all
  bool overwrite = false;
  bool quiet = false;                ///< -q: no summary
  bool view = false;                 ///< --view: look at the recording in a browser at the end
  std::vector<std::string> formats;  ///< the formats of -f: tacho, csv, json, pftrace ...; empty = only tacho
  uint32_t rpd_schema = 2;
  DeviceCounters device_counters;  ///< of --device-counters those that tacho samples beside the program
  std::string shown_as;            ///< what the summary calls the output; empty = its own name
  /// The kinds that -k and similar options name; none = all the cheap ones.
  bool kernels = false, copies = false, allocations = false, runtime = false, markers = false, system = false;
  std::vector<std::string> given;  ///< the long names of the options that the user gave
  bool launch_stacks = true;       ///< with a sampler: also the Python stacks of launching calls
};

std::span<const options::OptionRow<TraceRequest>> trace_options();
/// Those beside them that only concern programs that were running before.
std::span<const options::OptionRow<TraceRequest>> late_options();

/// Derives the dependent parts of the request's Recording: sources from the kinds, stacks of launches from the sampler.
/// Call it once, after parsing. Fails on options that contradict each other.
Status complete(TraceRequest& request);

/// The options of the table that record more API calls than by default.
std::span<const std::string_view> more_calls();

/// Fails where an option that the user gave has no effect because another one is missing or contradicts it. For a
/// request that complete() has filled in.
Status check_combination(const TraceRequest& request);

/// "timer" -> Sampler::kTimer and so on; the error for another name lists these.
Result<event::Sampler> sampler_named(const std::string& name);

}  // namespace tacho::cli
