// Writes CSV files with rocprofv3's names, headers and number formats, one per domain that has records.
#pragma once

#include "format/format.h"

namespace tacho::format {

/// Writes <target.folder>/<target.prefix>_<name>.csv for every domain of options.process (0: all processes)
/// that has records, and agent_info with them; of one process without records nothing. Starts are CLOCK_BOOTTIME, and
/// End - Start is the duration to the nanosecond. All files are named together at the end, or none.
Status write_csv(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
                 std::vector<std::string>& written);

}  // namespace tacho::format
