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
#include "workload/dispatch.h"
#include "workload/sysinfo.h"

namespace tacho::workload {

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
  std::vector<std::string> warnings;         ///< sentences, counted if they repeat
  bool estimated = false;                    ///< values were extrapolated from some of the work-groups
  /// Counters that perfmon/ marks as extrapolated from a part of the GPU's units, sorted.
  std::vector<std::string> extrapolated;

  const Pass* pass(std::string_view name) const;
  std::string_view kernel_name(size_t dispatch) const { return kernels[dispatches[dispatch].kernel]; }
};

/// `path` itself if it holds counter data, else its only sub-folder (to any depth) that does. The error lists the
/// candidates if there are several; if there are none, it says what else the folder seems to be.
Result<std::string> find_workload(const std::string& path);

/// Whether the folder itself holds counter data.
bool is_workload(const std::string& folder);

/// Reads one folder. `sysinfo` comes from read_sysinfo(), with the user's corrections if any.
Result<Workload> read_workload(const std::string& folder, SysInfo sysinfo, const ReadOptions& options);

}  // namespace tacho::workload
