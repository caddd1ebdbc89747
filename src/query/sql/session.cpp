// Sets up connections and schemas and runs statements (session.h).
#include "query/sql/session.h"

#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>

#include "analysis/sums/sums.h"
#include "analysis/trim.h"
#include "format/format.h"
#include "format/rocpd/rocpd.h"
#include "format/rpd/rpd.h"
#include "format/sqlite/database.h"
#include "format/sqlite/unpack.h"
#include "query/dialect/dialect.h"
#include "query/dialect/rpd_file.h"
#include "query/engine/aggregate.h"
#include "query/sql/engine_choice.h"
#include "query/sql/statement.h"
#include "query/sql/virtual_tables.h"

namespace tacho::query {
namespace {

constexpr std::string_view kDialects[] = {"rpd", "rocpd", "tacho"};

// A statement may read. It may not attach files, change settings or write anything.
int authorize(void*, int action, const char* first, const char*, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_FUNCTION:
    case SQLITE_RECURSIVE:
    case SQLITE_TRANSACTION:
      return SQLITE_OK;
    case SQLITE_PRAGMA: {
      static constexpr std::string_view kHarmless[] = {"table_info",    "table_xinfo",   "table_list",
                                                       "database_list", "function_list", "compile_options",
                                                       "index_list",    "index_info"};
      return std::find(std::begin(kHarmless), std::end(kHarmless), std::string_view(first)) != std::end(kHarmless)
                 ? SQLITE_OK
                 : SQLITE_DENY;
    }
    default:
      return SQLITE_DENY;
  }
}

Status run_in_sqlite(sqlite3* connection, const std::string& sql, const RowSink& sink) {
  sqlite3_stmt* raw = nullptr;
  const char* tail = nullptr;
  if (sqlite3_prepare_v2(connection, sql.data(), static_cast<int>(sql.size()), &raw, &tail) != SQLITE_OK) {
    const std::string message = sqlite3_errmsg(connection);
    if (message == "not authorized") return fail("SQL: only statements that read are allowed");
    return fail("SQL: {}", message);
  }
  const sqlite::Statement statement(raw);
  if (raw == nullptr) return fail("SQL: there is no statement in it");
  if (sqlite3_stmt_readonly(raw) == 0) return fail("SQL: only statements that read are allowed");
  if (!tokens_of(tail).empty() && !(tokens_of(tail).size() == 1 && tokens_of(tail)[0].text == ";"))
    return fail("SQL: one statement at a time");
  const int count = sqlite3_column_count(raw);
  std::vector<std::string> names, declared;
  for (int i = 0; i < count; ++i) {
    const char* const name = sqlite3_column_name(raw, i);
    names.emplace_back(name != nullptr ? name : "");
    const char* const type = sqlite3_column_decltype(raw, i);
    declared.emplace_back(type != nullptr ? type : "");
  }
  sink.columns(names);
  if (sink.declared) sink.declared(declared);
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
        default: {
          const auto* bytes = static_cast<const char*>(sqlite3_column_blob(raw, i));
          std::string value(bytes != nullptr ? bytes : "", static_cast<size_t>(sqlite3_column_bytes(raw, i)));
          cell = std::move(value);
        }
      }
    }
    if (!sink.row(row)) return {};
  }
  if (step != SQLITE_DONE) return fail("SQL: {}", sqlite3_errmsg(connection));
  return {};
}

// A connection with its tables.
struct Desk {
  sqlite::Connection connection;
  std::unique_ptr<Module> module;
  std::vector<std::shared_ptr<Store>> stores;
  std::vector<std::string> attached;

  ~Desk() { connection.reset(); }  // before the module, whose tables it uses

