// Trims .rpd files by copying records (trim.h).
#include "format/rpd/trim.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <memory>
#include <span>
#include <vector>

#include "format/rpd/rpd.h"
#include "format/rpd/schema.h"
#include "format/sqlite/bulk.h"
#include "format/sqlite/output.h"

namespace tacho::format::rpd {
namespace {

using sqlite::BulkTable;
using sqlite::Database;
using sqlite::NamedScan;

// Pages shared by all sets: enough for 1.6 billion consecutive ids.
struct Stock {
  const std::string& path;  // of the file whose ids they are
  size_t pages = (192u << 20) / 8192;
};

// A set of row ids, as bits in pages because ids come in long runs.
class IdSet {
 public:
  explicit IdSet(Stock& stock) : stock_(stock) {}
  Status add(int64_t id) {
    const int64_t page = id >> kShift;
    if (page != last_page_ || last_ == nullptr) {
      auto& bits = pages_[page];
      if (!bits) {
        if (stock_.pages == 0) return fail("{}: its row ids are scattered too widely for a trace", stock_.path);
        --stock_.pages;
        bits = std::make_unique<Bits>();
      }
      last_ = bits.get();
      last_page_ = page;
    }
    last_->set(static_cast<size_t>(id & kMask));
    return {};
  }
  bool has(int64_t id) {
    const int64_t page = id >> kShift;
    if (page != last_page_ || last_ == nullptr) {
      const auto found = pages_.find(page);
      if (found == pages_.end()) return false;
      last_ = found.value().get();
      last_page_ = page;
    }
    return last_->test(static_cast<size_t>(id & kMask));
  }

 private:
  static constexpr int kShift = 16;
  static constexpr int64_t kMask = (1 << kShift) - 1;
  using Bits = std::bitset<1 << kShift>;
  Stock& stock_;
  tsl::robin_map<int64_t, std::unique_ptr<Bits>> pages_;
  Bits* last_ = nullptr;
  int64_t last_page_ = INT64_MIN;
};

// Lets only the foreign file's schema statements run: nothing that reads, writes or attaches.
int schema_only(void*, int action, const char* first, const char*, const char*, const char*) {
  switch (action) {
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_INDEX:
    case SQLITE_CREATE_VIEW:
    case SQLITE_REINDEX:
    case SQLITE_FUNCTION:
    case SQLITE_SELECT:
      return SQLITE_OK;
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
    case SQLITE_READ:
      return first != nullptr && std::string_view(first).starts_with("sqlite_") ? SQLITE_OK
             : action == SQLITE_READ                                            ? SQLITE_OK
                                                                                : SQLITE_DENY;
    default:
      return SQLITE_DENY;
  }
}

class Trimmer {
 public:
  Trimmer(const Database& database, int64_t from, int64_t to) : db_(database), from_(from), to_(to) {}
  Result<TrimResult> run(const sqlite::DatabaseOutput& output);

 private:
  struct Reference {
    int column;  // in stored order
    IdSet* set;  // the row that it names must be in this set; or
    IdSet* use;  // the string that it names is added to this set
  };
  bool inside(int64_t start) const { return start >= from_ && start <= to_; }
  Result<std::string> schema(const char* type);
  Status copy_calls();
  Status copy_operations();
  Status copy_table(const std::string& name, std::initializer_list<std::pair<std::string_view, IdSet*>> needed,
                    std::initializer_list<std::pair<std::string_view, IdSet*>> uses);
  Status copy_rows(const sqlite::StoredTable& table, std::span<const Reference> references);
  Status copy_strings(const char* name, IdSet& used);
  Status copy_others();
  bool known(const std::string& name) const { return std::find(done_.begin(), done_.end(), name) != done_.end(); }

