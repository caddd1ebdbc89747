// Writes a trace as a Parquet dataset for DuckDB, Spark, ClickHouse and pandas, for data too large for one
// machine.
#pragma once

#include <string>
#include <vector>

#include "format/format.h"
#include "trace/trace.h"

namespace tacho::format::parquet {

/// Writes FOLDER/run=R/host=H/rank=K/table=T/part-<row>-<pid>.parquet for every table with rows of
/// options.process (which the caller names, one call a process). Columns: the facts' own, with texts instead
/// of string numbers, the dimension's columns beside them, pid, tid, device, queue; docs/commands/export.md
/// lists them. Times: ns, `start` in trace time, `start_unix` since 1970 where the trace knows it. Existing
/// files are refused unless options.overwrite; files get their names when all are complete. Needs
/// libduckdb.so.
Status write(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
             std::vector<std::string>& written);

}  // namespace tacho::format::parquet
