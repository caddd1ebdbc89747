// The SQL schemas that tacho offers: its own, and those of .rpd files and rocpd databases over any trace.
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
  std::vector<std::pair<std::shared_ptr<Store>, Relation>>
      own_tables;  // the file's own, for sums over groups only
  std::vector<ResultTable> results;
  std::vector<View> views;
};

/// Every table of the schema, with texts instead of string numbers and some columns more (end, name, pid
/// ...).
Dialect tacho_dialect(std::shared_ptr<TraceStore> store, std::shared_ptr<TraceFacts> facts);
/// The tables and views of an .rpd file of schema version 2. Times in CLOCK_MONOTONIC.
Dialect rpd_dialect(std::shared_ptr<TraceStore> store, std::shared_ptr<TraceFacts> facts);
/// The tables and views of a rocpd database of schema version 3. Times in CLOCK_BOOTTIME.
Dialect rocpd_dialect(std::shared_ptr<TraceStore> store, std::shared_ptr<TraceFacts> facts);

/// The views of a rocpd database over its own tables, all of its recordings together.
Result<Dialect> rocpd_file_dialect(const sqlite::Database& database);

}  // namespace tacho::query