  const Database& db_;
  int64_t from_, to_;
  sqlite::Connection trial_;
  std::unique_ptr<sqlite::BulkFile> file_;
  Stock stock_{db_.file().path()};
  IdSet calls_{stock_}, operations_{stock_}, strings_{stock_}, ustrings_{stock_};
  std::vector<std::string> done_;
  TrimResult result_;
};

// The CREATE statements of one type, as in the file. First tries each one in an empty database under an authorizer, so
// that nothing else can hide in it.
Result<std::string> Trimmer::schema(const char* type) {
  TACHO_ASSIGN(const sqlite::Statement list,
               sqlite::prepare(db_.connection(), "SELECT sql, name FROM sqlite_schema WHERE type = ? AND sql IS NOT "
                                                 "NULL AND name NOT LIKE 'sqlite_%'"));
  sqlite3_bind_text(list.get(), 1, type, -1, SQLITE_STATIC);
  if (!trial_) {
    TACHO_ASSIGN(trial_, sqlite::open_memory());
    sqlite3_set_authorizer(trial_.get(), schema_only, nullptr);
  }
  std::string script;
  while (sqlite3_step(list.get()) == SQLITE_ROW) {
    const std::string sql = reinterpret_cast<const char*>(sqlite3_column_text(list.get(), 0));
    const std::string name = reinterpret_cast<const char*>(sqlite3_column_text(list.get(), 1));
    if (sqlite3_strnicmp(sql.c_str(), "CREATE VIRTUAL", 14) == 0) continue;
    sqlite3_stmt* raw = nullptr;
    const char* tail = nullptr;
    const int code = sqlite3_prepare_v2(trial_.get(), sql.c_str(), -1, &raw, &tail);
    const sqlite::Statement statement(raw);
    if (code != SQLITE_OK || (tail != nullptr && *tail != '\0') || sqlite3_step(raw) != SQLITE_DONE)
      return fail("{}: the definition of its {} {} makes no sense: {}", db_.file().path(), type, name,
                  sqlite3_errmsg(trial_.get()));
    if (type == std::string_view("index")) {
      // Only over plain columns, since SQLite would compute an expression for every row.
      sqlite3_set_authorizer(trial_.get(), nullptr, nullptr);
      TACHO_ASSIGN(const sqlite::Statement parts,
                   sqlite::prepare(trial_.get(), "SELECT count(*) FROM pragma_index_xinfo(?) WHERE cid = -2"));
      sqlite3_bind_text(parts.get(), 1, name.c_str(), -1, SQLITE_TRANSIENT);
      const bool plain = sqlite3_step(parts.get()) == SQLITE_ROW && sqlite3_column_int(parts.get(), 0) == 0;
      sqlite3_set_authorizer(trial_.get(), schema_only, nullptr);
      if (!plain) continue;
    }
    script += sql + ";\n";
  }
  return script;
}

Status Trimmer::copy_calls() {
  TACHO_ASSIGN(const sqlite::StoredTable* const table, db_.required("rocpd_api"));
  // Copying whole records means parsing all columns before the ones needed; those are the first ones anyway.
  NamedScan scan(db_, *table, {"id", "start", "apiName_id", "args_id", "category_id", "domain_id"});
  const bool separate = db_.table("rocpd_ustring") != nullptr;
  BulkTable& out = file_->table(table->name);
  IdSet& arguments = separate ? ustrings_ : strings_;
  while (scan.next()) {
    ++result_.calls;
    if (!inside(scan.number(1))) continue;
    ++result_.calls_kept;
    TACHO_TRY(calls_.add(scan.id(0)));
    TACHO_TRY(strings_.add(scan.id(2)));
    TACHO_TRY(arguments.add(scan.id(3)));
    if (scan.has(4)) TACHO_TRY(strings_.add(scan.id(4)));
    if (scan.has(5)) TACHO_TRY(strings_.add(scan.id(5)));
    out.append_record(scan.rowid(), scan.record());
  }
  done_.push_back(table->name);
  return scan.status();
}

Status Trimmer::copy_operations() {
  TACHO_ASSIGN(const sqlite::StoredTable* const table, db_.required("rocpd_op"));
  const sqlite::StoredTable* const links = db_.table("rocpd_api_ops");
  IdSet linked(stock_), wanted(stock_);
  if (links != nullptr) {
    NamedScan scan(db_, *links, {"api_id", "op_id"});
    while (scan.next()) {
      TACHO_TRY(linked.add(scan.id(1)));
      if (calls_.has(scan.id(0))) TACHO_TRY(wanted.add(scan.id(1)));
    }
    TACHO_TRY(scan.status());
  }
  NamedScan scan(db_, *table, {"id", "start", "description_id", "opType_id"});
  BulkTable& out = file_->table(table->name);
  while (scan.next()) {
    ++result_.operations;
    const int64_t id = scan.id(0);
    if (!wanted.has(id) && (linked.has(id) || !inside(scan.number(1)))) continue;
    ++result_.operations_kept;
    TACHO_TRY(operations_.add(id));
    TACHO_TRY(strings_.add(scan.id(2)));
    TACHO_TRY(strings_.add(scan.id(3)));
    out.append_record(scan.rowid(), scan.record());
  }
  done_.push_back(table->name);
  TACHO_TRY(scan.status());
  return copy_table("rocpd_api_ops", {{"api_id", &calls_}, {"op_id", &operations_}}, {});
}

Status Trimmer::copy_table(const std::string& name, std::initializer_list<std::pair<std::string_view, IdSet*>> needed,
                           std::initializer_list<std::pair<std::string_view, IdSet*>> uses) {
  const sqlite::StoredTable* const table = db_.table(name);
  if (table == nullptr) return {};
  std::vector<Reference> references;
  const auto add = [&](std::string_view column, IdSet* set, IdSet* use) {
    const int at = table->column(column);
    if (at < 0 || at >= sqlite::TableScan::kMaxColumns) return;
    references.push_back({at, set, use});
  };
  for (const auto& [column, set] : needed) add(column, set, nullptr);
  for (const auto& [column, set] : uses) add(column, nullptr, set);
  done_.push_back(name);
  return copy_rows(*table, references);
}

Status Trimmer::copy_rows(const sqlite::StoredTable& table, std::span<const Reference> references) {
  int most = 0;
  for (const Reference& reference : references) most = std::max(most, reference.column + 1);
  sqlite::TableScan scan(db_.file(), table.root_page, most);
  BulkTable& out = file_->table(table.name);
  while (scan.next()) {
    bool keep = true;
    const auto value = [&](int column) {
      return column == table.rowid_column ? scan.rowid() : scan.integer(column, 0);
    };
    for (const Reference& reference : references)
      if (reference.set != nullptr && !reference.set->has(value(reference.column))) keep = false;
    if (!keep) continue;
    for (const Reference& reference : references)
      if (reference.use != nullptr) TACHO_TRY(reference.use->add(value(reference.column)));
    out.append_record(scan.rowid(), scan.record());
  }
  return scan.status();
}

Status Trimmer::copy_strings(const char* name, IdSet& used) {
  const sqlite::StoredTable* const table = db_.table(name);
  if (table == nullptr) return {};
  NamedScan scan(db_, *table, {"id", "string"});
  BulkTable& out = file_->table(table->name);
  while (scan.next())
    if (used.has(scan.rowid()) || scan.string(1).empty())
      out.append_record(scan.rowid(), scan.record());  // views look for the empty text
  done_.push_back(table->name);
  return scan.status();
}

// Tables that this version of tacho does not know: trims them by the references that they declare.
Status Trimmer::copy_others() {
  TACHO_ASSIGN(const sqlite::Statement keys,
               sqlite::prepare(db_.connection(), "SELECT \"from\", \"table\" FROM pragma_foreign_key_list(?)"));
  for (const sqlite::StoredTable& table : db_.tables()) {
    if (known(table.name) || table.name.starts_with("sqlite_") || table.name == "rocpd_string" ||
        table.name == "rocpd_ustring")
      continue;
    std::vector<Reference> references;
    sqlite3_reset(keys.get());
    sqlite3_bind_text(keys.get(), 1, table.name.c_str(), -1, SQLITE_TRANSIENT);
    while (sqlite3_step(keys.get()) == SQLITE_ROW) {
      const std::string column = reinterpret_cast<const char*>(sqlite3_column_text(keys.get(), 0));
      const std::string target = reinterpret_cast<const char*>(sqlite3_column_text(keys.get(), 1));
      const int at = table.column(column);
      if (at < 0 || at >= sqlite::TableScan::kMaxColumns) continue;
      if (target == "rocpd_api") references.push_back({at, &calls_, nullptr});
      if (target == "rocpd_op") references.push_back({at, &operations_, nullptr});
      if (target == "rocpd_string") references.push_back({at, nullptr, &strings_});
      if (target == "rocpd_ustring") references.push_back({at, nullptr, &ustrings_});
    }
    TACHO_TRY(copy_rows(table, references));
  }
  return {};
}

Result<TrimResult> Trimmer::run(const sqlite::DatabaseOutput& output) {
  if (schema_version(db_) == 0) return fail("{}: not an .rpd file", db_.file().path());
  TACHO_ASSIGN(const std::string tables, schema("table"));
  TACHO_ASSIGN(const std::string indexes, schema("index"));
  TACHO_ASSIGN(const std::string definitions, schema("view"));
  TACHO_ASSIGN(file_, sqlite::BulkFile::create(output, tables));
  TACHO_TRY(copy_calls());
  TACHO_TRY(copy_operations());
  TACHO_TRY(copy_table("rocpd_kernelapi", {{"api_ptr_id", &calls_}}, {{"kernelName_id", &strings_}}));
  TACHO_TRY(copy_table("rocpd_copyapi", {{"api_ptr_id", &calls_}}, {}));
  TACHO_TRY(copy_table("rocpd_kernelop", {{"op_ptr_id", &operations_}}, {{"kernelName_id", &strings_}}));
  TACHO_TRY(copy_table("rocpd_copyop", {{"op_ptr_id", &operations_}}, {}));
  TACHO_TRY(copy_table("rocpd_stackframe", {{"api_ptr_id", &calls_}}, {{"name_id", &strings_}}));
  TACHO_TRY(copy_table("rocpd_counter", {{"op_id", &operations_}}, {{"name_id", &strings_}}));
  TACHO_TRY(copy_table("rocpd_barrierop", {{"op_ptr_id", &operations_}}, {}));
  TACHO_TRY(copy_table("rocpd_op_inputSignals", {{"from_op_id", &operations_}, {"to_op_id", &operations_}}, {}));
  if (const sqlite::StoredTable* const table = db_.table("rocpd_monitor")) {
    NamedScan scan(db_, *table, {"start", "end"});
    BulkTable& out = file_->table(table->name);
    while (scan.next())
      if (scan.number(0) <= to_ && scan.number(1) >= from_) out.append_record(scan.rowid(), scan.record());
    done_.push_back(table->name);
    TACHO_TRY(scan.status());
  }
  TACHO_TRY(copy_others());
  TACHO_TRY(copy_strings("rocpd_string", strings_));
  TACHO_TRY(copy_strings("rocpd_ustring", ustrings_));
  TACHO_TRY(file_->finish(indexes + definitions));
  return result_;
}

}  // namespace

Result<std::pair<int64_t, int64_t>> time_range(const std::string& path) {
  TACHO_ASSIGN(const Database database, Database::open(path));
  TACHO_ASSIGN(const sqlite::StoredTable* const table, database.required("rocpd_api"));
  NamedScan scan(database, *table, {"start", "end"});
  int64_t first = INT64_MAX, last = INT64_MIN;
  while (scan.next()) {
    if (!scan.is_number_at(0) || !scan.is_number_at(1)) continue;
    first = std::min(first, scan.number(0));
    last = std::max(last, scan.number(1));
  }
  TACHO_TRY(scan.status());
  if (first > last) return fail("{}: it holds no API calls: nothing to trim", path);
  return std::pair{first, last};
}

Result<TrimResult> trim(const std::string& input, const std::string& output, int64_t from, int64_t to, bool overwrite) {
  TACHO_ASSIGN(const Database database, Database::open(input));
  TACHO_ASSIGN(sqlite::DatabaseOutput place, sqlite::DatabaseOutput::create(output, overwrite));
  TACHO_ASSIGN(const TrimResult result, Trimmer(database, from, to).run(place));
  TACHO_TRY(place.commit());
  return result;
}

}  // namespace tacho::format::rpd
