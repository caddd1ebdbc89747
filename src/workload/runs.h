// profiling_config.yaml as tacho writes it: the keys of rocprof-compute for the newest run, then one line a run. Reading
// it back, and choosing which runs analyze joins.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workload/writer.h"

namespace tacho::workload {

/// The entries in the text of a profiling_config.yaml; none when tacho did not write it. Errors name `file` and the line.
Result<std::vector<RunEntry>> parse_runs(std::string_view text, std::string_view file);

/// The whole profiling_config.yaml of a folder; "" when it has none.
Result<std::string> read_config(const std::string& folder);
/// filter_blocks in such a text: a list of ids, or a mapping whose keys are ids. None when it cannot be read.
std::vector<std::string> parse_recorded_blocks(std::string_view text);

/// Indices of the runs that are read together, newest first: all with the target of run number `wanted` (0 = of the
/// newest run). The error names the numbers there are.
Result<std::vector<size_t>> choose_runs(const std::vector<RunEntry>& runs, int wanted,
                                        std::string_view folder);

/// "run 2: vcopy -n 16 (-k vecCopy)" for lists.
std::string describe(const RunEntry& run);

}  // namespace tacho::workload
