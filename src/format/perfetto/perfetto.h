// Writes Perfetto's protobuf traces packet by packet, using only fields that both Perfetto v46 and current versions
// know.
#pragma once

#include "format/shared/options.h"

namespace tacho::format {

/// Writes target.file. Time stamps are CLOCK_BOOTTIME, ns; clock snapshots relate the other clocks to it.
Status write_perfetto(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
                      std::vector<std::string>& written);

}  // namespace tacho::format
