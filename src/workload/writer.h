// Writing a profile folder as rocprof-compute lays it out: perfmon/, one csv a pass, sysinfo.csv, timestamps.csv,
// profiling_config.yaml with one entry a run, log.txt. A run is added to what is there; nothing is replaced unless
// told.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tacho::workload {

/// What profiling_config.yaml says about one run.
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
  int seen = 0, measured = 0;  ///< dispatches that passed the filter, and those with values; 0 = not told

  /// Runs with the same are joined by analyze.
  bool same_target(const RunEntry& other) const {
    return command == other.command && kernels == other.kernels && dispatches == other.dispatches;
  }
};

/// The entries of a folder; none when it has no profiling_config.yaml of ours.
Result<std::vector<RunEntry>> read_runs(const std::string& folder);
/// profiling_config.yaml: rocprof-compute's keys of the newest run first, then `runs:`.
std::string config_text(const std::vector<RunEntry>& runs);

/// A value as counter files have it: integers without a fraction, others with all their digits, NaN as nothing.
std::string csv_number(double value);

class FolderWriter {
 public:
  /// Creates the folder (and what is missing above it), or opens it to add a run. With `overwrite` the files of
  /// earlier runs that we know are set aside; anything else in the folder stays. They are put back, and what was written
  /// meanwhile is removed, when the last copy of the writer goes and there was no started(). A folder has one writer at a
  /// time: an error while another process has one.
  static Result<FolderWriter> open(const std::string& folder, bool overwrite);

  /// The program runs: what was set aside is removed. Does nothing the second time.
  void started() const;

  const std::string& folder() const { return folder_; }
  /// Runs that were there before.
  const std::vector<RunEntry>& earlier() const { return earlier_; }
  /// First free n of pmc_perf_<n>.csv / results_<n>.csv: a new run's passes continue the numbering.
  int next_pass() const { return next_pass_; }
  /// What the files of a pass are called before their ending: "pmc_perf_1" becomes pmc_perf_<n>, or results_<n> in the
  /// long form (rocpd); "SQ_LEVEL_WAVES" keeps its name (behind "results_") and gets a number where it is taken.
  std::string stem(std::string_view pass, bool long_form) const;
  /// Writes a file whole; an existing one of that name is replaced only when `replace`.
  Status write(const std::string& name, std::string_view text, bool replace = false) const;
  /// Adds the entry of this run to profiling_config.yaml.
  Status add_run(const RunEntry& run) const;

 private:
  class Lock;
  class Aside;
  std::string folder_;
  std::shared_ptr<Lock> lock_;  // before what was set aside: held until that is back
  std::shared_ptr<Aside> aside_;
  std::vector<RunEntry> earlier_;
  std::set<std::string> taken_;  // files of earlier runs
  int next_pass_ = 0;
};

}  // namespace tacho::workload
