// Implements SQLite's virtual table methods over relations and results (virtual_tables.h).
#include "query/sql/virtual_tables.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <span>

#include "base/files/sorted_file.h"
#include "format/sqlite/database.h"

namespace tacho::query {

using event::kUnknown;

namespace {

struct Position {
  int32_t part;
  int64_t row;
};

struct Entry {
  std::string schema;
  std::shared_ptr<Store> store;
  Relation relation;
  QueryTable result;
  bool is_result = false, is_virtual = true;
  // Results, filled when first read.
  bool computed = false;
  std::vector<std::vector<report::Cell>> rows;
  std::shared_ptr<const ResultRows> many;
  size_t result_rows() const { return many ? many->size() : rows.size(); }
  // Indexes over integer columns for the lookups of joins; built once SQLite asks for a column repeatedly.
  struct Lookup {
    int asked = 0;
    bool ready = false;
    KeyIndex<Position> index;
  };
  std::map<int, std::unique_ptr<Lookup>> lookups;
};

}  // namespace

struct Module::State {
  sqlite3* connection = nullptr;
  std::vector<std::unique_ptr<Entry>> entries;
};

namespace {

struct Table : sqlite3_vtab {
  Entry* entry;
};

struct Cursor : sqlite3_vtab_cursor {
  Entry* entry = nullptr;
  std::unique_ptr<Scan> scan;
  bool at_row = false;
  bool single = false;                               // at most one row
  const KeyIndex<Position>::Entry* match = nullptr;  // next match of the lookup
  const KeyIndex<Position>::Entry* matches_end = nullptr;
  int64_t key = 0;
  bool looking = false;
  size_t row = 0;                   // for results
  std::vector<report::Cell> cells;  // of that row, computed on request
  bool made = false;
  std::string scratch;
};

int set_error(sqlite3_vtab* table, const std::string& message) {
  sqlite3_free(table->zErrMsg);
  table->zErrMsg = sqlite3_mprintf("%s", message.c_str());
  return SQLITE_ERROR;
}

const char* type_name(ValueType type) {
  return type == ValueType::kInteger ? "INTEGER" : type == ValueType::kReal ? "REAL" : "TEXT";
}

std::string quoted_name(std::string_view name) {
  std::string result = "\"";
  for (const char c : name) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + "\"";
}

int connect(sqlite3* connection, void* context, int count, const char* const* arguments, sqlite3_vtab** out,
            char** error) {
  auto* const state = static_cast<Module::State*>(context);
  size_t number = 0;
  if (count < 4 || std::from_chars(arguments[3], arguments[3] + std::strlen(arguments[3]), number).ec != std::errc() ||
      number >= state->entries.size()) {
    *error = sqlite3_mprintf("tacho's virtual tables are made by tacho itself");
    return SQLITE_ERROR;
  }
  Entry& entry = *state->entries[number];
  std::string sql = "CREATE TABLE x(";
  if (entry.is_result)
    for (size_t i = 0; i < entry.result.columns.size(); ++i)
      sql += (i > 0 ? ", " : "") + quoted_name(entry.result.columns[i].name) + " " +
             type_name(entry.result.columns[i].type);
  else
    for (size_t i = 0; i < entry.relation.columns.size(); ++i)
      sql += (i > 0 ? ", " : "") + quoted_name(entry.relation.columns[i].name) + " " +
             type_name(entry.relation.columns[i].type);
  sql += ")";
  if (const int code = sqlite3_declare_vtab(connection, sql.c_str()); code != SQLITE_OK) {
    *error = sqlite3_mprintf("%s", sqlite3_errmsg(connection));
    return code;
  }
  sqlite3_vtab_config(connection, SQLITE_VTAB_INNOCUOUS);
  auto* const table = new Table{};
  table->entry = &entry;
  *out = table;
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  delete static_cast<Table*>(table);
  return SQLITE_OK;
}

bool needs_row_number(const Relation& relation, int column) {
  for (const Part& part : relation.parts)
    for (const int16_t base : part.columns[static_cast<size_t>(column)].base)
      if (base == kRowNumber) return true;
  return false;
}

// The plan of best_index() for a statement's constraints and order.
struct IndexPlan {
  std::string text;  // sqlite3_index_info::idxStr
  int number = 0;    // idxNum
  int arguments = 0;
  double rows, cost;
  bool ordered = false;
  void pass(sqlite3_index_info* info, int constraint, int column, Comparison comparison) {
    info->aConstraintUsage[constraint].argvIndex = ++arguments;
    text += fmt::format("{} {} ", column, static_cast<int>(comparison));
  }
};

bool in_use(const sqlite3_index_info* info, size_t column) {
  return (info->colUsed >> std::min<size_t>(column, 63) & 1) != 0;
}

// The column of each constraint; -1 where it is not usable.
std::vector<int> constrained_columns(const Relation& relation, const sqlite3_index_info* info) {
  int id_column = -1;
  for (size_t i = 0; i < relation.columns.size(); ++i)
    if (relation.columns[i].id) id_column = static_cast<int>(i);
  std::vector<int> columns;
  for (const auto& constraint : std::span(info->aConstraint, static_cast<size_t>(info->nConstraint)))
    columns.push_back(constraint.usable == 0 ? -1 : constraint.iColumn < 0 ? id_column : constraint.iColumn);
  return columns;
}

// Prefers a unique id, then a column that supports lookups; with either, SQLite checks the rest.
void choose_lookup(const Relation& relation, std::span<const int> columns, sqlite3_index_info* info, IndexPlan& plan) {
  int lookup = -1;
  for (int i = 0; i < info->nConstraint; ++i) {
    if (columns[static_cast<size_t>(i)] < 0 || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
    const int column = columns[static_cast<size_t>(i)];
    const ColumnInfo& about = relation.columns[static_cast<size_t>(column)];
    if (about.id) {
      plan.number = 1;
      plan.rows = 1;
      plan.cost = 20;
      info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
      return plan.pass(info, i, column, Comparison::kEqual);
    }
    if (lookup < 0 && about.type == ValueType::kInteger && !about.few && !about.time) lookup = i;
  }
  if (lookup < 0) return;
  plan.number = 2;
  plan.rows = 2;
  plan.cost = 100;
  plan.pass(info, lookup, columns[static_cast<size_t>(lookup)], Comparison::kEqual);
}

std::optional<Comparison> comparison_of(int constraint) {
  switch (constraint) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
      return Comparison::kEqual;
    case SQLITE_INDEX_CONSTRAINT_LT:
      return Comparison::kLess;
    case SQLITE_INDEX_CONSTRAINT_LE:
      return Comparison::kLessEqual;
    case SQLITE_INDEX_CONSTRAINT_GT:
      return Comparison::kGreater;
    case SQLITE_INDEX_CONSTRAINT_GE:
      return Comparison::kGreaterEqual;
    case SQLITE_INDEX_CONSTRAINT_NE:
      return Comparison::kNotEqual;
    case SQLITE_INDEX_CONSTRAINT_LIKE:
      return Comparison::kLike;
    case SQLITE_INDEX_CONSTRAINT_GLOB:
      return Comparison::kGlob;
    default:
      return std::nullopt;
  }
}

// The constraints by which a scan leaves out rows itself.
void choose_filters(const Relation& relation, std::span<const int> columns, sqlite3_index_info* info, IndexPlan& plan) {
  for (int i = 0; i < info->nConstraint; ++i) {
    const int column = columns[static_cast<size_t>(i)];
    const std::optional<Comparison> comparison = comparison_of(info->aConstraint[i].op);
    if (column < 0 || !comparison) continue;
    const ColumnInfo& about = relation.columns[static_cast<size_t>(column)];
    const bool pattern = *comparison == Comparison::kLike || *comparison == Comparison::kGlob;
    if (about.type == ValueType::kText) {
      if (!pattern && std::strcmp(sqlite3_vtab_collation(info, i), "BINARY") != 0) continue;
    } else if (pattern) {
      continue;
    }
    plan.pass(info, i, column, *comparison);
    plan.rows *= *comparison == Comparison::kEqual ? 0.1 : *comparison == Comparison::kNotEqual ? 0.9 : 0.4;
    plan.cost *= about.time || about.few ? 0.5 : 0.9;
  }
}

// Rows merged by time have no row number.
bool may_go_by_time(const Relation& relation, const sqlite3_index_info* info) {
  for (size_t i = 0; i < relation.columns.size(); ++i)
    if (in_use(info, i) && needs_row_number(relation, static_cast<int>(i))) return false;
  for (const Part& part : relation.parts)
    for (const PartColumn& keep : part.keep)
      if (std::find(keep.base.begin(), keep.base.end(), kRowNumber) != keep.base.end()) return false;
  return true;
}

// The order in which a scan can give its rows, in the text of the plan.
void choose_order(const Relation& relation, double total, const sqlite3_index_info* info, IndexPlan& plan) {
  const std::span terms(info->aOrderBy, static_cast<size_t>(info->nOrderBy));
  const auto about = [&](const auto& term) -> const ColumnInfo& {
    return relation.columns[static_cast<size_t>(term.iColumn)];
  };
  const bool ascending = terms.size() == 1 && terms[0].desc == 0;
  // One row by its id is in every order; what a lookup finds, SQLite sorts.
  plan.ordered = plan.number == 1;
  std::string order = "n";
  if (plan.number == 0 && !terms.empty()) {
    if (std::ranges::all_of(terms, [&](const auto& term) { return term.iColumn >= 0 && about(term).few; })) {
      order = "g";
      for (const auto& term : terms) order += fmt::format(" {} {}", term.iColumn, static_cast<int>(term.desc));
      plan.cost += total * 0.5;
      plan.ordered = true;
    } else if (ascending && (terms[0].iColumn < 0 || about(terms[0]).id)) {
      plan.ordered = true;
    } else if (ascending && about(terms[0]).time && may_go_by_time(relation, info)) {
      order = "t";
      plan.cost += total * 0.2;
      plan.ordered = true;
    }
  }
  plan.text += order;
}

// idxStr: the constraints as "column comparison ..." in the order of the arguments, "|", the order, "|", the
// columns in use. The order is "n" natural, "t" by time or "g column direction ..." grouped. idxNum: 0 scan,
// 1 one row by id, 2 lookup.
int best_index(sqlite3_vtab* base, sqlite3_index_info* info) {
  const Entry& entry = *static_cast<Table*>(base)->entry;
  if (entry.is_result) {
    info->estimatedCost = 1000;
    info->estimatedRows = 100;
    return SQLITE_OK;
  }
  const Relation& relation = entry.relation;
  const auto total = static_cast<double>(std::max<int64_t>(relation.rows(*entry.store), 1));
  IndexPlan plan{.text = {}, .rows = total, .cost = total};
  const std::vector<int> columns = constrained_columns(relation, info);
  choose_lookup(relation, columns, info, plan);
  if (plan.number == 0) choose_filters(relation, columns, info, plan);
  plan.text += "|";
  choose_order(relation, total, info, plan);
  plan.text += "|";
  for (size_t i = 0; i < relation.columns.size(); ++i)
    if (in_use(info, i)) plan.text += fmt::format("{} ", i);
  info->orderByConsumed = plan.ordered ? 1 : 0;
  info->idxNum = plan.number;
  info->idxStr = sqlite3_mprintf("%s", plan.text.c_str());
  info->needToFreeIdxStr = 1;
  info->estimatedCost = std::max(plan.cost, 1.0);
  info->estimatedRows = static_cast<sqlite3_int64>(std::max(plan.rows, 1.0));
  return info->idxStr == nullptr ? SQLITE_NOMEM : SQLITE_OK;
}

int open_cursor(sqlite3_vtab* table, sqlite3_vtab_cursor** out) {
  auto* const cursor = new Cursor{};
  cursor->entry = static_cast<Table*>(table)->entry;
  *out = cursor;
  return SQLITE_OK;
}

int close_cursor(sqlite3_vtab_cursor* cursor) {
  delete static_cast<Cursor*>(cursor);
  return SQLITE_OK;
}

int scan_failed(Cursor& cursor) {
  cursor.at_row = false;
  return set_error(cursor.pVtab, cursor.scan->status().error().message);
}

int next_row(sqlite3_vtab_cursor* base) {
  auto& cursor = *static_cast<Cursor*>(base);
  if (cursor.entry->is_result) {
    cursor.at_row = ++cursor.row < cursor.entry->result_rows();
    cursor.made = false;
    return SQLITE_OK;
  }
  if (cursor.single) {
    cursor.at_row = false;
    return SQLITE_OK;
  }
  if (cursor.looking) {
    while (cursor.match != cursor.matches_end && cursor.match->key == cursor.key) {
      const Position at = cursor.match++->value;
      if (cursor.scan->jump(static_cast<size_t>(at.part), at.row)) {
        cursor.at_row = true;
        return SQLITE_OK;
      }
    }
    cursor.at_row = false;
    return cursor.scan->status() ? SQLITE_OK : scan_failed(cursor);
  }
  cursor.at_row = cursor.scan->next();
  if (!cursor.at_row && !cursor.scan->status()) return scan_failed(cursor);
  return SQLITE_OK;
}

Status build_lookup(Entry& entry, Entry::Lookup& lookup, int column) {
  ScanPlan plan;
  plan.used = {column};
  Scan scan(entry.relation, *entry.store, std::move(plan));
  while (scan.next_batch())
    for (const uint32_t row : scan.selection()) {
      const int64_t value = scan.value_at(column, row);
      if (value != kUnknown) lookup.index.add(value, {static_cast<int32_t>(scan.part()), scan.row_number(row)});
    }
  TACHO_TRY(Status(scan.status()));
  TACHO_TRY(lookup.index.finish());
  lookup.ready = true;
  return {};
}

Constraint constraint_of(const Relation& relation, int column, int comparison, sqlite3_value* value) {
  Constraint result;
  result.column = column;
  result.comparison = static_cast<Comparison>(comparison);
  const bool text = relation.columns[static_cast<size_t>(column)].type == ValueType::kText;
  const int type = text ? sqlite3_value_type(value) : sqlite3_value_numeric_type(value);
  switch (type) {
    case SQLITE_NULL:
      result.never = true;
      break;
    case SQLITE_INTEGER:
      result.type = ValueType::kInteger;
      result.integer = sqlite3_value_int64(value);
      break;
    case SQLITE_FLOAT:
      result.type = ValueType::kReal;
      result.real = sqlite3_value_double(value);
      break;
    default:
      result.type = ValueType::kText;
      result.text.assign(reinterpret_cast<const char*>(sqlite3_value_text(value)),
                         static_cast<size_t>(sqlite3_value_bytes(value)));
  }
  return result;
}

int filter(sqlite3_vtab_cursor* base, int number, const char* text, int count, sqlite3_value** values) {
  auto& cursor = *static_cast<Cursor*>(base);
  Entry& entry = *cursor.entry;
  if (entry.is_result) {
    if (!entry.computed) {
      if (entry.result.many) {
        auto many = entry.result.many();
        if (!many) return set_error(base->pVtab, many.error().message);
        entry.many = std::move(*many);
      } else {
        auto rows = entry.result.rows();
        if (!rows) return set_error(base->pVtab, rows.error().message);
        entry.rows = std::move(*rows);
      }
      entry.computed = true;
    }
    cursor.row = 0;
    cursor.made = false;
    cursor.at_row = entry.result_rows() > 0;
    return SQLITE_OK;
  }
  const Relation& relation = entry.relation;
  ScanPlan plan;
  const char* at = text;
  const auto read = [&](int& value) {
    while (*at == ' ') ++at;
    const auto [stop, error] = std::from_chars(at, at + std::strlen(at), value);
    at = stop;
    return error == std::errc();
  };
  for (int i = 0; i < count; ++i) {
    int column = 0, comparison = 0;
    read(column);
    read(comparison);
    plan.constraints.push_back(constraint_of(relation, column, comparison, values[i]));
  }
  while (*at != '|') ++at;
  ++at;
  if (*at == 't') {
    plan.by_time = true;
  } else if (*at == 'g') {
    ++at;
    OrderTerm term;
    int direction = 0;
    while (read(term.column) && read(direction)) {
      term.descending = direction != 0;
      plan.group_by.push_back(term);
    }
  }
  while (*at != '|') ++at;
  ++at;
  int column = 0;
  while (read(column)) plan.used.push_back(column);

  cursor.single = cursor.looking = false;
  cursor.at_row = false;
  const bool whole =
      !plan.constraints.empty() && plan.constraints[0].type == ValueType::kInteger && !plan.constraints[0].never;
  if (number != 0 && whole) {
    const Constraint key = plan.constraints[0];
    if (number == 1) {
      if (!cursor.scan) {
        plan.constraints.clear();
        cursor.scan = std::make_unique<Scan>(relation, *entry.store, std::move(plan));
      }
      cursor.single = true;
      cursor.at_row = cursor.scan->jump_to_id(key.integer);
      return cursor.scan->status() ? SQLITE_OK : scan_failed(cursor);
    }
    auto& lookup = entry.lookups[key.column];
    if (!lookup) lookup = std::make_unique<Entry::Lookup>();
    if (!lookup->ready && ++lookup->asked > 2)
      if (const Status built = build_lookup(entry, *lookup, key.column); !built)
        return set_error(base->pVtab, built.error().message);
    if (lookup->ready) {
      if (!cursor.scan) {
        plan.constraints.clear();
        cursor.scan = std::make_unique<Scan>(relation, *entry.store, std::move(plan));
      }
      cursor.looking = true;
      cursor.key = key.integer;
      cursor.match = lookup->index.find(key.integer);
      const auto all = lookup->index.entries();
      cursor.matches_end = all.data() + all.size();
      if (cursor.match == nullptr) cursor.match = cursor.matches_end;
      return next_row(base);
    }
    cursor.scan.reset();
  }
  cursor.scan = std::make_unique<Scan>(relation, *entry.store, std::move(plan));
  cursor.at_row = cursor.scan->next_batch();
  if (!cursor.at_row && !cursor.scan->status()) return scan_failed(cursor);
  return SQLITE_OK;
}

int at_end(sqlite3_vtab_cursor* cursor) {
  return static_cast<Cursor*>(cursor)->at_row ? 0 : 1;
}

int column_value(sqlite3_vtab_cursor* base, sqlite3_context* context, int column) {
  auto& cursor = *static_cast<Cursor*>(base);
  if (cursor.entry->is_result) {
    if (cursor.entry->many && !cursor.made) {
      cursor.entry->many->row(cursor.row, cursor.cells);
      cursor.made = true;
    }
    const auto& row = cursor.entry->many ? cursor.cells : cursor.entry->rows[cursor.row];
    if (static_cast<size_t>(column) >= row.size()) return SQLITE_OK;
    const report::Cell& cell = row[static_cast<size_t>(column)];
    if (const auto* whole = std::get_if<int64_t>(&cell))
      sqlite3_result_int64(context, *whole);
    else if (const auto* real = std::get_if<double>(&cell))
      sqlite3_result_double(context, *real);
    else if (const auto* text = std::get_if<std::string>(&cell))
      sqlite3_result_text64(context, text->data(), text->size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    return SQLITE_OK;
  }
  const int64_t value = cursor.scan->value(column);
  // Fail as soon as a column cannot be read: a statement with a LIMIT would never see an error at the end.
  if (!cursor.scan->status()) return set_error(base->pVtab, cursor.scan->status().error().message);
  if (value == kUnknown) {
    sqlite3_result_null(context);
    return SQLITE_OK;
  }
  switch (cursor.entry->relation.columns[static_cast<size_t>(column)].type) {
    case ValueType::kInteger:
      sqlite3_result_int64(context, value);
      break;
    case ValueType::kReal:
      sqlite3_result_double(context, __builtin_bit_cast(double, value));
      break;
    case ValueType::kText: {
      const std::string_view text = cursor.scan->text(column, value, cursor.scratch);
      sqlite3_result_text64(context, text.data() != nullptr ? text.data() : "", text.size(), SQLITE_TRANSIENT,
                            SQLITE_UTF8);
      break;
    }
  }
  return SQLITE_OK;
}

int row_id(sqlite3_vtab_cursor* base, sqlite3_int64* id) {
  auto& cursor = *static_cast<Cursor*>(base);
  *id = cursor.entry->is_result ? static_cast<int64_t>(cursor.row) + 1 : cursor.scan->row_id();
  if (!cursor.entry->is_result && !cursor.scan->status())
    return set_error(base->pVtab, cursor.scan->status().error().message);
  return SQLITE_OK;
}

constexpr sqlite3_module make_module() {
  sqlite3_module module{};
  module.iVersion = 1;
  module.xCreate = connect;
  module.xConnect = connect;
  module.xBestIndex = best_index;
  module.xDisconnect = disconnect;
  module.xDestroy = disconnect;
  module.xOpen = open_cursor;
  module.xClose = close_cursor;
  module.xFilter = filter;
  module.xNext = next_row;
  module.xEof = at_end;
  module.xColumn = column_value;
  module.xRowid = row_id;
  return module;
}
constexpr sqlite3_module kModule = make_module();

}  // namespace

Module::Module(sqlite3* connection) : state_(std::make_unique<State>()) {
  state_->connection = connection;
  sqlite3_create_module_v2(connection, "tacho", &kModule, state_.get(), nullptr);
}
Module::~Module() = default;

Status Module::create(const std::string& schema, const std::string& name, size_t number) {
  return sqlite::execute(state_->connection, fmt::format("CREATE VIRTUAL TABLE {}.{} USING tacho({})",
                                                         quoted_name(schema), quoted_name(name), number));
}

Status Module::add(const std::string& schema, std::shared_ptr<Store> store, Relation relation) {
  auto entry = std::make_unique<Entry>();
  entry->schema = schema;
  entry->store = std::move(store);
  entry->relation = std::move(relation);
  const std::string name = entry->relation.name;
  state_->entries.push_back(std::move(entry));
  return create(schema, name, state_->entries.size() - 1);
}

void Module::know(const std::string& schema, std::shared_ptr<Store> store, Relation relation) {
  auto entry = std::make_unique<Entry>();
  entry->schema = schema;
  entry->store = std::move(store);
  entry->relation = std::move(relation);
  entry->is_virtual = false;
  state_->entries.push_back(std::move(entry));
}

Status Module::add(const std::string& schema, QueryTable table) {
  auto entry = std::make_unique<Entry>();
  entry->schema = schema;
  entry->is_result = true;
  entry->result = std::move(table);
  const std::string name = entry->result.name;
  state_->entries.push_back(std::move(entry));
  return create(schema, name, state_->entries.size() - 1);
}

namespace {

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sqlite3_strnicmp(a.data(), b.data(), static_cast<int>(a.size())) == 0;
}

}  // namespace

bool Module::is_virtual(std::string_view name) const {
  return std::any_of(state_->entries.begin(), state_->entries.end(), [&](const auto& entry) {
    return entry->schema == state_->entries.front()->schema && entry->is_virtual &&
           same(entry->is_result ? entry->result.name : entry->relation.name, name);
  });
}

Module::Found Module::find(std::string_view schema, std::string_view name) const {
  if (state_->entries.empty()) return {};
  const std::string_view wanted = schema.empty() ? state_->entries.front()->schema : schema;
  for (const auto& entry : state_->entries)
    if (same(entry->schema, wanted) && !entry->is_result && same(entry->relation.name, name))
      return {&entry->relation, entry->store.get(), entry->is_virtual};
  return {};
}

}  // namespace tacho::query
