// Databases that lie compressed (NAME.rpd.gz, NAME.db.gz, NAME.db.zst): recognised by their first bytes and unpacked
// into a temporary file without a name, which SQLite's pages are then read from.
#pragma once

#include <string>
#include <string_view>

#include "base/files/temporary.h"
#include "base/result.h"

namespace tacho::sqlite {

/// The first bytes of every SQLite database.
inline constexpr std::string_view kDatabaseHead("SQLite format 3\0", 16);

/// Whether a file that begins with these bytes (some hundred suffice) is a SQLite database, as it is or compressed.
bool begins_database(std::string_view head);
/// The same for the file at `path`; false if it cannot be read.
bool is_database(const std::string& path);

/// Whether these bytes begin gzip or Zstandard data.
bool begins_compressed(std::string_view head);

/// Unpacks the compressed database open as `descriptor` into a temporary file, and makes it one without a write-ahead
/// log. Errors: damaged or cut off data (with the place), no database in it, not enough free disk in $TMPDIR. `path` is
/// for messages.
Result<TemporaryFile> unpack(int descriptor, const std::string& path);

}  // namespace tacho::sqlite
