// Opens SQLite connections: files of other programs read-only, with everything switched off that could run their code.
// Also lists a file's tables with the positions of their columns.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/sqlite/file.h"

namespace tacho::sqlite {

struct Closer {
  void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Connection = std::unique_ptr<sqlite3, Closer>;
using Statement = std::unique_ptr<sqlite3_stmt, Closer>;

/// Opens another program's file: read-only, no extensions, defensive, views and triggers disabled, schema not trusted,
/// limits lowered. `file` must outlive the connection. Fails if it is no database or another program holds a lock on
/// it.
Result<Connection> open_foreign(const File& file);
/// An empty database in memory with the same settings, except that views work and the schema, which can only be ours,
/// is trusted.
Result<Connection> open_memory();

/// Prepares `sql`, which must be one statement. The error is SQLite's.
Result<Statement> prepare(sqlite3* connection, std::string_view sql);
Status execute(sqlite3* connection, const std::string& sql);

struct StoredTable {
  std::string name;
  uint32_t root_page = 0;
  std::vector<std::string> columns;  // in stored order
  int rowid_column = -1;             // the INTEGER PRIMARY KEY, stored as the rowid; -1 = none

  /// Index of a column; -1 if the table has none of that name (ignores case, like SQL).
  int column(std::string_view name) const;
};

/// A database file opened for direct reading: its mapping and its rowid tables (no views or virtual tables, no tables
/// without rowid or with computed columns). As long as it lives, the read lock of `connection` keeps writers out.
class Database {
 public:
  static Result<Database> open(const std::string& path);

  const File& file() const { return file_; }
  sqlite3* connection() const { return connection_.get(); }
  const std::vector<StoredTable>& tables() const { return tables_; }
  /// nullptr if there is none. Ignores case.
  const StoredTable* table(std::string_view name) const;
  /// For tables that the file must have; the error names the missing one.
  Result<const StoredTable*> required(std::string_view name) const;

 private:
  explicit Database(File file) : file_(std::move(file)) {}
  // The mapping's descriptor must outlive the connection: closing any descriptor of a file drops SQLite's locks on it.
  File file_;
  Connection connection_;
  std::vector<StoredTable> tables_;
};

/// A TableScan whose columns are given by name.
class NamedScan : public TableScan {
 public:
  /// The functions below take indexes into `columns`; a column that the table lacks reads as NULL.
  NamedScan(const Database& database, const StoredTable& table, std::span<const std::string_view> columns);
  NamedScan(const Database& database, const StoredTable& table, std::initializer_list<std::string_view> columns)
      : NamedScan(database, table, std::span(columns.begin(), columns.size())) {}

  /// The whole number in a column. One rule for every cell: NULL, text, and a column that the table lacks are
  /// `missing`, by default kNoNumber and never 0.
  int64_t number(int column, int64_t missing = kNoNumber) const {
    const int at = places_[column];
    return at >= 0 ? integer(at, missing) : at == kRowid ? rowid() : missing;
  }
  /// A number that refers to a row, thread, queue or address: 0, which stands for none, instead of kNoNumber.
  int64_t id(int column) const { return number(column, 0); }
  std::string_view string(int column) const {
    return places_[column] >= 0 ? text(places_[column]) : std::string_view();
  }
  double decimal(int column, double missing = 0) const {
    return places_[column] >= 0 ? real(places_[column], missing) : missing;
  }
  bool has(int column) const { return places_[column] != kAbsent; }
  bool is_text_at(int column) const { return places_[column] >= 0 && is_text(places_[column]); }
  bool is_number_at(int column) const {
    return places_[column] == kRowid || (places_[column] >= 0 && is_number(places_[column]));
  }
  int place(int column) const { return places_[column]; }
  /// Moves to the row with this rowid, fastest if it is the current one or the next. False if there is none.
  bool find(int64_t wanted) {
    if (valid_ && rowid() == wanted) return true;
    if (valid_ && rowid() == wanted - 1 && next() && rowid() == wanted) return true;
    return valid_ = seek(wanted);
  }

  static constexpr int kRowid = -1, kAbsent = -2;

 private:
  int places_[kMaxColumns] = {};
  bool valid_ = false;  // find() stands on a row
};

}  // namespace tacho::sqlite
