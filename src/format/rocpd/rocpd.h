// Reads and writes rocpd databases, the SQLite format of rocprofv3 (ROCm 7 and newer). Do not confuse it with .rpd.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/shared/options.h"
#include "format/sqlite/database.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::format::rocpd {

/// True for a SQLite database with rocpd's suffixed tables, or a folder with such files (*.db).
bool accepts(std::string_view path, std::string_view head, bool folder);
/// Reads one database, or all in a folder, into a temporary trace. Times stay CLOCK_BOOTTIME.
Result<std::shared_ptr<const trace::Trace>> read(const std::string& path);
Status read_into(const std::string& path, trace::TraceWriter& writer);

/// Writes target.file in schema version 3.0.2, times in CLOCK_BOOTTIME. Leaves out the environment.
Status write(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
             std::vector<std::string>& written);

/// The suffixes ("_0000ddb5_...") of the recordings in a database; none = not a rocpd database.
std::vector<std::string> suffixes(const sqlite::Database& database);

}  // namespace tacho::format::rocpd
