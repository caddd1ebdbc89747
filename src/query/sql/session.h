// Opens a file for SQL, for `tacho query`.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "query/engine/row_sink.h"
#include "query/sql/arrow_answer.h"
#include "report/answer.h"
#include "trace/trace.h"

namespace tacho::query {

struct Explanation {
  std::string engine;             // "columns", "file" or "virtual": see Engine in engine_choice.h
  std::string reason;             // one sentence without its full stop
  std::vector<std::string> plan;  // the column engine's steps, or SQLite's EXPLAIN QUERY PLAN, indented as a tree
};

class Session {
 public:
  /// Opens any file that tacho reads. `dialect`: "rpd", "rocpd", "tacho", or "" for the file's own (of files that have
  /// none tacho for sums of tacho watch, else rpd). Queries .rpd files and rocpd databases in place; if a statement
  /// names another dialect, tacho reads the file as a trace.
  static Result<std::unique_ptr<Session>> open(const std::string& path, std::string_view dialect = {});
  /// The same for a trace that is open already, whatever file it came from.
  static Result<std::unique_ptr<Session>> over(std::shared_ptr<const trace::Trace> trace,
                                               std::string_view dialect = {});
  virtual ~Session() = default;

  /// Runs one statement; it may only read. Errors: SQL's own, or damage in the file.
  virtual Status run(const std::string& sql, const RowSink& sink) = 0;
  /// Statements in SQLite that run longer fail from now on; 0 = no limit.
  virtual void limit(double seconds) = 0;
  /// The same as an Arrow IPC stream or file. What it cannot show is in the result.
  virtual Result<ArrowNotes> run_arrow(const std::string& sql, const ArrowOutput& output) = 0;
  /// Says which engine run() or run_arrow() would use, without running the statement. Errors: SQL's own.
  virtual Result<Explanation> explain(const std::string& sql, Answers answers = Answers::kRows) = 0;
  /// The tables and views that unqualified names mean: name, "table" or "view", and columns.
  virtual Result<report::Answer> schema() = 0;
  virtual std::string_view dialect() const = 0;
  /// One sentence if the file holds anything that this build of tacho does not know (see trace::Trace::unknown), else
  /// "".
  virtual std::string_view unknown() const = 0;
  /// analysis::unaligned_sentence() of what is asked; "" for a database that is queried in place.
  virtual std::string_view unaligned() const = 0;
  /// format::passes::sentence() of what is asked; "" for a database that is queried in place.
  virtual std::string_view passes() const = 0;
  /// analysis::cut_off_sentence() of what is asked; "" for a database that is queried in place.
  virtual std::string_view cut_off() const = 0;
  /// Whether it was cut off before its first event.
  virtual bool empty() const = 0;
  /// Number of columns of chunks decoded so far.
  virtual uint64_t decoded() const = 0;
};

}  // namespace tacho::query
