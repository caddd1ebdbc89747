// The SQL schemas that tacho offers for any trace: its own, that of .rpd files and that of rocpd databases.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "format/sqlite/database.h"
#include "query/dialect/trace_facts.h"
#include "query/engine/relation.h"
#include "query/engine/result_table.h"

namespace tacho::query {

struct View {
  std::string name;
  std::string sql;  // the SELECT
};

struct Dialect {
  std::string name;
  std::vector<std::pair<std::shared_ptr<Store>, Relation>> relations;
  std::vector<std::pair<std::shared_ptr<Store>, Relation>> own_tables;  // the file's own, only for sums over groups
  std::vector<QueryTable> results;
  std::vector<View> views;
};

/// Every table of the event schema, with texts instead of string numbers and some extra columns (end, name, pid ...).
Dialect tacho_dialect(std::shared_ptr<TraceStore> store, std::shared_ptr<TraceFacts> facts);
/// The tables and views of an .rpd file, schema version 2. Times are CLOCK_MONOTONIC, ns.
Dialect rpd_dialect(std::shared_ptr<TraceStore> store, std::shared_ptr<TraceFacts> facts);
/// The tables and views of a rocpd database, schema version 3. Times are CLOCK_BOOTTIME, ns.
Dialect rocpd_dialect(std::shared_ptr<TraceStore> store, std::shared_ptr<TraceFacts> facts);

/// The views of a rocpd database over its own tables; each view covers all recordings in the database.
Result<Dialect> rocpd_file_dialect(const sqlite::Database& database);

}  // namespace tacho::query
