// The reference for answers: plain SQLite over ordinary tables that hold the same rows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/sqlite/database.h"
#include "query/sql/session.h"

namespace tacho::query {

/// An answer as text: NULL, 12, 1.5, 'it''s'. Doubles have 12 digits, as the order in which SQLite adds is its own.
struct Answer {
  std::string error;  // "" = none
  std::vector<std::string> columns, rows;
};
Answer answer_of(Session& session, const std::string& sql);

class Reference {
 public:
  /// Every table and view of the session as a table of the same types, filled by `SELECT * FROM it`.
  static std::unique_ptr<Reference> of_session(Session& session);
  /// Copies of the tables that a database holds, with its own views over them. Names that the file does not hold are
  /// taken out of `names`: tacho has views that not every version has.
  static std::unique_ptr<Reference> of_database(const std::string& path, std::vector<std::string>& names);

  Answer ask(const std::string& sql) const;
  sqlite3* connection() const { return connection_.get(); }

 private:
  sqlite::Connection connection_;
};

/// A name as SQL takes any.
std::string in_quotes(const std::string& name);
/// Names of all tables and views.
std::vector<std::string> names_of(Session& session);

}  // namespace tacho::query
