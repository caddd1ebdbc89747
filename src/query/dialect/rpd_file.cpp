// Answers queries directly from .rpd files (rpd_file.h).
#include "query/dialect/rpd_file.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/files/sorted_file.h"
#include "base/saturating.h"
#include "event/times.h"
#include "format/import/times.h"
#include "format/rpd/rpd.h"
#include "format/rpd/schema.h"
#include "query/dialect/database_store.h"
#include "query/dialect/top_rows.h"

namespace tacho::query {

using event::kUnknown;
using sqlite::Database;
using sqlite::NamedScan;

namespace {

// The texts of rocpd_string or rocpd_ustring by id.
class Texts {
 public:
  Texts(std::shared_ptr<const Database> database, const sqlite::StoredTable& table)
      : database_(std::move(database)), table_(&table), scan_(*database_, table, {"id", "string"}) {}
  bool exists(int64_t id) {
    if (!counted_) count();
    if (dense_) return id >= first_ && id <= last_;
    return scan_.seek(id);
  }
  std::string_view find(int64_t id) { return scan_.seek(id) ? scan_.string(1) : std::string_view(); }

 private:
  // Ids usually have no gaps; then exists() needs no search.
  void count() {
    counted_ = true;
    NamedScan rows(*database_, *table_, {});
    const std::vector<uint32_t> leaves = rows.leaves();
    int64_t count = 0;
    for (const uint32_t page : leaves) count += sqlite::TableScan::rows_of_leaf(database_->file(), page);
    if (count == 0) return;
    NamedScan ends(*database_, *table_, {"id"});
    ends.scan_leaves(std::span(leaves).first(1));
    if (ends.next()) first_ = ends.rowid();
    ends.scan_leaves(std::span(leaves).last(1));
    while (ends.next()) last_ = ends.rowid();
    dense_ = last_ - first_ + 1 == count;
  }
  std::shared_ptr<const Database> database_;
  const sqlite::StoredTable* table_;
  NamedScan scan_;
  int64_t first_ = 0, last_ = -1;
  bool dense_ = true, counted_ = false;
};

// Whether operations with a start of 0 were not measured (imported::UnmeasuredRows). Looks at all times on first
// use.
class ZeroTimes {
 public:
  explicit ZeroTimes(const Database& database) : database_(database) {}
  Result<bool> unmeasured(int64_t start, int64_t end) {
    if (!format::imported::UnmeasuredRows::looks_so(start, end)) return false;
    if (!known_) TACHO_TRY(look());
    return far_ && (end == 0 || end >= first_);
  }

