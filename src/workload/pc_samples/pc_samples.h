// Reads the PC samples of a profile folder (ps_file_pc_sampling_stochastic.csv, ps_file_pc_sampling_host_trap.csv or
// ps_file_results.json) and counts them by kernel, instruction and source line. Newer versions of rocprof-compute write
// files of each process, "<pid>_ps_file_...", which are read together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "workload/pc_samples/sampled_instruction.h"

namespace tacho::workload {

/// True for `name` itself ("ps_file_kernel_trace.csv") and for the same of a process ("83_ps_file_kernel_trace.csv").
bool is_sample_file(std::string_view file, std::string_view name);

/// nullopt when the folder has no PC samples. Where no CSV file has any, those of ps_file_results.json count. Warnings
/// give the number of rows that do not fit the header, and name JSON that cannot be read or has no samples.
Result<std::optional<PcSamples>> read_pc_samples(const std::string& folder, std::vector<std::string>& warnings);

/// Sorts by kernel, source file and line: the order of the program as far as the files show it.
void sort_by_source(PcSamples& samples);

}  // namespace tacho::workload
