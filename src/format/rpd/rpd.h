// Reads and writes .rpd, rocmProfileData's SQLite format, in schema versions 2 and 3.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/shared/options.h"
#include "format/sqlite/database.h"
#include "trace/trace.h"
#include "trace/write/writer.h"

namespace tacho::format::rpd {

/// A file with operations on more GPUs than this is damaged.
inline constexpr size_t kMostGpus = 4096;

/// True for a SQLite database that has an .rpd file's tables.
bool accepts(std::string_view path, std::string_view head, bool folder);
/// Reads a whole .rpd file into a temporary trace. Times stay CLOCK_MONOTONIC. Skips rows that make no sense and counts
/// them as losses. Does not change the file.
Result<std::shared_ptr<const trace::Trace>> read(const std::string& path);
/// The same into `writer`.
Status read_into(const std::string& path, trace::TraceWriter& writer);

/// Writes target.file in schema version options.rpd_schema (2 or 3), times in CLOCK_MONOTONIC.
Status write(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
             std::vector<std::string>& written);

/// Fails if `database` is no .rpd file; the error names the missing table or column.
Status check(const sqlite::Database& database);

/// The schema version (1, 2, 3 ...) of an .rpd file; 0 = `database` is none.
int schema_version(const sqlite::Database& database);

}  // namespace tacho::format::rpd