 private:
  Status look() {
    int64_t last = INT64_MIN;
    for (const char* const name : {"rocpd_op", "rocpd_api"}) {
      TACHO_ASSIGN(const sqlite::StoredTable* const table, database_.required(name));
      NamedScan scan(database_, *table, {"start", "end"});
      while (scan.next()) {
        const int64_t start = scan.number(0), end = scan.number(1);
        if (!event::is_time(start) || !event::is_time(end)) continue;
        if (format::imported::UnmeasuredRows::looks_so(start, end)) continue;
        first_ = std::min(first_, start);
        last = std::max({last, start, end});
      }
      TACHO_TRY(scan.status());
    }
    far_ = format::imported::UnmeasuredRows::is_far(first_, last);
    known_ = true;
    return {};
  }
  const Database& database_;
  int64_t first_ = INT64_MAX;  // start of all others
  bool known_ = false, far_ = false;
};

// True for possible times of an operation. The caller counts the others, which a damaged file holds.
bool usable(const NamedScan& scan, int at_start, int at_end) {
  return event::is_time(scan.number(at_start, kUnknown)) && event::is_time(scan.number(at_end, kUnknown)) &&
         scan.is_number_at(at_start) && scan.is_number_at(at_end);
}

// Sums by rows of rocpd_string. An inner join: no view shows ids that have no row there.
std::shared_ptr<NamedSums> sums_of_strings(const std::shared_ptr<const Database>& database,
                                           const sqlite::StoredTable& strings) {
  const auto names = std::make_shared<Texts>(database, strings);
  return std::make_shared<NamedSums>(
      [names](int64_t code, std::string& scratch) -> std::string_view {
        scratch = names->find(code);
        return scratch;
      },
      [names](int64_t code) { return names->exists(code); });
}

}  // namespace

Result<RpdTop> rpd_top(std::shared_ptr<const Database> file, bool as_view) {
  const Database& database = *file;
  TACHO_TRY(format::rpd::check(database));
  TACHO_ASSIGN(const sqlite::StoredTable* const ops, database.required("rocpd_op"));
  TACHO_ASSIGN(const sqlite::StoredTable* const strings, database.required("rocpd_string"));
  NamedScan names(database, *strings, {"id", "string"});
  const std::shared_ptr<NamedSums> sums = sums_of_strings(file, *strings);
  constexpr size_t kMostKnown = 1 << 18;
  tsl::robin_map<int64_t, bool> is_empty;
  struct Op {
    int64_t start, end, name;
    bool operator<(const Op& other) const {
      return start != other.start ? start < other.start : end != other.end ? end < other.end : name < other.name;
    }
  };
  SortedFile<Op> sorted(24u << 20);
  NamedScan scan(database, *ops, {"start", "end", "description_id", "opType_id"});
  int64_t last_description = kUnknown;
  bool empty = false;
  RpdTop top;
  ZeroTimes zeros(database);
  while (scan.next()) {
    if (!as_view && !usable(scan, 0, 1)) {
      ++top.unusable;
      continue;
    }
    const int64_t start = scan.number(0), end = scan.number(1);
    const int64_t description = scan.number(2, 0);
    if (description != last_description) {
      if (is_empty.size() > kMostKnown) is_empty.clear();
      const auto [found, fresh] = is_empty.try_emplace(description, false);
      if (fresh) found.value() = names.seek(description) && names.string(1).empty();
      empty = found->second;
      last_description = description;
    }
    int64_t duration = 0;
    if (__builtin_sub_overflow(end, start, &duration)) continue;
    const int64_t name = empty ? scan.number(3, 0) : description;
    TACHO_ASSIGN(const bool unmeasured, zeros.unmeasured(start, end));
    if (!as_view && (unmeasured || event::duration_between(start, end) == kUnknown)) {
      ++(unmeasured ? top.unmeasured : top.disordered);
      sums->add_call(name, kUnknown);
      continue;
    }
    if (__builtin_add_overflow(top.total, duration, &top.total))
      return fail("{}: durations that add up to more than 292 years: damaged times", database.file().path());
    sorted.add({start, end, name});
    sums->add_call(name, duration);
  }
  TACHO_TRY(scan.status());
  TACHO_TRY(sorted.finish());
  Op op, before{0, 0, kUnknown};
  while (sorted.next(op)) {
    if (op.start == before.start && op.end == before.end && op.name == before.name) {
      ++top.duplicates;
      if (as_view) sums->add(op.name, -1, -1, op.start - op.end);
    }
    before = op;
  }
  TACHO_TRY(names.status());
  TACHO_TRY(sums->finish(as_view ? NamedSums::Order::kRpd : NamedSums::Order::kTotal));
  top.rows = sums;
  return top;
}

namespace {

// The view of schema 1: kernels by their operations' descriptions, with the operations' own time.
Status add_kernels_of_schema_1(const Database& database, const sqlite::StoredTable& kernels, NamedSums& sums,
                               RpdTop& top) {
  TACHO_ASSIGN(const sqlite::StoredTable* const operations, database.required("rocpd_op"));
  NamedScan op(database, *operations, {"start", "end", "description_id"});
  NamedScan scan(database, kernels, {"op_ptr_id"});
  while (scan.next()) {
    int64_t duration = 0;
    if (!op.seek(scan.id(0)) || __builtin_sub_overflow(op.number(1), op.number(0), &duration)) continue;
    add_saturating(top.total, duration);
    sums.add(op.id(2), 1, 1, duration);
  }
  TACHO_TRY(scan.status());
  return op.status();
}

}  // namespace

Result<RpdTop> rpd_ktop(std::shared_ptr<const Database> file) {
  const Database& database = *file;
  TACHO_ASSIGN(const sqlite::StoredTable* const calls, database.required("rocpd_api"));
  TACHO_ASSIGN(const sqlite::StoredTable* const strings, database.required("rocpd_string"));
  RpdTop top;
  const std::shared_ptr<NamedSums> sums = sums_of_strings(file, *strings);
  if (const sqlite::StoredTable* const launches = database.table("rocpd_kernelapi")) {
    NamedScan api(database, *calls, {"start", "end"});
    NamedScan scan(database, *launches, {"api_ptr_id", "kernelName_id"});
    while (scan.next()) {
      // Calls are usually launched in the order of their ids, so a short walk costs less than a search.
      if (!api.seek(scan.id(0))) continue;
      int64_t duration = 0;
      if (__builtin_sub_overflow(api.number(1), api.number(0), &duration)) continue;
      add_saturating(top.total, duration);
      sums->add(scan.id(1), 1, 1, duration);
    }
    TACHO_TRY(scan.status());
    TACHO_TRY(api.status());
  } else if (const sqlite::StoredTable* const kernels = database.table("rocpd_kernelop")) {
    TACHO_TRY(add_kernels_of_schema_1(database, *kernels, *sums, top));
  }
  TACHO_TRY(sums->finish(NamedSums::Order::kRpd));
  top.rows = sums;
  return top;
}

namespace {

struct Interval {
  int64_t start, end;
  int64_t sort_key() const { return start; }
};

}  // namespace

Result<RpdBusy> rpd_busy(const Database& database, bool as_view) {
  TACHO_TRY(format::rpd::check(database));
  TACHO_ASSIGN(const sqlite::StoredTable* const ops, database.required("rocpd_op"));
  // Unites intervals per GPU in one pass. Operations come almost in order, so it is enough to sort some ten thousand at
  // a time and hold back the newer half. If one comes later than that, sorts all of them instead.
  constexpr size_t kTogether = 1 << 17;
  struct Gpu {
    RpdBusy::Row row;
    std::vector<Interval> waiting;
    int64_t until = INT64_MIN;  // end of the time counted so far
    int64_t seen = INT64_MIN;   // start of the last operation counted
  };
  std::map<int64_t, Gpu> gpus;
  std::vector<Interval> spare;
  RpdBusy busy;
  ZeroTimes zeros(database);
  bool any = false, late = false;
  const auto count = [&](Gpu& gpu, size_t most) {
    if (!std::is_sorted(gpu.waiting.begin(), gpu.waiting.end(),
                        [](const Interval& a, const Interval& b) { return a.start < b.start; }))
      radix_sort(gpu.waiting, spare);
    const size_t taken = std::min(most, gpu.waiting.size());
    if (taken > 0 && gpu.waiting[0].start < gpu.seen) late = true;
    for (size_t i = 0; i < taken; ++i) {
      const Interval& one = gpu.waiting[i];
      add_saturating(gpu.row.busy, std::max<int64_t>(0, one.end - std::max(one.start, gpu.until)));
      gpu.until = std::max(gpu.until, one.end);
    }
    if (taken > 0) gpu.seen = gpu.waiting[taken - 1].start;
    gpu.waiting.erase(gpu.waiting.begin(), gpu.waiting.begin() + static_cast<ptrdiff_t>(taken));
  };
  {
    NamedScan scan(database, *ops, {"gpuId", "start", "end"});
    Gpu* gpu = nullptr;
    int64_t last_gpu = kUnknown;
    while (scan.next()) {
      if (!as_view && (!usable(scan, 1, 2) || !scan.is_number_at(0))) {
        ++busy.unusable;
        continue;
      }
      const int64_t id = scan.number(0), start = scan.number(1), end = scan.number(2);
      if (id != last_gpu || gpu == nullptr) {
        if (gpus.size() > format::rpd::kMostGpus)
          return fail("{}: operations on more than {} GPUs: damaged", database.file().path(), format::rpd::kMostGpus);
        gpu = &gpus[id];
        gpu->row.gpu = last_gpu = id;
      }
      int64_t duration = 0;
      if (__builtin_sub_overflow(end, start, &duration)) continue;
      TACHO_ASSIGN(const bool unmeasured, zeros.unmeasured(start, end));
      if (!as_view && (unmeasured || event::duration_between(start, end) == kUnknown)) {
        ++(unmeasured ? busy.unmeasured : busy.disordered);
        continue;
      }
      if (__builtin_add_overflow(gpu->row.sum, duration, &gpu->row.sum))
        return fail("{}: durations that add up to more than 292 years: damaged times", database.file().path());
      busy.first = any ? std::min(busy.first, start) : start;
      busy.last = any ? std::max(busy.last, end) : end;
      any = true;
      if (duration <= 0) continue;
      gpu->waiting.push_back({start, end});
      const size_t together = gpus.size() > 64 ? 2048 : kTogether;
      if (gpu->waiting.size() >= together) count(*gpu, together / 2);
    }
    TACHO_TRY(scan.status());
  }
  for (auto& [id, gpu] : gpus) count(gpu, gpu.waiting.size());
  if (late) {
    struct Op {
      int64_t gpu, start, end;
      bool operator<(const Op& other) const { return gpu != other.gpu ? gpu < other.gpu : start < other.start; }
    };
    SortedFile<Op> sorted(24u << 20);
    NamedScan scan(database, *ops, {"gpuId", "start", "end"});
    while (scan.next()) {
      const int64_t start = scan.number(1), end = scan.number(2);
      if (!as_view && (!usable(scan, 1, 2) || !scan.is_number_at(0))) continue;
      TACHO_ASSIGN(const bool unmeasured, zeros.unmeasured(start, end));
      if (!as_view && unmeasured) continue;
      if (end > start) sorted.add({scan.number(0), start, end});
    }
    TACHO_TRY(scan.status());
    TACHO_TRY(sorted.finish());
    for (auto& [id, gpu] : gpus) gpu.row.busy = 0;
    Op op;
    int64_t current = kUnknown, until = INT64_MIN;
    while (sorted.next(op)) {
      if (op.gpu != current) until = INT64_MIN;
      current = op.gpu;
      if (op.end <= until) continue;
      add_saturating(gpus[op.gpu].row.busy, op.end - std::max(op.start, until));
      until = op.end;
    }
  }
  for (const auto& [id, gpu] : gpus) busy.rows.push_back(gpu.row);
  return busy;
}

namespace {

// How a column of the views api and op is made.
struct ViewColumn {
  enum Kind : uint8_t {
    kKey,  // the row id, where the file stores it so
    kNumber,
    kFew,   // a number that few values occur of
    kName,  // the text with this id; few
    kLong,  // the text with this id; every row has its own
  };
  const char* name;
  const char* stored;
  Kind kind;
  bool schema3 = false;  // schema 2 lacks it
};
constexpr ViewColumn kApiView[] = {
    {"id", "id", ViewColumn::kKey},
    {"pid", "pid", ViewColumn::kFew},
    {"tid", "tid", ViewColumn::kFew},
    {"start", "start", ViewColumn::kNumber},
    {"end", "end", ViewColumn::kNumber},
    {"domain", "domain_id", ViewColumn::kName, true},
    {"category", "category_id", ViewColumn::kName, true},
    {"apiName", "apiName_id", ViewColumn::kName},
    {"args", "args_id", ViewColumn::kLong},
};
constexpr ViewColumn kOpView[] = {
    {"id", "id", ViewColumn::kKey},
    {"gpuId", "gpuId", ViewColumn::kFew},
    {"queueId", "queueId", ViewColumn::kFew},
    {"sequenceId", "sequenceId", ViewColumn::kFew},
    {"start", "start", ViewColumn::kNumber},
    {"end", "end", ViewColumn::kNumber},
    {"description", "description_id", ViewColumn::kName},
    {"opType", "opType_id", ViewColumn::kName},
};

// The texts of an .rpd file: names, and arguments, which schema 3 has in a table of their own.
struct FileTexts {
  std::shared_ptr<Texts> names, arguments;

