// Reads tacho's profiling_config.yaml (rocprof-compute's keys for the newest run, then one line per run), and chooses
// the runs that analyze joins.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workload/writer.h"

namespace tacho::workload {

/// The entries in the text of a profiling_config.yaml; none when tacho did not write it. Errors name `file` and the
/// line.
Result<std::vector<RunEntry>> parse_runs(std::string_view text, std::string_view file);

/// The whole profiling_config.yaml of a folder; "" when it has none.
Result<std::string> read_config(const std::string& folder);
/// filter_blocks in such a text: a list of ids, or a mapping whose keys are ids. Empty when it is missing or malformed.
std::vector<std::string> parse_recorded_blocks(std::string_view text);

/// Indices of the runs to read together, newest first: all with the same target as run number `wanted` (0 = the newest
/// run). The error lists the existing numbers.
Result<std::vector<size_t>> choose_runs(const std::vector<RunEntry>& runs, int wanted, std::string_view folder);

/// "run 2: vcopy -n 16 (-k vecCopy)" for lists.
std::string describe(const RunEntry& run);

}  // namespace tacho::workload