  Status put(const Dialect& dialect, const std::string& schema) {
    for (const auto& [store, relation] : dialect.relations) {
      TACHO_TRY(module->add(schema, store, relation));
      if (std::find(stores.begin(), stores.end(), store) == stores.end()) stores.push_back(store);
    }
    for (const auto& [store, relation] : dialect.own_tables) {
      module->know(schema, store, relation);
      if (std::find(stores.begin(), stores.end(), store) == stores.end()) stores.push_back(store);
    }
    for (const QueryTable& result : dialect.results) TACHO_TRY(module->add(schema, result));
    for (const View& view : dialect.views) {
      // The definition starts with the view's name: "kernel AS SELECT ...".
      const std::string prefix = schema == "main" ? "CREATE VIEW " : "CREATE VIEW " + schema + ".";
      TACHO_TRY(sqlite::execute(connection.get(), (schema == "temp" ? "CREATE TEMP VIEW " : prefix) + view.sql));
    }
    return {};
  }
};

class SqlSession : public Session {
 public:
  Status prepare_file(const std::string& path, std::string_view dialect);
  Status prepare_trace(std::shared_ptr<const trace::Trace> trace, std::string_view dialect);
  void limit(double seconds) override { limit_ = seconds; }
  Status run(const std::string& sql, const RowSink& sink) override;
  Result<ArrowNotes> run_arrow(const std::string& sql, const ArrowOutput& output) override;
  Result<Explanation> explain(const std::string& sql, Answers answers) override;
  Result<report::Answer> schema() override;
  std::string_view dialect() const override { return dialect_; }
  std::string_view unknown() const override { return unknown_; }
  std::string_view unaligned() const override { return unaligned_; }
  std::string_view passes() const override { return passes_; }
  std::string_view cut_off() const override { return cut_off_; }
  bool empty() const override { return empty_; }
  uint64_t decoded() const override {
    uint64_t sum = 0;
    for (const Desk* desk : {file_.get(), plain_.get(), trace_.get()})
      if (desk != nullptr)
        for (const auto& store : desk->stores) sum += store->decoded();
    return sum;
  }

 private:
  Status make_trace_desk();
  Status make_trace_desk(const std::shared_ptr<const trace::Trace>& trace);
  Status make_plain_desk();
  Status run_in_time(sqlite3* connection, const std::string& sql, const RowSink& sink) const;
  Result<Desk*> desk_for(const Statement& statement);
  Result<Desk*> desk_of(Engine engine, Desk* desk);
  Result<Dialect> make(std::string_view name) const;

  std::string path_;
  double limit_ = 0;  // s
  std::string unknown_, unaligned_, passes_, cut_off_;
  bool empty_ = false;
  std::string dialect_;
  bool chosen_ = false;  // the dialect
  std::string own_;      // the file's own dialect if it is a database
  std::shared_ptr<const sqlite::Database> database_;
  int version_ = 0;
  std::unique_ptr<Desk> file_;   // the database in place; for an .rpd, virtual tables replace some views
  std::unique_ptr<Desk> plain_;  // for an .rpd, with SQL views
  std::unique_ptr<Desk> trace_;  // virtual tables over a trace
  std::shared_ptr<TraceStore> store_;
  std::shared_ptr<TraceFacts> facts_;
};

Status SqlSession::prepare_file(const std::string& path, std::string_view dialect) {
  path_ = path;
  std::error_code error;
  if (!std::filesystem::is_directory(path, error) && sqlite::is_database(path)) {
    TACHO_ASSIGN(auto database, sqlite::Database::open(path));
    database_ = std::make_shared<const sqlite::Database>(std::move(database));
    version_ = format::rpd::schema_version(*database_);
    if (version_ > 0)
      own_ = "rpd";
    else if (!format::rocpd::suffixes(*database_).empty())
      own_ = "rocpd";
  }
  chosen_ = !dialect.empty();
  dialect_ = chosen_ ? dialect : !own_.empty() ? std::string_view(own_) : std::string_view("rpd");
  if (std::find(std::begin(kDialects), std::end(kDialects), dialect_) == std::end(kDialects))
    return fail("--dialect {}: choose rpd, rocpd or tacho", dialect);
  if (own_.empty() || dialect_ != own_) return make_trace_desk();
  file_ = std::make_unique<Desk>();
  TACHO_ASSIGN(file_->connection, sqlite::open_foreign(database_->file()));
  file_->module = std::make_unique<Module>(file_->connection.get());
  TACHO_ASSIGN(const Dialect own,
               own_ == "rpd" ? rpd_file_dialect(database_, version_) : rocpd_file_dialect(*database_));
  TACHO_TRY(file_->put(own, "temp"));
  sqlite3_set_authorizer(file_->connection.get(), authorize, nullptr);
  return {};
}

