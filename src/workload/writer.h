// Writes a profile folder in rocprof-compute's layout: perfmon/, one csv per pass, sysinfo.csv, timestamps.csv,
// profiling_config.yaml with one entry per run, log.txt. A run adds to the folder and replaces nothing unless told to.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "workload/runs.h"

namespace tacho::workload {

/// A value as text for counter files: integers without a fraction, others with all digits, NaN as "".
std::string csv_number(double value);

class FolderWriter {
 public:
  /// Creates the folder and its missing parents, or opens it to add a run. With `overwrite` it sets aside the known
  /// files of earlier runs; anything else in the folder stays. If the last copy of the writer is destroyed without a
  /// call to started(), it puts them back and removes the files written meanwhile. An error while another process has a
  /// writer for the folder.
  static Result<FolderWriter> open(const std::string& folder, bool overwrite);

  /// Call when the program runs: removes the files set aside. Does nothing the second time.
  void started() const;

  const std::string& folder() const { return folder_; }
  /// Runs that were already in the folder.
  const std::vector<RunEntry>& earlier() const { return earlier_; }
  /// The first free n of pmc_perf_<n>.csv or results_<n>.csv; a new run's passes continue the numbering.
  int next_pass() const { return next_pass_; }
  /// The stem of a pass's file names: "pmc_perf_1" becomes pmc_perf_<n>, or results_<n> in the long form (rocpd).
  /// "SQ_LEVEL_WAVES" keeps its name (after "results_" in the long form) and gets a number if the name is taken.
  std::string stem(std::string_view pass, bool long_form) const;
  /// Writes a whole file; replaces an existing one only if `replace`.
  Status write(const std::string& name, std::string_view text, bool replace = false) const;
  /// Adds the entry of this run to profiling_config.yaml.
  Status add_run(const RunEntry& run) const;

 private:
  class Lock;
  class Aside;
  std::string folder_;
  std::shared_ptr<Lock> lock_;  // declared first: held until the files set aside are back
  std::shared_ptr<Aside> aside_;
  std::vector<RunEntry> earlier_;
  std::set<std::string> taken_;  // files of earlier runs
  int next_pass_ = 0;
};

}  // namespace tacho::workload
