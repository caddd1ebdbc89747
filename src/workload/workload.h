// Reads a profile folder in any layout that rocprof-compute or Omniperf has written: pmc_perf.csv (wide, or long as
// from rocpd), per-pass files pmc_perf_<n>.csv or results_<n>.csv (also .csv.gz), level passes SQ_*LEVEL*.csv,
// sysinfo.csv with old or new column names, roofline.csv and profiling_config.yaml. Never writes to the folder.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "workload/ceilings.h"
#include "workload/counter_table.h"

namespace tacho::workload {

/// The machine of the run: sysinfo.csv, with current column names whatever the file calls them.
class SysInfo {
 public:
  /// In the order of the file.
  const std::vector<std::pair<std::string, std::string>>& fields() const { return fields_; }
  /// The value, "" when the file has no such column.
  std::string_view get(std::string_view name) const;
  /// The value as a number; NaN when it is missing or not a number.
  double number(std::string_view name) const;
  void set(std::string_view name, std::string value);

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

/// One kernel dispatch; its counters are in row i of every pass.
struct Dispatch {
  int64_t id = 0;       ///< Dispatch_ID of the file
  int64_t gpu = 0;      ///< GPU_ID
  uint32_t kernel = 0;  ///< index into Workload::kernels
};

/// Counters that were recorded together. "pmc_perf" holds the joined passes. A level pass ("SQ_LEVEL_WAVES") has its
/// own timestamps and its own values of every counter in it.
struct Pass {
  std::string name;
  CounterTable counters;
};

struct Workload {
  std::string path;
  SysInfo sysinfo;
  std::vector<std::string> kernels;  ///< names as recorded, in order of appearance
  std::vector<Dispatch> dispatches;
  std::vector<Pass> passes;                  ///< "pmc_perf" first
  bool long_form = false;                    ///< recorded through rocpd: level counters are <level>_ACCUM of pmc_perf
  std::vector<RooflineCeilings> ceilings;    ///< empty without roofline.csv
  std::vector<std::string> recorded_blocks;  ///< -b of the profile run, as written; empty = everything
  std::vector<std::string> warnings;         ///< sentences, counted where they repeat
  bool estimated = false;                    ///< values were extrapolated from some of the work-groups
  /// Counters that perfmon/ marks as extrapolated from a part of the GPU's units, sorted.
  std::vector<std::string> extrapolated;

  const Pass* pass(std::string_view name) const;
  std::string_view kernel_name(size_t dispatch) const { return kernels[dispatches[dispatch].kernel]; }
};

struct ReadOptions {
  WantedColumns wanted;
  /// Follow rocprof-compute 3.3 even where tacho does better: match level passes by row number instead of by kernel,
  /// and keep rows with contradictory times.
  bool compat = false;
  /// In a folder of tacho profile: the run to read, together with all runs of the same command and filters. 0 = the
  /// newest.
  int run = 0;
};

/// `path` itself if it holds counter data, else its only sub-folder (to any depth) that does. The error lists the
/// candidates if there are several; if there are none, it says what else the folder seems to be.
Result<std::string> find_workload(const std::string& path);

/// Whether the folder itself holds counter data.
bool is_workload(const std::string& folder);

/// Reads only sysinfo.csv, for the architecture, from a folder that find_workload() returned.
Result<SysInfo> read_sysinfo(const std::string& folder);

/// Reads one folder. `sysinfo` comes from read_sysinfo(), with the user's corrections if any.
Result<Workload> read_workload(const std::string& folder, SysInfo sysinfo, const ReadOptions& options);

/// True for the id columns that formulas may use besides counters: Grid_Size, Start_Timestamp, ... Timestamps are
/// stored relative to the first one of their table, so that their differences are exact.
bool is_id_column(std::string_view name);

/// The kernel name by which rows of per-pass files are matched: without rocprof's suffixes " [clone .kd]" and ".kd".
std::string_view plain_kernel_name(std::string_view name);

}  // namespace tacho::workload
