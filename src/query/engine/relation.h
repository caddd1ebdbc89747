// Relations: what SQL sees of a trace. A relation is a list of columns, computed on the fly from the columns
// of one or more trace tables, chunk by chunk, without a copy. A Scan walks over a relation with constraints
// pushed into it: it skips chunks by their time span, ids and dictionary entries, and decodes only the
// columns that are asked for.
#pragma once

#include <tsl/robin_map.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "event/schema.h"
#include "trace/trace.h"

namespace tacho::query {

using Values = std::shared_ptr<const std::vector<int64_t>>;

struct ChunkInfo {
  uint32_t rows = 0;
  int64_t first_row = 0;  // number of its first row within the table
  bool timed = false;     // min_start and max_start are known
  int64_t min_start = 0, max_start = 0;
};

/// Where rows come from: tables in chunks of columns. Table numbers are the store's own.
class Store {
 public:
  virtual ~Store() = default;
  virtual size_t chunks(int table) const = 0;
  virtual ChunkInfo chunk(int table, size_t chunk) const = 0;
  virtual int64_t rows(int table) const = 0;
  /// One column of a chunk, kUnknown for NULL. The store keeps the most recently used ones.
  Result<Values> column(int table, size_t chunk, int column);
  /// Decodes the columns that column() will be asked for together, where that is cheaper.
  Status prefetch(int table, size_t chunk, std::span<const int16_t> columns);
  /// Distinct values that `column` has in a chunk, without decoding it; false = not known.
  virtual bool entries(int table, size_t chunk, int column, std::vector<int64_t>& values) const = 0;
  /// Number of the table's row with this id; -1 when there is none. By default ids are the rows' numbers.
  virtual Result<int64_t> row_of(int table, int64_t id);
  /// Rows in order of start; nullptr = the store cannot.
  virtual std::unique_ptr<trace::TimeCursor> by_time(int table, std::span<const int> columns, int64_t from,
                                                     int64_t to) const = 0;
  virtual const std::string& name() const = 0;
  /// Whether a column held something else than whole numbers and NULL where only those are expected: a real
  /// is cut then, a text reads as NULL, and only SQLite answers exactly. Known of the columns decoded so far.
  bool irregular() const { return irregular_; }
  /// Columns decoded so far. Tests of push-down look at it.
  uint64_t decoded() const { return decoded_; }

 protected:
  virtual Status decode(int table, size_t chunk, int column, std::vector<int64_t>& values) = 0;
  /// Several columns at once; false = one by one is as good.
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

/// The tables of a trace: number = event::Table. Dimensions lack row 0 ("none").
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

/// Makes a column's value out of up to four values of a stored row. kUnknown is NULL; reals are bit patterns;
/// texts are codes that the column's text function turns into text.
using Derive = std::function<int64_t(const int64_t* base)>;
/// Text of a code; may use `scratch`.
using TextOf = std::function<std::string_view(int64_t code, std::string& scratch)>;

/// In PartColumn::base: the row's number within its table (ChunkInfo::first_row and on).
inline constexpr int16_t kRowNumber = -1;
inline constexpr int16_t kNoBase = -2;

struct PartColumn {
  std::array<int16_t, 4> base = {kNoBase, kNoBase, kNoBase, kNoBase};  // columns of the trace table
  Derive derive;                                                       // empty: the value of base[0] as it is
};

/// One table's share of a relation.
struct Part {
  int table = 0;
  std::vector<PartColumn> columns;  // as the relation's
  std::vector<PartColumn> keep;     // rows for which one of these is 0 are not there
  int64_t first_id = 0;             // of the relation's row ids
};

struct ColumnInfo {
  std::string name;
  ValueType type = ValueType::kInteger;
  TextOf text;             // of text columns
  bool few = false;        // depends on the dimension or track alone: rows can be grouped by it
  bool time = false;       // ascends with the rows' start: TimeCursor's order, zone maps apply
  bool id = false;         // the row id: unique, looked up directly
  bool key = false;        // unique too, found by Store::row_of()
  bool looked_up = false;  // its texts are looked up row by row: no engine is faster at that than SQLite
};

struct Relation {
  std::string name;
  std::vector<ColumnInfo> columns;
  std::vector<Part> parts;
  /// Trace time to the relation's times, ascending; empty: the same.
  std::function<int64_t(int64_t)> clock;

  int column(std::string_view column_name) const;
  int64_t rows(const Store& store) const;  // not counting `keep`
};

enum class Comparison : uint8_t {
  kEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kLike,
  kGlob,
  kNotEqual
};

struct Constraint {
  int column = 0;
  Comparison comparison = Comparison::kEqual;
  ValueType type = ValueType::kInteger;  // of the value compared with
  int64_t integer = 0;
  double real = 0;
  std::string text;
  bool never = false;  // compared with NULL: nothing matches
};

/// Decides whether values of one column satisfy a constraint; texts are judged once per code.
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
  std::vector<int> used;  // columns that will be asked for
  bool by_time = false;   // ascending by the time column
  std::vector<OrderTerm>
      group_by;  // `few` columns: rows with equal values come together, groups in this order
};

/// Goes over the rows of a relation.
class Scan {
 public:
  Scan(const Relation& relation, Store& store, ScanPlan plan);
  ~Scan();

  /// Moves to the next row; false at the end and on errors (status()).
  bool next() {
    if (++position_ < selection_.size()) return true;
    return next_batch();
  }
  /// For batch-wise work: rows left in the current batch are those at place() ... ; batches are entered by
  /// next_batch().
  bool next_batch();
  std::span<const uint32_t> selection() const { return selection_; }

  /// Makes the row with this number of a part's table the only one of the current batch; false when it is not
  /// there.
  bool jump(size_t part, int64_t row_number);
  /// As jump(), by the relation's row id.
  bool jump_to_id(int64_t id);
  /// Number of a row of the current batch within its part's table.
  int64_t row_number(uint32_t row) const { return first_row_ + row; }

  /// Values of a column for all rows of the current batch's selection.
  void gather(int column, std::vector<int64_t>& values);

  /// The current row's value of a column (see Derive).
  int64_t value(int column) { return value_at(column, selection_[position_]); }
  int64_t value_at(int column, uint32_t row);
  std::string_view text(int column, int64_t code, std::string& scratch) const {
    return relation_.columns[static_cast<size_t>(column)].text(code, scratch);
  }
  /// The relation's row id of the current row. May fail: see status().
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
  std::vector<std::vector<int64_t>> own_;  // columns of a batch that was put together here
  std::vector<uint32_t> selection_;
  size_t position_ = 0;
  std::unique_ptr<Grouped> grouped_;
  std::unique_ptr<Timed> timed_;
  std::vector<std::vector<int16_t>> wanted_;  // by part: stored columns that the plan needs
};

/// Finds rows of a relation by id, mostly ascending ones, and gives their values: the other side of a join.
class RowReader {
 public:
  RowReader(const Relation& relation, Store& store, std::vector<int> columns);
  /// Moves to the row with this id; false when there is none, or it is not in the relation (see Part::keep),
  /// or on errors.
  bool seek(int64_t id);
  /// Value of the column that was given at place `which`.
  int64_t value(size_t which);
  const Status& status() const { return status_; }

 private:
  // A chunk whose columns are at hand. Some of them: ids of several threads or queues take turns.
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
  // The value made last of one stored value, for each column: neighbours are often equal.
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
