// Opens connections and reads schemas of SQLite files (database.h).
#include "format/sqlite/database.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <vector>

#include "base/files/mapping_guard.h"

namespace tacho::sqlite {
namespace {

std::string quoted_uri(const std::string& path) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string uri = path.starts_with("/") ? "file://" : "file:";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
        std::strchr("/._-", c) != nullptr) {
      uri += c;
    } else {
      uri += '%';
      uri += kHex[byte >> 4];
      uri += kHex[byte & 15];
    }
  }
  return uri;
}

void harden(sqlite3* connection, bool views) {
  const auto configure = [&](int option, int value) { sqlite3_db_config(connection, option, value, nullptr); };
  configure(SQLITE_DBCONFIG_DEFENSIVE, 1);
  configure(SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0);
  configure(SQLITE_DBCONFIG_ENABLE_TRIGGER, 0);
  configure(SQLITE_DBCONFIG_ENABLE_VIEW, views ? 1 : 0);  // 0 leaves TEMP views working
  configure(SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0);
  sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, 256 << 20);
  sqlite3_limit(connection, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
  sqlite3_limit(connection, SQLITE_LIMIT_EXPR_DEPTH, 200);
  sqlite3_limit(connection, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
  sqlite3_limit(connection, SQLITE_LIMIT_WORKER_THREADS, 0);
}

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sqlite3_strnicmp(a.data(), b.data(), static_cast<int>(a.size())) == 0;
}

}  // namespace

