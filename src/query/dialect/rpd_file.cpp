// Answers queries directly from .rpd files (rpd_file.h).
#include "query/dialect/rpd_file.h"

#include <tsl/robin_map.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "base/files/sorted_file.h"
#include "base/saturating.h"
#include "event/times.h"
#include "format/rpd/rpd.h"
#include "format/rpd/schema.h"
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

// True for times that an operation can have had; the caller counts what else a damaged file holds.
bool usable(const NamedScan& scan, int at_start, int at_end) {
  return event::is_time(scan.number(at_start, kUnknown)) && event::is_time(scan.number(at_end, kUnknown)) &&
         scan.is_number_at(at_start) && scan.is_number_at(at_end);
}

}  // namespace

namespace {

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
    if (!as_view && event::duration_between(start, end) == kUnknown) {
      ++top.disordered;
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
      if (!api.seek(scan.number(0))) continue;
      const int64_t duration = api.number(1) - api.number(0);
      add_saturating(top.total, duration);
      sums->add(scan.number(1), 1, 1, duration);
    }
    TACHO_TRY(scan.status());
    TACHO_TRY(api.status());
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
      if (!as_view && !usable(scan, 1, 2)) {
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
      if (!as_view && event::duration_between(start, end) == kUnknown) {
        ++busy.disordered;
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
      if (!as_view && !usable(scan, 1, 2)) continue;
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

// The file's tables as a Store: a chunk is a run of leaf pages.
class RpdStore : public Store {
 public:
  static constexpr size_t kLeaves = 400;  // of 4 KiB: about 40 thousand rows
  RpdStore(std::shared_ptr<const Database> database, std::vector<const sqlite::StoredTable*> tables)
      : database_(std::move(database)) {
    tables_.resize(tables.size());
    for (size_t i = 0; i < tables.size(); ++i) tables_[i].info = tables[i];
  }
  size_t chunks(int table) const override { return of(table).chunks.size(); }
  ChunkInfo chunk(int table, size_t chunk) const override { return of(table).chunks[chunk]; }
  int64_t rows(int table) const override { return of(table).rows; }
  bool entries(int, size_t, int, std::vector<int64_t>&) const override { return false; }
  std::unique_ptr<trace::TimeCursor> by_time(int, std::span<const int>, int64_t, int64_t) const override {
    return nullptr;
  }
  const std::string& name() const override { return database_->file().path(); }

 protected:
  Status decode(int number, size_t chunk, int column, std::vector<int64_t>& values) override {
    const Table& table = of(number);
    const bool rowid = column == table.info->rowid_column;
    sqlite::TableScan scan(database_->file(), table.info->root_page, rowid ? 0 : column + 1);
    const size_t from = chunk * kLeaves;
    scan.scan_leaves(std::span(table.leaves).subspan(from, std::min(kLeaves, table.leaves.size() - from)));
    values.clear();
    values.reserve(table.chunks[chunk].rows);
    if (rowid)
      while (scan.next()) values.push_back(scan.rowid());
    else
      while (scan.next()) values.push_back(whole(scan, column));
    return scan.status();
  }
  Result<int64_t> row_of(int number, int64_t id) override {
    Table& table = of(number);
    if (table.chunks.empty() || id < table.first_ids[0]) return -1;
    size_t chunk = table.last;
    if (id < table.first_ids[chunk] || (chunk + 1 < table.chunks.size() && id >= table.first_ids[chunk + 1]))
      chunk = static_cast<size_t>(std::upper_bound(table.first_ids.begin(), table.first_ids.end(), id) -
                                  table.first_ids.begin()) -
              1;
    const ChunkInfo& info = table.chunks[chunk];
    if (chunk != table.last || table.ids == nullptr) {
      TACHO_ASSIGN(table.ids, this->column(number, chunk, table.info->rowid_column));
      table.last = chunk;
      table.dense =
          table.ids->size() == info.rows && info.rows > 0 &&
          static_cast<uint64_t>(table.ids->back()) - static_cast<uint64_t>(table.ids->front()) + 1 == info.rows;
    }
    const std::vector<int64_t>& ids = *table.ids;
    if (table.dense) return id >= ids.front() && id <= ids.back() ? info.first_row + (id - ids.front()) : -1;
    const auto found = std::lower_bound(ids.begin(), ids.end(), id);
    return found != ids.end() && *found == id ? info.first_row + (found - ids.begin()) : -1;
  }

  Result<bool> decode_together(int number, size_t chunk, std::span<const int16_t> columns,
                               std::span<std::vector<int64_t>> values) override {
    const Table& table = of(number);
    int most = 0;
    for (size_t i = 0; i < columns.size(); ++i) {
      most = std::max(most, columns[i] + 1);
      values[i].resize(table.chunks[chunk].rows);
    }
    sqlite::TableScan scan(database_->file(), table.info->root_page, most);
    const size_t from = chunk * kLeaves;
    scan.scan_leaves(std::span(table.leaves).subspan(from, std::min(kLeaves, table.leaves.size() - from)));
    size_t row = 0;
    while (row < table.chunks[chunk].rows && scan.next()) {
      for (size_t i = 0; i < columns.size(); ++i)
        values[i][row] = columns[i] == table.info->rowid_column ? scan.rowid() : whole(scan, columns[i]);
      ++row;
    }
    TACHO_TRY(scan.status());
    return true;
  }

 private:
  // The value of a column that should hold whole numbers. The smallest one is indistinguishable from NULL.
  int64_t whole(const sqlite::TableScan& scan, int column) {
    const int64_t value = scan.integer(column, kUnknown);
    irregular_ |= scan.is_whole(column) ? value == kUnknown : !scan.is_null(column);
    return value;
  }
  struct Table {
    const sqlite::StoredTable* info = nullptr;
    std::vector<uint32_t> leaves;
    std::vector<ChunkInfo> chunks;
    std::vector<int64_t> first_ids;  // of the chunks
    int64_t rows = 0;
    bool listed = false;
    // Where the last id was found.
    size_t last = 0;
    Values ids;
    bool dense = false;  // no gaps between its ids
  };
  // Lists the leaves on first use, since that has to look at each of them.
  Table& of(int number) const {
    Table& table = tables_[static_cast<size_t>(number)];
    if (table.listed) return table;
    table.listed = true;
    sqlite::TableScan scan(database_->file(), table.info->root_page, 0);
    table.leaves = scan.leaves();
    for (size_t at = 0; at < table.leaves.size(); at += kLeaves) {
      ChunkInfo chunk;
      chunk.first_row = table.rows;
      scan.scan_leaves(std::span(table.leaves).subspan(at, 1));
      table.first_ids.push_back(scan.next() ? scan.rowid() : INT64_MIN);
      for (size_t i = at; i < std::min(table.leaves.size(), at + kLeaves); ++i)
        chunk.rows += sqlite::TableScan::rows_of_leaf(database_->file(), table.leaves[i]);
      table.rows += chunk.rows;
      table.chunks.push_back(chunk);
    }
    return table;
  }
  std::shared_ptr<const Database> database_;
  mutable std::vector<Table> tables_;
};

}  // namespace

Result<Dialect> rpd_file_dialect(std::shared_ptr<const Database> database, int version) {
  TACHO_ASSIGN(const sqlite::StoredTable* const calls, database->required("rocpd_api"));
  TACHO_ASSIGN(const sqlite::StoredTable* const ops, database->required("rocpd_op"));
  TACHO_ASSIGN(const sqlite::StoredTable* const strings, database->required("rocpd_string"));
  const sqlite::StoredTable* const ustrings = database->table("rocpd_ustring");
  const bool newer =
      version >= 3 && ustrings != nullptr && calls->column("domain_id") >= 0 && calls->column("category_id") >= 0;
  std::vector<const sqlite::StoredTable*> tables = {calls, ops, strings};
  for (const char* const name : {"rocpd_api_ops", "rocpd_kernelapi", "rocpd_copyapi"})
    if (const sqlite::StoredTable* const table = database->table(name)) tables.push_back(table);
  const auto store = std::make_shared<RpdStore>(database, tables);
  const auto texts = std::make_shared<Texts>(database, *strings);
  const auto long_texts = newer ? std::make_shared<Texts>(database, *ustrings) : texts;
  Dialect dialect;
  dialect.name = "rpd";

  // Names are few, so their texts are cached; arguments are not.
  const auto remembered = [texts] {
    const auto known = std::make_shared<tsl::robin_map<int64_t, std::unique_ptr<std::string>>>();
    return TextOf([texts, known](int64_t code, std::string& scratch) -> std::string_view {
      constexpr size_t kMost = 1 << 17;
      if (const auto found = known->find(code); found != known->end()) return *found->second;
      if (known->size() >= kMost) {
        scratch = texts->find(code);
        return scratch;
      }
      return *known->emplace(code, std::make_unique<std::string>(texts->find(code))).first->second;
    });
  };
  const auto exists = [](std::shared_ptr<Texts> of) {
    const auto known = std::make_shared<std::pair<int64_t, bool>>(kUnknown, false);
    return [of, known](int64_t id) {
      if (id == known->first) return known->second;
      *known = {id, id != kUnknown && of->exists(id)};
      return known->second;
    };
  };
  const auto place = [](const sqlite::StoredTable& table, const char* name) {
    return PartColumn{{static_cast<int16_t>(table.column(name))}};
  };
  const auto number = [](const char* name, bool few = false) {
    return ColumnInfo{.name = name, .text = {}, .few = few};
  };
  const auto text = [](const char* name, TextOf of, bool few) {
    return ColumnInfo{.name = name, .type = ValueType::kText, .text = std::move(of), .few = few};
  };

  Relation api;
  api.name = "api";
  api.columns = {number("id"), number("pid", true), number("tid", true), number("start"), number("end")};
  Part part;
  part.table = 0;
  for (const char* const name : {"id", "pid", "tid", "start", "end"}) part.columns.push_back(place(*calls, name));
  const TextOf arguments = [long_texts](int64_t code, std::string& scratch) -> std::string_view {
    scratch = long_texts->find(code);
    return scratch;
  };
  if (newer) {
    for (const char* const name : {"domain", "category"}) api.columns.push_back(text(name, remembered(), true));
    for (const char* const name : {"domain_id", "category_id"}) part.columns.push_back(place(*calls, name));
  }
  api.columns.push_back(text("apiName", remembered(), true));
  api.columns.push_back(text("args", arguments, false));
  api.columns.back().looked_up = true;
  part.columns.push_back(place(*calls, "apiName_id"));
  part.columns.push_back(place(*calls, "args_id"));
  const auto named = exists(texts), argued = exists(long_texts), in_domain = exists(texts), in_category = exists(texts);
  const auto keep = [](int16_t column, auto test) {
    return PartColumn{{column}, [test](const int64_t* base) -> int64_t { return test(base[0]); }};
  };
  const auto at = [&](const char* name) { return static_cast<int16_t>(calls->column(name)); };
  part.keep = {keep(at("apiName_id"), named), keep(at("args_id"), argued)};
  if (newer) {
    part.keep.push_back(keep(at("domain_id"), in_domain));
    part.keep.push_back(keep(at("category_id"), in_category));
  }
  api.columns[0].key = calls->rowid_column >= 0 && calls->rowid_column == calls->column("id");
  api.parts.push_back(std::move(part));
  dialect.relations.emplace_back(store, std::move(api));

  Relation op;
  op.name = "op";
  op.columns = {number("id"),
                number("gpuId", true),
                number("queueId", true),
                number("sequenceId", true),
                number("start"),
                number("end"),
                text("description", remembered(), true),
                text("opType", remembered(), true)};
  Part op_part;
  op_part.table = 1;
  for (const char* const name : {"id", "gpuId", "queueId", "sequenceId", "start", "end", "description_id", "opType_id"})
    op_part.columns.push_back(place(*ops, name));
  const auto described = exists(texts), typed = exists(texts);
  op_part.keep = {keep(static_cast<int16_t>(ops->column("description_id")), described),
                  keep(static_cast<int16_t>(ops->column("opType_id")), typed)};
  op.columns[0].key = ops->rowid_column >= 0 && ops->rowid_column == ops->column("id");
  op.parts.push_back(std::move(op_part));
  dialect.relations.emplace_back(store, std::move(op));
  for (const auto& [with, relation] : dialect.relations)
    for (const Part& one : relation.parts)
      for (const PartColumn& column : one.columns)
        if (column.base[0] < 0 || column.base[0] >= sqlite::TableScan::kMaxColumns)
          return fail("{}: a column of rocpd_{} is missing: not an .rpd file that tacho knows", database->file().path(),
                      relation.name);

  // The tables as stored, for sums over them and for finding rows by id.
  static constexpr std::string_view kTexts[] = {
      "completionSignal", "stream", "kernelArgAddress", "aquireFence", "releaseFence", "width", "height", "dst", "src"};
  for (size_t table = 0; table < tables.size(); ++table) {
    const sqlite::StoredTable& info = *tables[table];
    Relation own;
    own.name = info.name;
    Part rows;
    rows.table = static_cast<int>(table);
    for (size_t i = 0; i < info.columns.size() && i < static_cast<size_t>(sqlite::TableScan::kMaxColumns); ++i) {
      const std::string& name = info.columns[i];
      if (std::find(std::begin(kTexts), std::end(kTexts), name) != std::end(kTexts)) continue;
      PartColumn from{{static_cast<int16_t>(i)}};
      if (&info == strings && name == "string") {
        if (info.rowid_column < 0) continue;
        own.columns.push_back(text(name.c_str(), remembered(), false));
        from.base[0] = static_cast<int16_t>(info.rowid_column);
      } else {
        own.columns.push_back(number(name.c_str()));
        own.columns.back().key = static_cast<int>(i) == info.rowid_column;
      }
      rows.columns.push_back(std::move(from));
    }
    own.parts.push_back(std::move(rows));
    dialect.own_tables.emplace_back(store, std::move(own));
  }

  using C = ResultTable::Column;
  const auto top_columns = [](int of) {
    return std::vector<C>{C{"Name", ValueType::kText}, C{"TotalCalls", ValueType::kInteger},
                          C{of >= 3 ? "TotalDuration_us" : "TotalDuration", ValueType::kInteger},
                          C{of >= 3 ? "Ave_us" : "Ave", of >= 3 ? ValueType::kReal : ValueType::kInteger},
                          C{"Percentage", ValueType::kReal}};
  };
  const int shown = newer ? 3 : 2;
  dialect.results.push_back(
      {"top", top_columns(shown), {}, [database, shown]() -> Result<std::shared_ptr<const ResultRows>> {
         TACHO_ASSIGN(const RpdTop top, rpd_top(database, true));
         return std::make_shared<const TopRows>(top.rows, top.total,
                                                shown >= 3 ? TopRows::Shape::kRpd3 : TopRows::Shape::kRpd2);
       }});
  dialect.results.push_back({"ktop", top_columns(2), {}, [database]() -> Result<std::shared_ptr<const ResultRows>> {
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
  for (const format::rpd::ViewDefinition& view : format::rpd::views(shown)) {
    if (view.name == "api" || view.name == "op" || view.name == "top" || view.name == "ktop" || view.name == "busy")
      continue;
    if (view.name == "stackframe" && database->table("rocpd_stackframe") == nullptr) continue;
    if ((view.name == "kernel") && database->table("rocpd_kernelapi") == nullptr) continue;
    if ((view.name == "copy" || view.name == "copyop") && database->table("rocpd_copyapi") == nullptr) continue;
    dialect.views.push_back({std::string(view.name), std::string(view.select)});
  }
  return dialect;
}

Result<Dialect> rpd_plain_dialect(std::shared_ptr<const Database> database, int version) {
  TACHO_ASSIGN(Dialect dialect, rpd_file_dialect(database, version));
  const bool newer = std::any_of(dialect.relations.begin(), dialect.relations.end(), [](const auto& one) {
    return std::any_of(one.second.columns.begin(), one.second.columns.end(),
                       [](const ColumnInfo& column) { return column.name == "domain"; });
  });
  dialect.relations.clear();
  for (const format::rpd::ViewDefinition& view : format::rpd::views(newer ? 3 : 2))
    if (view.name == "api" || view.name == "op")
      dialect.views.push_back({std::string(view.name), std::string(view.select)});
  return dialect;
}

}  // namespace tacho::query
