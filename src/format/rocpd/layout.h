// Which schema the tables of a recording have. Schema 3 (rocprofv3 of ROCm 7) tells process, thread, agent and queue in
// each row; schema 4 in the row's track. Readers take what columns there are, this file checks that they are enough.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "format/sqlite/database.h"

namespace tacho::format::rocpd {

/// A recording's schema.
struct RecordingSchema {
  int major = 3;
  std::string text = "3";  // as the database states it
};

/// The schema of the recording whose tables end in `suffix`: stated by the tag schema_version, else told by its
/// columns. Errors: a schema that tacho does not read, by its name; a table that has rows but lacks a column that tacho
/// needs, by the names of both.
Result<RecordingSchema> schema_of(const sqlite::Database& database, const std::string& suffix);

}  // namespace tacho::format::rocpd
