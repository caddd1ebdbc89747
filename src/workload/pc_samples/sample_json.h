// Reads the PC samples of rocprofv3's JSON (ps_file_results.json, <pid>_ps_file_results.json).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "workload/pc_samples/sample_counts.h"

namespace tacho::workload {

/// Adds the samples of a file to `counts` and returns their number; sets `stochastic` where they tell issued waves and
/// stalls. A warning says what could not be read: a damaged file counts up to the damage.
uint64_t read_sample_json(const std::string& path, SampleCounts& counts, bool& stochastic,
                          std::vector<std::string>& warnings);

/// The dispatches of the same file as rocprofv3's kernel trace in CSV (ps_file_kernel_trace.csv), for runs that only
/// sampled. Header alone where the file names none.
Result<std::string> kernel_trace_of_json(const std::string& path);

}  // namespace tacho::workload
