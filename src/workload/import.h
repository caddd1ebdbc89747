// Makes a profile folder of what other tools left behind: rocprofv3's *counter_collection.csv, rocprof v1's and v2's
// results.csv with counters, and folders of rocprof-compute.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacho::workload {

/// Whether a CSV file has counters of kernels, by its header.
bool holds_counters(const std::string& path);

/// Files with counters under a folder, to four levels below it.
struct ForeignCounters {
  std::vector<std::string> passes;   ///< counter files, one a pass, in natural order
  std::vector<std::string> folders;  ///< complete profile folders (counters and sysinfo.csv)
  std::string agents;                ///< an agent_info.csv of rocprofv3; "" = none
  std::string architecture;          ///< "gfx942" if agent_info.csv or a results.sysinfo.txt of rocprof says so
};
/// Files of complete profile folders are not among `passes`.
ForeignCounters find_foreign_counters(const std::string& folder);

/// Writes the profile folder `output`: the passes as pmc_perf_<n>.csv, sysinfo.csv with the known facts about the GPU,
/// and profiling_config.yaml with the origin of the passes; or, without passes, a copy of the only complete folder.
/// `architecture` overrides the files. An error if the architecture is unknown or `output` exists (unless `overwrite`,
/// which replaces the files that a profile folder has).
Status import_counters(const ForeignCounters& found, const std::string& source, const std::string& output,
                       std::string architecture, bool overwrite);

}  // namespace tacho::workload