  // Names are few, so their texts are cached; arguments are not.
  TextOf name() const {
    const auto known = std::make_shared<tsl::robin_map<int64_t, std::unique_ptr<std::string>>>();
    return [texts = names, known](int64_t code, std::string& scratch) -> std::string_view {
      constexpr size_t kMost = 1 << 17;
      if (const auto found = known->find(code); found != known->end()) return *found->second;
      if (known->size() >= kMost) {
        scratch = texts->find(code);
        return scratch;
      }
      return *known->emplace(code, std::make_unique<std::string>(texts->find(code))).first->second;
    };
  }
  TextOf argument() const {
    return [texts = arguments](int64_t code, std::string& scratch) -> std::string_view {
      scratch = texts->find(code);
      return scratch;
    };
  }
  // Whether the id in `column` has a text: the views join, so they lack rows without one.
  static PartColumn exists(int16_t column, const std::shared_ptr<Texts>& of) {
    return {{column}, [of, last = kUnknown, known = false](const int64_t* id) mutable -> int64_t {
              if (*id != last) known = *id != kUnknown && of->exists(*id);
              last = *id;
              return known;
            }};
  }
};

// A view over the table `place` of the store.
Result<Relation> view(const char* name, std::span<const ViewColumn> columns, int place,
                      const sqlite::StoredTable& table, const FileTexts& texts, bool schema3,
                      const sqlite::File& file) {
  Relation relation;
  relation.name = name;
  Part part;
  part.table = place;
  for (const ViewColumn& column : columns) {
    if (column.schema3 && !schema3) continue;
    const int stored = table.column(column.stored);
    if (stored < 0 || stored >= sqlite::TableScan::kMaxColumns)
      return fail("{}: a column of rocpd_{} is missing: not an .rpd file that tacho knows", file.path(), name);
    const bool is_name = column.kind == ViewColumn::kName, is_long = column.kind == ViewColumn::kLong;
    relation.columns.push_back({.name = column.name,
                                .type = is_name || is_long ? ValueType::kText : ValueType::kInteger,
                                .text = is_name   ? texts.name()
                                        : is_long ? texts.argument()
                                                  : TextOf{},
                                .few = is_name || column.kind == ViewColumn::kFew,
                                .key = column.kind == ViewColumn::kKey && table.rowid_column == stored,
                                .looked_up = is_long});
    const auto at = static_cast<int16_t>(stored);
    part.columns.push_back({{at}});
    if (is_name || is_long) part.keep.push_back(FileTexts::exists(at, is_long ? texts.arguments : texts.names));
  }
  relation.parts.push_back(std::move(part));
  return relation;
}

// A table as stored, for sums over it and for finding rows by id; of the table of names the texts as well.
Relation table_as_stored(int place, const sqlite::StoredTable& table, bool holds_names, const FileTexts& texts) {
  static constexpr std::string_view kTexts[] = {
      "completionSignal", "stream", "kernelArgAddress", "aquireFence", "releaseFence", "width", "height", "dst", "src"};
  Relation relation;
  relation.name = table.name;
  Part rows;
  rows.table = place;
  int16_t at = -1;
  for (const std::string& name : table.columns) {
    if (++at == sqlite::TableScan::kMaxColumns) break;
    if (std::find(std::begin(kTexts), std::end(kTexts), name) != std::end(kTexts)) continue;
    const bool is_text = holds_names && name == "string";
    if (is_text && table.rowid_column < 0) continue;
    relation.columns.push_back({.name = name,
                                .type = is_text ? ValueType::kText : ValueType::kInteger,
                                .text = is_text ? texts.name() : TextOf{},
                                .key = !is_text && at == table.rowid_column});
    rows.columns.push_back({{is_text ? static_cast<int16_t>(table.rowid_column) : at}});
  }
  relation.parts.push_back(std::move(rows));
  return relation;
}

// Upstream's sums as results.
void add_sums(const std::shared_ptr<const Database>& database, bool schema3, Dialect& dialect) {
  using C = QueryTable::Column;
  const auto top_columns = [](bool of_schema3) {
    return std::vector<C>{C{"Name", ValueType::kText}, C{"TotalCalls", ValueType::kInteger},
                          C{of_schema3 ? "TotalDuration_us" : "TotalDuration", ValueType::kInteger},
                          C{of_schema3 ? "Ave_us" : "Ave", of_schema3 ? ValueType::kReal : ValueType::kInteger},
                          C{"Percentage", ValueType::kReal}};
  };
  const auto shape = schema3 ? TopRows::Shape::kRpd3 : TopRows::Shape::kRpd2;
  dialect.results.push_back(
      {"top", top_columns(schema3), {}, [database, shape]() -> Result<std::shared_ptr<const ResultRows>> {
         TACHO_ASSIGN(const RpdTop top, rpd_top(database, true));
         return std::make_shared<const TopRows>(top.rows, top.total, shape);
       }});
  dialect.results.push_back({"ktop", top_columns(false), {}, [database]() -> Result<std::shared_ptr<const ResultRows>> {
                               TACHO_ASSIGN(const RpdTop top, rpd_ktop(database));
                               return std::make_shared<const TopRows>(top.rows, top.total, TopRows::Shape::kRpd2);
                             }});
  dialect.results.push_back(
      {"busy",
       {C{"gpuId", ValueType::kInteger}, C{"GpuTime", ValueType::kInteger}, C{"WallTime", ValueType::kInteger},
        C{"Busy", ValueType::kReal}},
       [database]() -> Result<std::vector<std::vector<report::Cell>>> {
         TACHO_ASSIGN(const RpdBusy busy, rpd_busy(*database, true));
         std::vector<std::vector<report::Cell>> rows;
         const int64_t wall = busy.last - busy.first;
         for (const RpdBusy::Row& row : busy.rows)
           rows.push_back(
               {row.gpu, row.sum, wall,
                wall != 0 ? report::Cell(static_cast<double>(row.sum) / static_cast<double>(wall)) : report::Cell()});
         return rows;
       }});
}

// Whether SQLite itself can answer upstream's view over the file's tables, and nothing here does it faster.
bool is_sql_view(const Database& database, std::string_view name) {
  const auto lacks = [&](const char* table) { return database.table(table) == nullptr; };
  if (name == "stackframe") return !lacks("rocpd_stackframe");
  if (name == "kernel") return !lacks("rocpd_kernelapi");
  if (name == "copy" || name == "copyop") return !lacks("rocpd_copyapi");
  return name != "api" && name != "op" && name != "top" && name != "ktop" && name != "busy";
}

}  // namespace

Result<Dialect> rpd_file_dialect(std::shared_ptr<const Database> database, int version) {
  TACHO_ASSIGN(const sqlite::StoredTable* const calls, database->required("rocpd_api"));
  TACHO_ASSIGN(const sqlite::StoredTable* const ops, database->required("rocpd_op"));
  TACHO_ASSIGN(const sqlite::StoredTable* const strings, database->required("rocpd_string"));
  const sqlite::StoredTable* const ustrings = database->table("rocpd_ustring");
  const bool schema3 =
      version >= 3 && ustrings != nullptr && calls->column("domain_id") >= 0 && calls->column("category_id") >= 0;
  std::vector<const sqlite::StoredTable*> tables = {calls, ops, strings};
  for (const char* const name : {"rocpd_api_ops", "rocpd_kernelapi", "rocpd_copyapi"})
    if (const sqlite::StoredTable* const table = database->table(name)) tables.push_back(table);
  const std::shared_ptr<Store> store = database_store(database, tables);
  const auto names = std::make_shared<Texts>(database, *strings);
  const FileTexts texts{names, schema3 ? std::make_shared<Texts>(database, *ustrings) : names};
  Dialect dialect;
  dialect.name = "rpd";
  TACHO_ASSIGN(Relation api, view("api", kApiView, 0, *calls, texts, schema3, database->file()));
  TACHO_ASSIGN(Relation op, view("op", kOpView, 1, *ops, texts, schema3, database->file()));
  dialect.relations.emplace_back(store, std::move(api));
  dialect.relations.emplace_back(store, std::move(op));
  int place = 0;
  for (const sqlite::StoredTable* const table : tables)
    dialect.own_tables.emplace_back(store, table_as_stored(place++, *table, table == strings, texts));
  add_sums(database, schema3, dialect);
  for (const format::rpd::RpdView& definition : format::rpd::views(schema3 ? 3 : 2))
    if (is_sql_view(*database, definition.name))
      dialect.views.push_back({std::string(definition.name), std::string(definition.select)});
  return dialect;
}

Result<Dialect> rpd_plain_dialect(std::shared_ptr<const Database> database, int version) {
  TACHO_ASSIGN(Dialect dialect, rpd_file_dialect(database, version));
  const bool newer = std::any_of(dialect.relations.begin(), dialect.relations.end(), [](const auto& one) {
    return std::any_of(one.second.columns.begin(), one.second.columns.end(),
                       [](const ColumnInfo& column) { return column.name == "domain"; });
  });
  dialect.relations.clear();
  for (const format::rpd::RpdView& view : format::rpd::views(newer ? 3 : 2))
    if (view.name == "api" || view.name == "op")
      dialect.views.push_back({std::string(view.name), std::string(view.select)});
  return dialect;
}

}  // namespace tacho::query
