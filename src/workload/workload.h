// A profile folder on disk, in any layout that rocprof-compute or Omniperf has written: pmc_perf.csv (wide,
// or long as from rocpd), per-pass files pmc_perf_<n>.csv or results_<n>.csv (also .csv.gz), level passes
// SQ_*LEVEL*.csv, sysinfo.csv with old or new column names, roofline.csv and profiling_config.yaml. Reading
// writes nothing.
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

/// The machine the run was recorded on: sysinfo.csv, with today's column names whatever the file called them.
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

/// The counters that were recorded together. "pmc_perf" holds the joined passes; a level pass
/// ("SQ_LEVEL_WAVES") has its own timestamps and its own values of every counter in it.
struct Pass {
  std::string name;
  CounterTable counters;
};

struct Workload {
  std::string path;
  SysInfo sysinfo;
  std::vector<std::string> kernels;  ///< names as recorded, in order of appearance
  std::vector<Dispatch> dispatches;
  std::vector<Pass> passes;  ///< "pmc_perf" first
  bool long_form = false;    ///< recorded through rocpd: level counters are <level>_ACCUM of pmc_perf
  std::vector<RooflineCeilings> ceilings;    ///< empty without roofline.csv
  std::vector<std::string> recorded_blocks;  ///< -b of the profile run, as written; empty = everything
  std::vector<std::string> warnings;         ///< sentences, counted where they repeat
  bool estimated = false;                    ///< values were extrapolated from some of the work-groups

  const Pass* pass(std::string_view name) const;
  std::string_view kernel_name(size_t dispatch) const { return kernels[dispatches[dispatch].kernel]; }
};

struct ReadOptions {
  WantedColumns wanted;
  /// Follow rocprof-compute 3.3 where we would do better: level passes are matched by row number instead of
  /// by kernel, and rows with contradictory times stay in.
  bool compat = false;
  /// Of a folder that tacho profile wrote: the run to read, with all of the same command and filters. 0 = the newest.
  int run = 0;
};

/// `path` itself when it holds counter data; else its only sub-folder (to any depth) that does. The error
/// lists the candidates when there are several, and says what else the folder seems to be when there are
/// none.
Result<std::string> find_workload(const std::string& path);

/// Reads sysinfo.csv alone (which architecture?) from a folder that find_workload() named.
Result<SysInfo> read_sysinfo(const std::string& folder);

/// Reads one folder. `sysinfo` is what read_sysinfo() gave, perhaps corrected by the user.
Result<Workload> read_workload(const std::string& folder, SysInfo sysinfo, const ReadOptions& options);

/// The id columns that formulas may use beside counters: Grid_Size, Start_Timestamp, ... Timestamps are
/// stored relative to the first one of their table, so that their differences are exact.
bool is_id_column(std::string_view name);

/// What a row of a per-pass file is matched by: kernel name without the suffixes rocprof adds (" [clone
/// .kd]", ".kd").
std::string_view plain_kernel_name(std::string_view name);

}  // namespace tacho::workload
