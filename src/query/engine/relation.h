// Relations: a trace as SQL sees it. A relation is a list of columns, computed on the fly from columns of one or more
// trace tables, chunk by chunk, without a copy. A Scan walks over a relation and applies constraints itself: it skips
// chunks by time span, ids and dictionary entries, and decodes only the columns that the statement asks for.
#pragma once

#include <tsl/robin_map.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "event/schema.h"
#include "trace/trace.h"

namespace tacho::query {

using Values = std::shared_ptr<const std::vector<int64_t>>;

struct ChunkInfo {
  uint32_t rows = 0;
  int64_t first_row = 0;  // number of its first row within the table
  bool timed = false;     // min_start and max_start are valid
  int64_t min_start = 0, max_start = 0;
};

/// The source of rows: tables in chunks of columns. Each store numbers its tables itself.
class Store {
 public:
  virtual ~Store() = default;
  virtual size_t chunks(int table) const = 0;
  virtual ChunkInfo chunk(int table, size_t chunk) const = 0;
  virtual int64_t rows(int table) const = 0;
  /// One column of a chunk; NULL is kUnknown. The store caches the most recently used columns.
  Result<Values> column(int table, size_t chunk, int column);
  /// Decodes columns that column() will be asked for, together, if the store can do that at less cost.
  Status prefetch(int table, size_t chunk, std::span<const int16_t> columns);
  /// Distinct values of `column` in a chunk, without decoding it; false = unknown.
  virtual bool entries(int table, size_t chunk, int column, std::vector<int64_t>& values) const = 0;
  /// Number of the table's row with this id; -1 if there is none. By default ids are row numbers.
  virtual Result<int64_t> row_of(int table, int64_t id);
  /// Rows in order of their start; nullptr = the store cannot do that.
  virtual std::unique_ptr<trace::TimeCursor> by_time(int table, std::span<const int> columns, int64_t from,
                                                     int64_t to) const = 0;
  virtual const std::string& name() const = 0;
  /// True if a column held anything but whole numbers and NULL where only those are expected. A real is then cut and a
  /// text reads as NULL, so only SQLite answers exactly. Covers the columns decoded so far.
  bool irregular() const { return irregular_; }
  /// Number of columns decoded so far; tests of push-down check it.
  uint64_t decoded() const { return decoded_; }

 protected:
  virtual Status decode(int table, size_t chunk, int column, std::vector<int64_t>& values) = 0;
  /// Decodes several columns at once; false = decoding one by one is as good.
  virtual Result<bool> decode_together(int table, size_t chunk, std::span<const int16_t> columns,
                                       std::span<std::vector<int64_t>> values);
  bool irregular_ = false;

 private:
  void keep(uint64_t key, Values values);
  static uint64_t key_of(int table, size_t chunk, int column) {
    return static_cast<uint64_t>(table) << 56 | static_cast<uint64_t>(column) << 48 | chunk;
  }
  static constexpr size_t kMost = 96;  // columns of 64 Ki rows: 48 MiB
  struct Entry {
    uint64_t key;
    Values values;
  };
  std::list<Entry> entries_;  // most recently used first
  tsl::robin_map<uint64_t, std::list<Entry>::iterator> index_;
  uint64_t decoded_ = 0;
};

/// The tables of a trace, numbered as in event::Table. Dimensions lack row 0 ("none").
class TraceStore : public Store {
 public:
  explicit TraceStore(std::shared_ptr<const trace::Trace> trace);
  const trace::Trace& trace() const { return *trace_; }
  size_t chunks(int table) const override;
  ChunkInfo chunk(int table, size_t chunk) const override;
  int64_t rows(int table) const override;
  bool entries(int table, size_t chunk, int column, std::vector<int64_t>& values) const override;
  std::unique_ptr<trace::TimeCursor> by_time(int table, std::span<const int> columns, int64_t from,
                                             int64_t to) const override;
  const std::string& name() const override { return trace_->path(); }

 protected:
  Status decode(int table, size_t chunk, int column, std::vector<int64_t>& values) override;

