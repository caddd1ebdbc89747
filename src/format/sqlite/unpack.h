// Databases that lie compressed or alone in an archive (NAME.rpd.gz, NAME.db.zst, NAME.zip): recognised by their first
// bytes and unpacked into a temporary file without a name, which SQLite's pages are then read from.
#pragma once

#include <string>
#include <string_view>

#include "base/files/temporary.h"
#include "base/result.h"

namespace tacho::sqlite {

/// The first bytes of every SQLite database.
inline constexpr std::string_view kDatabaseHead("SQLite format 3\0", 16);

/// Whether the file at `path` is compressed or an archive. False if it cannot be read.
bool is_packed(const std::string& path);
/// Whether the file at `path` is a SQLite database, as it is, compressed, or alone in an archive.
bool is_database(const std::string& path);

/// Unpacks the database in the compressed file at `path` into a temporary file, and makes it one without a write-ahead
/// log. What follows the last page that the database's header speaks of stays packed. Errors: damaged or cut off data
/// (with the place), no database in it, not enough free disk in $TMPDIR.
Result<TemporaryFile> unpack(const std::string& path);

}  // namespace tacho::sqlite
