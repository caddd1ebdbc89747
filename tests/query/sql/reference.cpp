// Materialised tables and their answers (reference.h).
#include "reference.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "base/format.h"

namespace tacho::query {

namespace {

std::string text_of(const report::Cell& cell) {
  if (const auto* const whole = std::get_if<int64_t>(&cell)) return std::to_string(*whole);
  if (const auto* const real = std::get_if<double>(&cell)) {
    std::string text = fmt::format("{:.12g}", *real);
    if (text.find_first_of(".en") == std::string::npos) text += ".0";
    return text;
  }
  if (const auto* const text = std::get_if<std::string>(&cell)) {
    std::string result = "'";
    for (const char c : *text) result += c == '\'' ? "''" : std::string(1, c);
    return result + "'";
  }
  return "NULL";
}

std::string row_of(std::span<const report::Cell> cells) {
  std::string row;
  for (const report::Cell& cell : cells) row += (row.empty() ? "" : " | ") + text_of(cell);
  return row;
}

void execute(sqlite3* connection, const std::string& sql) {
  const Status done = sqlite::execute(connection, sql);
  ASSERT_TRUE(done) << sql << ": " << done.error().message;
}

}  // namespace

std::string in_quotes(const std::string& name) {
  return "\"" + name + "\"";
}

Answer answer_of(Session& session, const std::string& sql) {
  Answer answer;
  const Status done =
      session.run(sql, {[&](std::span<const std::string> names) { answer.columns.assign(names.begin(), names.end()); },
                        [&](std::span<const report::Cell> row) {
                          answer.rows.push_back(row_of(row));
                          return true;
                        }});
  if (!done) answer = {done.error().message, {}, {}};
  return answer;
}

Answer Reference::ask(const std::string& sql) const {
  Answer answer;
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(connection_.get(), sql.c_str(), -1, &raw, nullptr) != SQLITE_OK)
    return {sqlite3_errmsg(connection_.get()), {}, {}};
  const sqlite::Statement statement(raw);
  const int count = sqlite3_column_count(raw);
  for (int i = 0; i < count; ++i) answer.columns.emplace_back(sqlite3_column_name(raw, i));
  std::vector<report::Cell> row(static_cast<size_t>(count));
  int step;
  while ((step = sqlite3_step(raw)) == SQLITE_ROW) {
    for (int i = 0; i < count; ++i) {
      report::Cell& cell = row[static_cast<size_t>(i)];
      switch (sqlite3_column_type(raw, i)) {
        case SQLITE_INTEGER:
          cell = static_cast<int64_t>(sqlite3_column_int64(raw, i));
          break;
        case SQLITE_FLOAT:
          cell = sqlite3_column_double(raw, i);
          break;
        case SQLITE_NULL:
          cell = std::monostate{};
          break;
        default:
          cell = std::string(reinterpret_cast<const char*>(sqlite3_column_text(raw, i)),
                             static_cast<size_t>(sqlite3_column_bytes(raw, i)));
      }
    }
    answer.rows.push_back(row_of(row));
  }
  if (step != SQLITE_DONE) return {sqlite3_errmsg(connection_.get()), {}, {}};
  return answer;
}

std::vector<std::string> names_of(Session& session) {
  std::vector<std::string> names;
  const auto schema = session.schema();
  EXPECT_TRUE(schema);
  if (schema)
    for (const auto& row : schema->rows) names.push_back(std::get<std::string>(row[0]));
  return names;
}

std::unique_ptr<Reference> Reference::of_session(Session& session) {
  auto reference = std::make_unique<Reference>();
  sqlite3* raw = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &raw), SQLITE_OK);
  reference->connection_.reset(raw);
  execute(raw, "BEGIN");
  for (const std::string& name : names_of(session)) {
    std::string columns, places;
    const Status listed = session.run("PRAGMA table_info(" + in_quotes(name) + ")",
                                      {[](auto) {},
                                       [&](std::span<const report::Cell> row) {
                                         const auto& column = std::get<std::string>(row[1]);
                                         columns += (columns.empty() ? "" : ", ") + in_quotes(column) + " " +
                                                    std::get<std::string>(row[2]);
                                         places += places.empty() ? "?" : ", ?";
                                         return true;
                                       }});
    EXPECT_TRUE(listed) << name;
    execute(raw, "CREATE TABLE " + in_quotes(name) + "(" + columns + ")");
    auto insert = sqlite::prepare(raw, "INSERT INTO " + in_quotes(name) + " VALUES (" + places + ")");
    if (!insert) {
      ADD_FAILURE() << name << ": " << insert.error().message;
      continue;
    }
    const Status copied = session.run("SELECT * FROM " + in_quotes(name),
                                      {[](auto) {},
                                       [&](std::span<const report::Cell> row) {
                                         for (size_t i = 0; i < row.size(); ++i) {
                                           const int at = static_cast<int>(i) + 1;
                                           if (const auto* const whole = std::get_if<int64_t>(&row[i]))
                                             sqlite3_bind_int64(insert->get(), at, *whole);
                                           else if (const auto* const real = std::get_if<double>(&row[i]))
                                             sqlite3_bind_double(insert->get(), at, *real);
                                           else if (const auto* const text = std::get_if<std::string>(&row[i]))
                                             sqlite3_bind_text(insert->get(), at, text->data(),
                                                               static_cast<int>(text->size()), SQLITE_TRANSIENT);
                                           else
                                             sqlite3_bind_null(insert->get(), at);
                                         }
                                         EXPECT_EQ(sqlite3_step(insert->get()), SQLITE_DONE);
                                         sqlite3_reset(insert->get());
                                         return true;
                                       }});
    EXPECT_TRUE(copied) << name << ": " << copied.error().message;
  }
  execute(raw, "COMMIT");
  return reference;
}

std::unique_ptr<Reference> Reference::of_database(const std::string& path, std::vector<std::string>& names) {
  auto reference = std::make_unique<Reference>();
  sqlite3* raw = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &raw), SQLITE_OK);
  reference->connection_.reset(raw);
  execute(raw, "ATTACH '" + path + "' AS f");
  execute(raw, "BEGIN");
  // Tables are copied, views are views: SQLite compares differently if a column is computed.
  std::vector<std::string> scripts;
  {
    const auto list = sqlite::prepare(raw, "SELECT type, name, sql FROM f.sqlite_schema WHERE type IN ('table', "
                                           "'view') AND name NOT LIKE 'sqlite_%'");
    while (sqlite3_step(list->get()) == SQLITE_ROW) {
      const auto text = [&](int column) {
        return std::string(reinterpret_cast<const char*>(sqlite3_column_text(list->get(), column)));
      };
      scripts.push_back(text(2));
      if (text(0) == "table")
        scripts.push_back("INSERT INTO " + in_quotes(text(1)) + " SELECT * FROM f." + in_quotes(text(1)));
    }
  }
  for (const std::string& script : scripts) execute(raw, script);
  execute(raw, "COMMIT");
  std::erase_if(
      names, [&](const std::string& name) { return !sqlite::prepare(raw, "SELECT * FROM main." + in_quotes(name)); });
  execute(raw, "DETACH f");
  return reference;
}

}  // namespace tacho::query
