// Opens a file for SQL, for `tacho query`.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "query/engine/row_sink.h"
#include "report/table.h"

namespace tacho::query {

struct Explanation {
  std::string engine;  // "columns", "file" or "virtual": see Engine in engine_choice.h
  std::string reason;  // one sentence without its full stop
  std::vector<std::string>
      plan;  // the column engine's steps, or SQLite's EXPLAIN QUERY PLAN, indented as a tree
};

class Session {
 public:
  /// Opens any file that tacho reads. `dialect`: "rpd", "rocpd", "tacho", or "" for the file's own (rpd for
  /// files that have none). An .rpd file or rocpd database is queried in place; names of another dialect make
  /// tacho read it as a trace.
  static Result<std::unique_ptr<Session>> open(const std::string& path, std::string_view dialect = {});
  virtual ~Session() = default;

  /// Runs one statement, which may only read. Errors: SQL's own, or a fault of the file.
  virtual Status run(const std::string& sql, const RowSink& sink) = 0;
  /// Which engine run() would ask, without running anything. Errors: SQL's own.
  virtual Result<Explanation> explain(const std::string& sql) = 0;
  /// Tables and views that unqualified names mean: name, "table" or "view", and its columns.
  virtual Result<report::Table> schema() = 0;
  virtual std::string_view dialect() const = 0;
  /// One sentence when the file holds what this build of tacho does not know (see trace::Trace::unknown),
  /// else "".
  virtual std::string_view unknown() const = 0;
  /// Columns of chunks decoded so far.
  virtual uint64_t decoded() const = 0;
};

}  // namespace tacho::query
