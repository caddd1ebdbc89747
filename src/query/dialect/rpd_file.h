// Answers queries directly from an .rpd file, without converting it to a trace: top, ktop, busy, and the views api and
// op as relations.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/sqlite/database.h"
#include "query/dialect/dialect.h"
#include "query/engine/named_sums.h"

namespace tacho::query {

struct RpdTop {
  std::shared_ptr<const NamedSums> rows;
  int64_t total = 0;       // ns, over all operations
  int64_t duplicates = 0;  // operations with the same name, start and end as another one
  int64_t unusable = 0;    // skipped operations: times that are no numbers, or absurd
  int64_t disordered = 0;  // operations that end before they start: their durations are not known
  int64_t unmeasured = 0;  // operations with start = end = 0, far from all other times: likewise
};
/// Sums operations by name (by type if they have no name), longest first. `as_view`: counts duplicates once, takes
/// times as they are, and orders rows like upstream's view.
Result<RpdTop> rpd_top(std::shared_ptr<const sqlite::Database> database, bool as_view);

/// Sums kernels by name with the time of the API calls that launched them: upstream's view ktop.
Result<RpdTop> rpd_ktop(std::shared_ptr<const sqlite::Database> database);

struct RpdBusy {
  struct Row {
    int64_t gpu = 0;
    int64_t sum = 0;   // ns, durations added up: upstream's GpuTime
    int64_t busy = 0;  // ns in which at least one operation was running
  };
  std::vector<Row> rows;                                 // by gpu
  int64_t first = 0, last = 0;                           // ns: upstream's WallTime is last - first
  int64_t unusable = 0, disordered = 0, unmeasured = 0;  // as in RpdTop
};
/// `as_view`: takes times as they are.
Result<RpdBusy> rpd_busy(const sqlite::Database& database, bool as_view);

/// Replacements for the file's own views: api and op as relations, top, ktop and busy as results, the others as SQL.
Result<Dialect> rpd_file_dialect(std::shared_ptr<const sqlite::Database> database, int version);

/// The same, but api and op are SQL views too: SQLite joins best within its own tables.
Result<Dialect> rpd_plain_dialect(std::shared_ptr<const sqlite::Database> database, int version);

}  // namespace tacho::query
