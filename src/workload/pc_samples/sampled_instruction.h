// PC samples of a profile folder, counted by instruction.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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

}  // namespace tacho::workload