Status SqlSession::prepare_trace(std::shared_ptr<const trace::Trace> trace, std::string_view dialect) {
  chosen_ = !dialect.empty();
  dialect_ = chosen_ ? dialect : std::string_view("rpd");
  if (std::find(std::begin(kDialects), std::end(kDialects), dialect_) == std::end(kDialects))
    return fail("--dialect {}: choose rpd, rocpd or tacho", dialect);
  return make_trace_desk(trace);
}

Status SqlSession::make_plain_desk() {
  auto desk = std::make_unique<Desk>();
  TACHO_ASSIGN(desk->connection, sqlite::open_foreign(database_->file()));
  desk->module = std::make_unique<Module>(desk->connection.get());
  TACHO_ASSIGN(const Dialect dialect, rpd_plain_dialect(database_, version_));
  TACHO_TRY(desk->put(dialect, "temp"));
  sqlite3_set_authorizer(desk->connection.get(), authorize, nullptr);
  plain_ = std::move(desk);
  return {};
}

Result<Dialect> SqlSession::make(std::string_view name) const {
  if (name == "tacho") return tacho_dialect(store_, facts_);
  if (name == "rocpd") return rocpd_dialect(store_, facts_);
  return rpd_dialect(store_, facts_);
}

Status SqlSession::make_trace_desk() {
  TACHO_ASSIGN(const std::shared_ptr<const trace::Trace> trace, format::open_any(path_));
  return make_trace_desk(trace);
}

Status SqlSession::make_trace_desk(const std::shared_ptr<const trace::Trace>& trace) {
  if (!chosen_ && own_.empty() && analysis::holds_sums(*trace)) dialect_ = "tacho";  // the one with a view of them
  unknown_ = trace->unknown();
  unaligned_ = analysis::unaligned_sentence(*trace);
  passes_ = format::passes::sentence(*trace);
  cut_off_ = analysis::cut_off_sentence(*trace, path_.empty() ? trace->path() : path_);
  empty_ = !cut_off_.empty() && analysis::holds_no_event(*trace);
  TACHO_ASSIGN(facts_, TraceFacts::make(trace));
  store_ = std::make_shared<TraceStore>(trace);
  auto desk = std::make_unique<Desk>();
  TACHO_ASSIGN(desk->connection, sqlite::open_memory());
  desk->module = std::make_unique<Module>(desk->connection.get());
  TACHO_ASSIGN(const Dialect own, make(dialect_));
  TACHO_TRY(desk->put(own, "main"));
  trace_ = std::move(desk);
  return {};
}

// The connection that knows a statement's names. Sets up a dialect when a statement first mentions it.
Result<Desk*> SqlSession::desk_for(const Statement& statement) {
  std::vector<std::string> others;
  for (const std::string_view name : kDialects)
    if (name != dialect_ && statement.names_schema(name)) others.emplace_back(name);
  if (file_ && others.empty()) return file_.get();
  if (!trace_) TACHO_TRY(make_trace_desk());
  Desk& desk = *trace_;
  sqlite3_set_authorizer(desk.connection.get(), nullptr, nullptr);
  for (const std::string& name : others) {
    if (std::find(desk.attached.begin(), desk.attached.end(), name) != desk.attached.end()) continue;
    TACHO_TRY(sqlite::execute(desk.connection.get(), "ATTACH ':memory:' AS " + name));
    TACHO_ASSIGN(const Dialect dialect, make(name));
    TACHO_TRY(desk.put(dialect, name));
    desk.attached.push_back(name);
  }
  sqlite3_set_authorizer(desk.connection.get(), authorize, nullptr);
  return &desk;
}

