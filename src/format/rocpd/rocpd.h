// Reads and writes rocpd databases, the SQLite format of rocprofv3 (ROCm 7 and newer). Not to be confused
// with .rpd.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/format.h"
#include "format/sqlite/database.h"
#include "trace/trace.h"
#include "trace/writer.h"

namespace tacho::format::rocpd {

/// A SQLite database with rocpd's suffixed tables, or a folder with such files (*.db).
bool accepts(std::string_view path, std::string_view head, bool folder);
/// Reads one database, or all of a folder, into a temporary trace. Times are kept (CLOCK_BOOTTIME).
Result<std::shared_ptr<const trace::Trace>> read(const std::string& path);
Status read_into(const std::string& path, trace::TraceWriter& writer);

/// Writes target.file, schema version 3. Times in CLOCK_BOOTTIME. The environment is not dumped.
Status write(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
             std::vector<std::string>& written);

/// Suffixes ("_0000ddb5_...") of the recordings in a database; none = it is no rocpd database.
std::vector<std::string> suffixes(const sqlite::Database& database);

}  // namespace tacho::format::rocpd
