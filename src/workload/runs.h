// Reads tacho's profiling_config.yaml (rocprof-compute's keys for the newest run, then one line per run), and chooses
// the runs that analyze joins.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacho::workload {

/// One run's entry in profiling_config.yaml.
struct RunEntry {
  int number = 0;  ///< from 1
  std::vector<std::string> command;
  std::vector<std::string> kernels, dispatches;  ///< -k, -d as given
  std::vector<std::string> blocks;               ///< -b as given, or the metrics of --set
  std::string set, device, replay, multiplexing, tool, timestamp;
  std::vector<std::string> files;  ///< pass files, in the folder: "pmc_perf_0.csv"
  bool estimated = false;          ///< values were extrapolated; the CI gate refuses them
  bool roofline_only = false;
  int exit_code = 0;
  int seen = 0, measured = 0;  ///< dispatches that passed the filter, and those with values; 0 = unknown

  /// True if analyze joins the two runs.
  bool same_target(const RunEntry& other) const {
    return command == other.command && kernels == other.kernels && dispatches == other.dispatches;
  }
};

/// The entries of a folder; none when tacho wrote no profiling_config.yaml there.
Result<std::vector<RunEntry>> read_runs(const std::string& folder);
/// profiling_config.yaml: rocprof-compute's keys of the newest run first, then `runs:`.
std::string config_text(const std::vector<RunEntry>& runs);

/// The entries in the text of a profiling_config.yaml; none when tacho did not write it. Errors name `file` and the
/// line.
Result<std::vector<RunEntry>> parse_runs(std::string_view text, std::string_view file);

/// The whole profiling_config.yaml of a folder; "" when it has none.
Result<std::string> read_config(const std::string& folder);
/// The same as one JSON object, "" where there is none. Fails on what is no YAML map of values.
Result<std::string> config_as_json(const std::string& folder);
/// filter_blocks in such a text: a list of ids, or a mapping whose keys are ids. Empty when it is missing or malformed.
std::vector<std::string> parse_recorded_blocks(std::string_view text);

/// Indices of the runs to read together, newest first: all with the same target as run number `wanted` (0 = the newest
/// run). The error lists the existing numbers.
Result<std::vector<size_t>> choose_runs(const std::vector<RunEntry>& runs, int wanted, std::string_view folder);

/// "run 2: vcopy -n 16 (-k vecCopy)" for lists.
std::string describe(const RunEntry& run);

}  // namespace tacho::workload