// An .rpd has a separate connection for its plain tables, created on first use.
Result<Desk*> SqlSession::desk_of(Engine engine, Desk* desk) {
  if (engine != Engine::kFile || own_ != "rpd") return desk;
  if (!plain_) TACHO_TRY(make_plain_desk());
  return plain_.get();
}

Status SqlSession::run(const std::string& text, const RowSink& sink) {
  const Statement asked(text);
  TACHO_ASSIGN(Desk * desk, desk_for(asked));
  const Statement statement(asked.without_schema(dialect_));
  Input input{desk == file_.get(), *desk->module};
  Choice choice = choose_engine(statement, dialect_, input);
  if (choice.engine == Engine::kColumns) {
    // SQLite must accept the statement too: its error messages are better than ours.
    TACHO_ASSIGN(const sqlite::Statement check, sqlite::prepare(desk->connection.get(), statement.text()));
    TACHO_ASSIGN(const bool done, run_aggregate(*choice.plan, sink));
    if (done) return {};
    input.by_columns = false;
    choice = choose_engine(statement, dialect_, input);
  }
  TACHO_ASSIGN(desk, desk_of(choice.engine, desk));
  return run_in_time(desk->connection.get(), statement.text(), sink);
}

// Whether the values of all columns that the statement gives as they are have the type that is declared: tables of
// tacho's own keep to it, what a file stores does not, nor does a UNION, which has the types of its first part.
bool types_hold(const Statement& statement, const Module& tables, std::string_view dialect) {
  return !statement.mentions("union") &&
         std::ranges::all_of(statement.qualified_tables(), [&](const Statement::TableName& table) {
           const bool own = same_word(table.schema, dialect);
           const Module::Found found = tables.find(own ? std::string_view() : table.schema, table.name);
           return found.relation != nullptr && found.is_virtual;
         });
}

Result<ArrowNotes> SqlSession::run_arrow(const std::string& text, const ArrowOutput& output) {
  const Statement asked(text);
  TACHO_ASSIGN(Desk * desk, desk_for(asked));
  const Statement statement(asked.without_schema(dialect_));
  const Input input{.in_place = desk == file_.get(), .tables = *desk->module, .answers = Answers::kColumns};
  const Choice choice = choose_engine(statement, dialect_, input);
  ArrowNotes notes;
  if (choice.engine == Engine::kColumns && choice.plan->aggregates.empty()) {
    TACHO_ASSIGN(const sqlite::Statement check, sqlite::prepare(desk->connection.get(), statement.text()));
    TACHO_TRY(write_columns(*choice.plan, output, notes));
    return notes;
  }
  ArrowRows rows(output, choice.engine == Engine::kVirtual && types_hold(asked, *desk->module, dialect_));
  TACHO_TRY(run(text, rows.sink()));
  if (rows.again()) TACHO_TRY(run(text, rows.sink()));
  TACHO_TRY(rows.end(notes));
  return notes;
}

Status SqlSession::run_in_time(sqlite3* connection, const std::string& sql, const RowSink& sink) const {
  if (limit_ <= 0) return run_in_sqlite(connection, sql, sink);
  using Clock = std::chrono::steady_clock;
  auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_));
  constexpr int kSteps = 10'000;  // of SQLite's machine, some hundred microseconds
  sqlite3_progress_handler(
      connection, kSteps, [](void* until) { return Clock::now() > *static_cast<Clock::time_point*>(until) ? 1 : 0; },
      &end);
  const Status done = run_in_sqlite(connection, sql, sink);
  sqlite3_progress_handler(connection, 0, nullptr, nullptr);
  if (!done && Clock::now() > end)
    return fail("SQL: the statement ran longer than {} s and was stopped; `tacho query` has no such limit", limit_);
  return done;
}