namespace {

// The pages of a file that was unpacked: SQLite reads them where they are mapped.
Result<Connection> open_unpacked(const File& file) {
  sqlite3* raw = nullptr;
  int code =
      sqlite3_open_v2(":memory:", &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  Connection connection(raw);
  if (code == SQLITE_OK) {
    const auto size = static_cast<sqlite3_int64>(file.bytes().size());
    code = sqlite3_deserialize(raw, "main", const_cast<uint8_t*>(file.bytes().data()), size, size,
                               SQLITE_DESERIALIZE_READONLY);
  }
  if (code == SQLITE_OK) {
    harden(raw, false);
    code = sqlite3_exec(raw, "BEGIN; SELECT count(*) FROM sqlite_schema", nullptr, nullptr, nullptr);
  }
  if (code == SQLITE_OK) return connection;
  if (code == SQLITE_NOTADB) return fail("{}: not a SQLite database", file.path());
  return fail("{}: {}", file.path(), connection ? sqlite3_errmsg(raw) : sqlite3_errstr(code));
}

}  // namespace

Result<Connection> open_foreign(const File& file) {
  if (file.unpacked()) return open_unpacked(file);
  const std::string& path = file.path();
  const auto attempt = [&](const std::string& uri, int& code) {
    sqlite3* raw = nullptr;
    code = sqlite3_open_v2(uri.c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
    Connection connection(raw);
    if (code != SQLITE_OK) return connection;
    harden(raw, false);
    sqlite3_exec(raw, "PRAGMA mmap_size = 1099511627776", nullptr, nullptr, nullptr);
    // Keeps a read transaction open, so writers have to wait.
    code = sqlite3_exec(raw, "BEGIN; SELECT count(*) FROM sqlite_schema", nullptr, nullptr, nullptr);
    return connection;
  };
  // SQLite maps the file and reads it from the first statement on. The guards live until tacho ends, because
  // connections have no common owner.
  static std::vector<MappingGuard> guards;
  if (guards.size() < 8) guards.emplace_back(nullptr, 0, path);
  const std::string uri = quoted_uri(path);
  int code = SQLITE_OK;
  Connection connection = attempt(uri + "?mode=ro", code);
  // A database in WAL mode without its -wal file: nobody writes it, and reading it must not create one.
  if (code == SQLITE_CANTOPEN) connection = attempt(uri + "?mode=ro&immutable=1", code);
  if (code == SQLITE_OK) return connection;
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
    return fail("{}: another program is writing it; wait until it has finished", path);
  if (code == SQLITE_NOTADB) return fail("{}: not a SQLite database", path);
  return fail("{}: {}", path, connection ? sqlite3_errmsg(connection.get()) : sqlite3_errstr(code));
}

Result<Connection> open_memory() {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(
      ":memory:", &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  Connection connection(raw);
  if (code != SQLITE_OK) return fail("SQLite: {}", sqlite3_errstr(code));
  harden(raw, true);
  // The schema is tacho's own and comes from no file; its views use functions that SQLite does not consider harmless
  // (json_extract).
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 1, nullptr);
  return connection;
}

Result<Statement> prepare(sqlite3* connection, std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const char* tail = nullptr;
  const int code = sqlite3_prepare_v2(connection, sql.data(), static_cast<int>(sql.size()), &raw, &tail);
  Statement statement(raw);
  if (code != SQLITE_OK) return fail("SQL: {}", sqlite3_errmsg(connection));
  if (raw == nullptr) return fail("SQL: there is no statement in it");
  return statement;
}

Status execute(sqlite3* connection, const std::string& sql) {
  if (sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    return fail("SQLite: {}", sqlite3_errmsg(connection));
  return {};
}

int StoredTable::column(std::string_view wanted) const {
  for (size_t i = 0; i < columns.size(); ++i)
    if (same_name(columns[i], wanted)) return static_cast<int>(i);
  return -1;
}

Result<Database> Database::open(const std::string& path) {
  TACHO_ASSIGN(File file, File::open(path));
  Database database(std::move(file));
  TACHO_ASSIGN(database.connection_, open_foreign(database.file_));
  sqlite3* const connection = database.connection_.get();
  TACHO_ASSIGN(const Statement list,
               prepare(connection, "SELECT name, rootpage FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"));
  TACHO_ASSIGN(const Statement columns,
               prepare(connection, "SELECT name, hidden, pk, type FROM pragma_table_xinfo(?)"));
  int step;
  std::set<std::string, std::less<>> without_row_ids;
  {
    TACHO_ASSIGN(const Statement kind,
                 prepare(connection, "SELECT name FROM pragma_table_list WHERE schema = 'main' AND wr <> 0"));
    while ((step = sqlite3_step(kind.get())) == SQLITE_ROW)
      if (const auto* without = reinterpret_cast<const char*>(sqlite3_column_text(kind.get(), 0)); without != nullptr)
        without_row_ids.insert(without);
  }
  while ((step = sqlite3_step(list.get())) == SQLITE_ROW) {
    if (database.tables_.size() >= 10000) return fail("{}: more than 10000 tables: not a trace", path);
    const auto* name = reinterpret_cast<const char*>(sqlite3_column_text(list.get(), 0));
    if (name == nullptr) continue;
    StoredTable table;
    table.name = name;
    table.root_page = static_cast<uint32_t>(sqlite3_column_int64(list.get(), 1));
    const bool without_rowid = without_row_ids.contains(std::string_view(name));
    sqlite3_reset(columns.get());
    sqlite3_bind_text(columns.get(), 1, name, -1, SQLITE_TRANSIENT);
    bool usable = !without_rowid;
    int keys = 0, key = -1;
    while (sqlite3_step(columns.get()) == SQLITE_ROW) {
      const auto* column = reinterpret_cast<const char*>(sqlite3_column_text(columns.get(), 0));
      if (sqlite3_column_int(columns.get(), 1) != 0) usable = false;
      if (sqlite3_column_int(columns.get(), 2) != 0) {
        ++keys;
        const auto* type = reinterpret_cast<const char*>(sqlite3_column_text(columns.get(), 3));
        if (type != nullptr && same_name(type, "integer")) key = static_cast<int>(table.columns.size());
      }
      table.columns.emplace_back(column != nullptr ? column : "");
    }
    if (!usable) continue;
    // Only a single key column of type INTEGER is an alias of the rowid.
    if (keys == 1) table.rowid_column = key;
    database.tables_.push_back(std::move(table));
  }
  if (step != SQLITE_DONE) return fail("{}: {}", path, sqlite3_errmsg(connection));
  return database;
}

const StoredTable* Database::table(std::string_view name) const {
  for (const StoredTable& table : tables_)
    if (same_name(table.name, name)) return &table;
  return nullptr;
}

Result<const StoredTable*> Database::required(std::string_view name) const {
  if (const StoredTable* const found = table(name)) return found;
  return fail("{}: it has no table {}: not a trace that tacho knows", file_.path(), name);
}

NamedScan::NamedScan(const Database& database, const StoredTable& table, std::span<const std::string_view> columns)
    : TableScan(database.file(), table.root_page, [&] {
        int most = 0;
        for (const std::string_view name : columns) most = std::max(most, table.column(name) + 1);
        return most;
      }()) {
  int i = 0;
  for (const std::string_view name : columns) {
    int place = table.column(name);
    if (place < 0 || place >= kMaxColumns)
      place = kAbsent;
    else if (place == table.rowid_column)
      place = kRowid;
    places_[i++] = place;
  }
}

}  // namespace tacho::sqlite
