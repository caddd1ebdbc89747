// Writes CSV files with rocprofv3's names, headers and number formats, one for each domain with records.
#pragma once

#include "format/shared/options.h"

namespace tacho::format {

/// Writes <target.folder>/<target.prefix>_<name>.csv for every domain in which options.process (0: any process) has
/// records, and agent_info; nothing if that process has no records. Starts are CLOCK_BOOTTIME, ns; End - Start is the
/// exact duration. Names the files only when all are complete.
Status write_csv(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
                 std::vector<std::string>& written);

}  // namespace tacho::format
