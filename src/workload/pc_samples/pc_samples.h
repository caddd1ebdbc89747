// Reads the PC samples of a profile folder (ps_file_pc_sampling_stochastic.csv or ps_file_pc_sampling_host_trap.csv)
// and counts them by kernel, instruction and source line. Newer versions of rocprof-compute write files of each
// process, "<pid>_ps_file_...", which are read together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "workload/pc_samples/pc_sources.h"

namespace tacho::workload {

struct SampledInstruction {
  std::string kernel;       ///< "" when ps_file_kernel_trace.csv does not know the dispatch
  std::string instruction;  ///< "s_waitcnt vmcnt(0)"
  std::string source;       ///< "vcopy.cpp:42", "" without line tables
  uint64_t samples = 0;
  uint64_t issued = 0;                                   ///< samples in which the wave issued it; stochastic only
  std::vector<std::pair<std::string, uint64_t>> stalls;  ///< why it was not issued, most frequent first
};

struct PcSamples {
  std::string file;
  bool stochastic = false;  ///< knows issued and stalls
  uint64_t samples = 0;
  std::vector<SampledInstruction> instructions;  ///< by falling number of samples
  std::vector<SourceText> sources;               ///< lines of source that the folder has
};

/// True for `name` itself ("ps_file_kernel_trace.csv") and for the same of a process ("83_ps_file_kernel_trace.csv").
bool is_sample_file(std::string_view file, std::string_view name);

/// nullopt when the folder has no PC samples. A warning names samples that only a JSON file holds, which is not read;
/// another gives the number of rows that do not fit the header.
Result<std::optional<PcSamples>> read_pc_samples(const std::string& folder, std::vector<std::string>& warnings);

/// Sorts by kernel, source file and line: the order of the program as far as the files show it.
void sort_by_source(PcSamples& samples);

}  // namespace tacho::workload
