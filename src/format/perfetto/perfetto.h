// Perfetto's protobuf traces: written packet by packet, using only fields that both Perfetto v46 and current versions
// know, and read, as any version writes them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "format/shared/options.h"
#include "trace/write/writer.h"

namespace tacho::format {

/// Writes target.file. Time stamps are CLOCK_BOOTTIME, ns; clock snapshots relate the other clocks to it.
Status write_perfetto(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
                      std::vector<std::string>& written);

namespace perfetto {

/// True for Perfetto traces, plain, gzip or zstd.
bool accepts(std::string_view path, std::string_view head, bool folder);
/// Reads the whole file into a temporary trace, with bounded memory. Times are those of the trace's primary clock
/// (CLOCK_BOOTTIME, unless the file says otherwise), converted as Trace Processor does. Packets may come in any order.
/// A file that is cut off gives what stands before the cut, with a note.
Result<std::shared_ptr<const trace::Trace>> read(const std::string& path);
/// The same into `writer`.
Status read_into(const std::string& path, trace::TraceWriter& writer);

}  // namespace perfetto

}  // namespace tacho::format