Result<Explanation> SqlSession::explain(const std::string& text, Answers answers) {
  const Statement asked(text);
  TACHO_ASSIGN(Desk * desk, desk_for(asked));
  const Statement statement(asked.without_schema(dialect_));
  const Choice choice = choose_engine(statement, dialect_,
                                      {.in_place = desk == file_.get(), .tables = *desk->module, .answers = answers});
  TACHO_ASSIGN(desk, desk_of(choice.engine, desk));
  Explanation result{std::string(engine_name(choice.engine)), choice.reason, {}};
  if (choice.engine == Engine::kColumns) {
    TACHO_ASSIGN(const sqlite::Statement check, sqlite::prepare(desk->connection.get(), statement.text()));
    result.plan = describe(*choice.plan);
    return result;
  }
  std::map<int64_t, size_t> depths;  // by the step's id
  const RowSink steps{[](auto) {},
                      [&](std::span<const report::Cell> row) {
                        const int64_t id = std::get<int64_t>(row[0]), parent = std::get<int64_t>(row[1]);
                        const auto above = depths.find(parent);
                        const size_t depth = above != depths.end() ? above->second + 1 : 0;
                        depths[id] = depth;
                        result.plan.push_back(std::string(2 * depth, ' ') + std::get<std::string>(row[3]));
                        return true;
                      }};
  TACHO_TRY(run_in_sqlite(desk->connection.get(), "EXPLAIN QUERY PLAN " + statement.text(), steps));
  return result;
}

Result<report::Answer> SqlSession::schema() {
  TACHO_ASSIGN(Desk* const desk, desk_for(Statement("")));
  // The statements below are ours. SQLite would ask the authorizer about them, and that permits only what users may do.
  sqlite3_set_authorizer(desk->connection.get(), nullptr, nullptr);
  report::Answer answer;
  answer.columns = {{.name = "Name", .title = "Name", .whole = true},
                    {.name = "Type", .title = "Type", .whole = true},
                    {.name = "Columns", .title = "Columns", .cut = report::Cut::kWrap}};
  const auto list = sqlite::prepare(
      desk->connection.get(),
      // Other dialects' tables, which a statement named as tacho.NAME, lie in schemas of their own from then on.
      dialect_ == "tacho" ? "SELECT DISTINCT name FROM pragma_table_list WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
                          : "SELECT DISTINCT name FROM pragma_table_list WHERE name NOT LIKE 'sqlite_%' AND schema IN "
                            "('main', 'temp') ORDER BY name");
  const auto columns = sqlite::prepare(desk->connection.get(), "SELECT name FROM pragma_table_xinfo(?)");
  if (!list) return tl::unexpected(list.error());
  if (!columns) return tl::unexpected(columns.error());
  while (sqlite3_step(list->get()) == SQLITE_ROW) {
    const std::string name = reinterpret_cast<const char*>(sqlite3_column_text(list->get(), 0));
    sqlite3_reset(columns->get());
    sqlite3_bind_text(columns->get(), 1, name.data(), static_cast<int>(name.size()), SQLITE_TRANSIENT);
    std::string all;
    while (sqlite3_step(columns->get()) == SQLITE_ROW)
      all += (all.empty() ? "" : ", ") +
             std::string(reinterpret_cast<const char*>(sqlite3_column_text(columns->get(), 0)));
    const bool stored = name.starts_with("rocpd_") || dialect_ == "tacho";
    answer.rows.push_back({name, std::string(stored ? "table" : "view"), all});
  }
  sqlite3_set_authorizer(desk->connection.get(), authorize, nullptr);
  return answer;
}

}  // namespace

Result<std::unique_ptr<Session>> Session::open(const std::string& path, std::string_view dialect) {
  auto session = std::make_unique<SqlSession>();
  TACHO_TRY(session->prepare_file(path, dialect));
  return session;
}

Result<std::unique_ptr<Session>> Session::over(std::shared_ptr<const trace::Trace> trace, std::string_view dialect) {
  auto session = std::make_unique<SqlSession>();
  TACHO_TRY(session->prepare_trace(std::move(trace), dialect));
  return session;
}

}  // namespace tacho::query
