// Writes a trace as a Parquet dataset for DuckDB, Spark, ClickHouse and pandas, for data that is too large for one
// machine.
#pragma once

#include <string>
#include <vector>

#include "format/shared/options.h"
#include "trace/trace.h"

namespace tacho::format::parquet {

/// Writes FOLDER/run=R/host=H/rank=K/table=T/part-<row>-<pid>.parquet for every table in which options.process has
/// rows; the caller makes one call per process. Columns: the facts' own, with texts instead of string numbers, the
/// dimension's columns, and pid, tid, device, queue (docs/commands/export.md lists all). Times are ns: `start` in trace
/// time, `start_unix` since 1970 if the trace knows it. Fails on existing files unless options.overwrite. Names the
/// files only when all are complete. Needs libduckdb.so.
Status write(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
             std::vector<std::string>& written);

/// Fails with DuckLibrary::load()'s sentence if libduckdb.so is not there.
Status ready();

}  // namespace tacho::format::parquet