 private:
  std::shared_ptr<const trace::Trace> trace_;
  std::array<std::vector<int64_t>, event::kFactTables> first_rows_;
};

enum class ValueType : uint8_t { kInteger, kReal, kText };

/// Of how many values of a stored row a column may be made.
inline constexpr size_t kMostBases = 5;
/// Computes a column's value from up to kMostBases values of a stored row. NULL is kUnknown, reals are bit patterns,
/// and texts are codes that the column's text function turns into text.
using Derive = std::function<int64_t(const int64_t* base)>;
/// The text of a code; the result may point into `scratch`.
using TextOf = std::function<std::string_view(int64_t code, std::string& scratch)>;

/// In PartColumn::base: the row's number within its table, counted from ChunkInfo::first_row.
inline constexpr int16_t kRowNumber = -1;
inline constexpr int16_t kNoBase = -2;

struct PartColumn {
  /// Contract: at most kMostBases columns.
  PartColumn(std::initializer_list<int16_t> from = {}, Derive how = {}) : derive(std::move(how)) {
    base.fill(kNoBase);
    std::copy(from.begin(), from.end(), base.begin());
  }
  std::array<int16_t, kMostBases> base;  // columns of the trace table, kNoBase behind the last
  Derive derive;                         // empty: base[0]'s value unchanged
};

/// One table's share of a relation.
struct Part {
  int table = 0;
  std::vector<PartColumn> columns;  // in the relation's order
  std::vector<PartColumn> keep;     // the relation lacks rows for which one of these is 0
  int64_t first_id = 0;             // of the relation's row ids
};

struct ColumnInfo {
  std::string name;
  ValueType type = ValueType::kInteger;
  TextOf text;             // of text columns
  bool few = false;        // depends only on the dimension or track: rows can be grouped by it
  bool time = false;       // ascends with the rows' start: follows TimeCursor's order; zone maps apply
  bool id = false;         // the row id: unique, found directly
  bool key = false;        // also unique, found by Store::row_of()
  bool looked_up = false;  // each row needs a lookup of its text: no engine does that faster than SQLite
};

struct Relation {
  std::string name;
  std::vector<ColumnInfo> columns;
  std::vector<Part> parts;
  /// Converts trace time to the relation's time, ascending; empty = they are the same.
  std::function<int64_t(int64_t)> clock;

  int column(std::string_view column_name) const;
  int64_t rows(const Store& store) const;  // ignores `keep`
};

enum class Comparison : uint8_t { kEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kLike, kGlob, kNotEqual };

struct Constraint {
  int column = 0;
  Comparison comparison = Comparison::kEqual;
  ValueType type = ValueType::kInteger;  // of the value compared with
  int64_t integer = 0;
  double real = 0;
  std::string text;
  bool never = false;  // compared with NULL: no row matches
};

/// Judges values of a column by a constraint, texts once per code. True for mixed types: SQLite decides.
class Judge {
 public:
  Judge(const Constraint& constraint, const ColumnInfo& column) : constraint_(constraint), column_(column) {}
  bool operator()(int64_t value);

 private:
  bool judge(std::string_view text) const;
  bool holds(int order) const;
  static constexpr size_t kMostKnown = 1 << 18;

  const Constraint& constraint_;
  const ColumnInfo& column_;
  tsl::robin_map<int64_t, bool> judged_;
  std::string scratch_;
};

/// A row order that a scan can deliver without sorting rows.
struct OrderTerm {
  int column = 0;
  bool descending = false;
};

struct ScanPlan {
  std::vector<Constraint> constraints;
  std::vector<int> used;            // columns that the caller will ask for
  bool by_time = false;             // ascending by the time column
  std::vector<OrderTerm> group_by;  // `few` columns: rows with equal values come together, groups in this order
};

/// Walks over the rows of a relation. Relation and store must outlive it.
class Scan {
 public:
  Scan(const Relation& relation, Store& store, ScanPlan plan);
  ~Scan();

  /// Moves to the next row; false at the end and on errors: see status().
  bool next() {
    if (++position_ < selection_.size()) return true;
    return next_batch();
  }
  /// For work in batches: next_batch() moves to the next batch with rows left; selection() lists those rows. False at
  /// the end and on errors.
  bool next_batch();
  std::span<const uint32_t> selection() const { return selection_; }

