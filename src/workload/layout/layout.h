// Reads the layouts of counter files: wide (one row per dispatch) or long (one row per dispatch and counter), in one
// file or one per pass. Internal to the workload folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/text/csv.h"
#include "workload/dispatch.h"
#include "workload/layout/counter_file.h"

namespace tacho::workload {

/// Reads one row per dispatch. Skips and logs rows that do not fit the header.
Result<RawTable> read_wide(const CsvSource& source, const ReadOptions& options, NameTable& kernels,
                           std::vector<std::string>& warnings);

/// Reads and pivots one row per dispatch and counter, in one or several files. A dispatch's duration is the median over
/// its rows.
Result<RawTable> read_long(const std::vector<CsvSource>& sources, const ReadOptions& options, NameTable& kernels,
                           std::vector<std::string>& warnings);

/// Joins passes of the same program by kernel, grid size and running number among those. Skips and logs dispatches that
/// are not in every pass. Timestamps are the mean over the passes that have them. A counter in several passes takes its
/// values from the first.
Result<RawTable> join_passes(std::vector<RawTable> passes, const NameTable& kernels,
                             std::vector<std::string>& warnings);

/// For every dispatch of `main`, the row of `other` that holds the same dispatch, or CounterTable::kNoRow.
std::vector<uint32_t> match_rows(const RawTable& main, const RawTable& other, const NameTable& kernels);

}  // namespace tacho::workload
