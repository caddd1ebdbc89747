// The files of profile --torch-trace: which operator of PyTorch launched each measured kernel (workload/torch_trace.h
// reads them).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "workload/writer.h"

namespace tacho::cli {

/// Writes a pair of files beside each pass file ("pmc_perf_0.csv") from a trace of the program with its operators.
/// Kernels of the passes are found in the trace by their number and name, else by name, sizes and running number.
/// `notes` gets sentences for the user.
Status write_torch_files(const workload::FolderWriter& folder, const std::string& trace_file,
                         const std::vector<std::string>& pass_files, std::vector<std::string>& notes);

}  // namespace tacho::cli