  /// Makes the row with this number of a part's table the only one in the current batch; false if the relation lacks
  /// it. Ignores the plan's constraints.
  bool jump(size_t part, int64_t row_number);
  /// Like jump(), by the relation's row id.
  bool jump_to_id(int64_t id);
  /// Number of a row of the current batch within its part's table.
  int64_t row_number(uint32_t row) const { return first_row_ + row; }

  /// Values of a column for all selected rows of the current batch.
  void gather(int column, std::vector<int64_t>& values);

  /// The current row's value of a column (see Derive).
  int64_t value(int column) { return value_at(column, selection_[position_]); }
  int64_t value_at(int column, uint32_t row);
  std::string_view text(int column, int64_t code, std::string& scratch) const {
    return relation_.columns[static_cast<size_t>(column)].text(code, scratch);
  }
  /// The relation's row id of the current row. Fails for scans in order of time: see status().
  int64_t row_id();
  const Status& status() const { return status_; }
  size_t part() const { return part_; }
  const Relation& relation() const { return relation_; }

 private:
  struct Grouped;
  struct Timed;
  void enter(size_t part, size_t chunk);
  bool chunk_may_match(size_t part, size_t chunk);
  const int64_t* base_column(int16_t column);
  int64_t base_value(int16_t column, uint32_t row);
  void select();
  bool kept(uint32_t row);
  bool fail_with_status(Status status);
  bool next_natural();
  Status group(bool numbered);
  Status number_groups();
  bool next_grouped();
  bool next_timed();

  const Relation& relation_;
  Store& store_;
  ScanPlan plan_;
  std::vector<Judge> judges_;
  Status status_;
  bool done_ = false, entered_ = false;

  size_t part_ = 0, chunk_ = 0;
  size_t next_part_ = 0, next_chunk_ = 0;
  uint32_t batch_rows_ = 0;
  int64_t first_row_ = 0;  // number of the batch's first row within its table
  static constexpr size_t kMaxBases = 48;
  std::array<Values, kMaxBases> held_;
  std::array<const int64_t*, kMaxBases> bases_{};
  std::vector<std::vector<int64_t>> own_;  // columns of a batch that the scan assembled itself
  std::vector<uint32_t> selection_;
  size_t position_ = 0;
  std::unique_ptr<Grouped> grouped_;
  std::unique_ptr<Timed> timed_;
  std::vector<std::vector<int16_t>> wanted_;  // by part: stored columns that the plan needs
};

/// Finds rows of a relation by id, mostly in ascending order, and gives their values: one side of a join.
class RowReader {
 public:
  RowReader(const Relation& relation, Store& store, std::vector<int> columns);
  /// Moves to the row with this id; false if there is none or the relation lacks it (see Part::keep), and on errors.
  bool seek(int64_t id);
  /// Value of the column at index `which` of the list given to the constructor.
  int64_t value(size_t which);
  const Status& status() const { return status_; }

 private:
  // A chunk with its columns at hand. There are several, because ids of several threads or queues take turns.
  struct Place {
    size_t part = SIZE_MAX, chunk = 0;
    int64_t first_row = 0;
    uint32_t rows = 0;
    std::vector<Values> held;
    std::vector<const int64_t*> bases;
  };
  static constexpr size_t kPlaces = 8;
  bool enter(size_t part, int64_t row_number);
  const int64_t* base(int16_t column);
  int64_t derived(const PartColumn& source);
  // The last value derived from a stored value, per column: neighbours are often equal.
  struct Memo {
    size_t part = SIZE_MAX;
    int64_t from = 0, made = 0;
  };

  const Relation& relation_;
  Store& store_;
  std::vector<int> columns_;
  std::vector<std::vector<int16_t>> wanted_;  // by part
  std::vector<Memo> memos_;
  std::array<Place, kPlaces> places_;
  Place* at_ = nullptr;
  uint32_t row_ = 0;
  size_t last_part_ = 0;
  int64_t last_id_ = 0;
  bool have_last_ = false, found_ = false;
  Status status_;
  std::vector<int64_t> nothing_;
};

}  // namespace tacho::query
