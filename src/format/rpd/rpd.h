// Reads and writes the .rpd format of rocmProfileData, a SQLite database: schema versions 2 and 3.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/format.h"
#include "format/sqlite/database.h"
#include "trace/trace.h"
#include "trace/writer.h"

namespace tacho::format::rpd {

/// Operations on more GPUs than this are damage, not a trace.
inline constexpr size_t kMostGpus = 4096;

/// True for a SQLite database with the tables of an .rpd file.
bool accepts(std::string_view path, std::string_view head, bool folder);
/// Reads a whole .rpd file into a temporary trace. Times are kept as they are (CLOCK_MONOTONIC); rows that
/// make no sense are counted as losses. The file is not changed.
Result<std::shared_ptr<const trace::Trace>> read(const std::string& path);
/// The same into `writer`.
Status read_into(const std::string& path, trace::TraceWriter& writer);

/// Writes target.file in schema version options.rpd_schema (2 or 3). Times in CLOCK_MONOTONIC.
Status write(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
             std::vector<std::string>& written);

/// An error that names the table or column whose lack makes `database` no .rpd file.
Status check(const sqlite::Database& database);

/// Whether `database` is an .rpd file, and of which schema version (1, 2, 3 ...); 0 = it is none.
int schema_version(const sqlite::Database& database);

}  // namespace tacho::format::rpd
