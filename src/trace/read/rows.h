// Typed rows: reads chosen columns of a trace's tables by name. Only these columns are decoded, and the name of any
// other does not compile. Nothing outside src/trace and src/walk names a column by its position.
//
//   using D = event::column::Dispatch;
//
//   Status status;                                                      rows in order of time
//   for (const auto& d : trace::rows<D::track, D::start, D::duration>(trace, status)) sum += d.duration;
//   TACHO_TRY(status);
//
//   for (const auto& d : trace::chunks<D::start, D::dim>(trace, status))   columns in file order: the fastest way
//     for (size_t i = 0; i < d.size(); ++i) add(d.dim[i], d.start[i]);
//   TACHO_TRY(status);
//
//   trace::RowCursor<D::start, D::dim> dispatches(trace);               for merges: next(), then dispatches->dim
//
//   using F = event::column::Fact;                                      the five columns of any timed fact
//   for (const auto& f : trace::rows<F::track, F::start>(trace, table, status)) ...
//
//   const auto track = trace::row<event::row::Track>(trace, d.track);   a whole row of a dimension: track.process
//   trace::cell<column::Track::process>(trace, d.track)                 one cell of it
//   trace::text<column::Label::name>(trace, m.dim)                      the string in a cell
//
// Cells of enum columns are event::Code<E>: compare them with an enumerator, or event::from_cell(code) gives one for a
// switch. Cells of double columns are event::Double. Bad data ends a loop and sets the status.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string_view>
#include <vector>

#include "event/members.h"
#include "trace/trace.h"

namespace tacho::trace {

inline constexpr int64_t kAllFrom = std::numeric_limits<int64_t>::min(), kAllTo = std::numeric_limits<int64_t>::max();

/// The columns of one table that are read: what RowCursor and ChunkReader share.
template <auto... columns>
class ChosenColumns {
 public:
  using Row = event::RowOf<columns...>;
  /// True for columns of event::column::Fact, whose table is chosen at run time.
  static constexpr bool kAnyTable = Row::kTable == event::Table::kEnd;
  static_assert(kAnyTable || event::is_fact(Row::kTable), "rows of a dimension are read with trace::row()");

  static constexpr int kNumbers[] = {static_cast<int>(columns)...};

  static Status check(event::Table table) {
    if (!kAnyTable || event::is_timed(table)) return {};
    return fail("table {} has no rows with a track and a duration", event::table_info(table).name);
  }
};

/// A TimeCursor over chosen columns: rows of one fact table in ascending (start, file order), in bounded memory.
template <auto... columns>
class RowCursor {
  using Chosen = ChosenColumns<columns...>;

 public:
  using Row = typename Chosen::Row;

  /// Rows with from <= start < to. The trace must outlive the cursor.
  explicit RowCursor(const Trace& trace, int64_t from = kAllFrom, int64_t to = kAllTo) requires(!Chosen::kAnyTable)
      : cursor_(trace, Row::kTable, Chosen::kNumbers, from, to) {}
  /// The same of `table`, for columns of event::column::Fact. status() is an error for a table that is not timed.
  RowCursor(const Trace& trace, event::Table table, int64_t from = kAllFrom,
            int64_t to = kAllTo) requires(Chosen::kAnyTable)
      : checked_(Chosen::check(table)), cursor_(trace, table, Chosen::kNumbers, from, to) {}

  /// Moves to the next row, at first to the first one. False at the end and after an error: see status().
  bool next() {
    if (!checked_ || !cursor_.next()) return false;
    row_.assign(cursor_.row().data());
    return true;
  }
  /// The row. Valid after next() returned true, until the next call.
  const Row& operator*() const { return row_; }
  const Row* operator->() const { return &row_; }
  /// Its start, whether or not that column was chosen.
  int64_t start() const { return cursor_.start(); }
  /// The error that ended the rows: bad data, or a table without a start.
  Status status() const { return checked_ ? cursor_.status() : checked_; }

 private:
  Status checked_;
  TimeCursor cursor_;
  Row row_{};
};

/// Chosen columns of one chunk after the other: `reader->start[i]`.
template <auto... columns>
class ChunkReader {
  using Chosen = ChosenColumns<columns...>;

 public:
  struct Columns : event::CellsOf<columns>... {
    /// Its place in Trace::chunks().
    size_t number() const { return number_; }
    /// Rows of the chunk: the length of every column.
    size_t size() const { return size_; }

   private:
    friend ChunkReader;
    size_t number_ = 0, size_ = 0;
  };

  /// The trace must outlive the reader.
  explicit ChunkReader(const Trace& trace) requires(!Chosen::kAnyTable) : trace_(trace), table_(Chosen::Row::kTable) {}
  /// The same of `table`, for columns of event::column::Fact.
  ChunkReader(const Trace& trace, event::Table table) requires(Chosen::kAnyTable) : trace_(trace), table_(table) {}
  ChunkReader(const ChunkReader&) = delete;
  ChunkReader& operator=(const ChunkReader&) = delete;

  /// Decodes a chunk. The columns are valid until the next call. Errors: bad data, no such chunk, a table not timed.
  Status read(size_t chunk) {
    TACHO_TRY(Chosen::check(table_));
    size_t at = 0;
    Status status;
    (void)((status = column_of<columns>(chunk, at++)) && ...);
    TACHO_TRY(status);
    current_.number_ = chunk;
    current_.size_ = decoded_[0].size();
    return {};
  }
  /// Decodes the next chunk in file order. False at the end and after an error: see status().
  bool next() {
    if (!status_ || next_ >= trace_.chunks(table_).size()) return false;
    status_ = read(next_++);
    return status_.has_value();
  }
  const Columns& operator*() const { return current_; }
  const Columns* operator->() const { return &current_; }
  /// The error that ended next().
  Status status() const { return status_; }

 private:
  template <auto column>
  Status column_of(size_t chunk, size_t at) {
    TACHO_TRY(trace_.decode(table_, chunk, static_cast<int>(column), decoded_[at]));
    static_cast<event::CellsOf<column>&>(current_) = {
        typename event::CellsOf<column>::Cells(std::span<const int64_t>(decoded_[at]))};
    return {};
  }

  const Trace& trace_;
  event::Table table_;
  size_t next_ = 0;
  Status status_;
  std::vector<int64_t> decoded_[sizeof...(columns)];
  Columns current_;
};

/// What a loop over rows or chunks runs through; see rows() and chunks().
template <typename Cursor>
class CursorRange {
 public:
  template <typename... Arguments>
  explicit CursorRange(Status& status, const Arguments&... arguments) : status_(status), cursor_(arguments...) {}

  class Iterator {
   public:
    explicit Iterator(CursorRange& range) : range_(range) {}
    decltype(auto) operator*() const { return *range_.cursor_; }
    Iterator& operator++() {
      range_.step();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return !range_.more_; }

   private:
    CursorRange& range_;
  };
  Iterator begin() {
    step();
    return Iterator(*this);
  }
  std::default_sentinel_t end() const { return {}; }

 private:
  void step() {
    more_ = cursor_.next();
    if (!more_) status_ = cursor_.status();
  }
  Status& status_;
  Cursor cursor_;
  bool more_ = false;
};

/// The rows of a table in ascending (start, file order) with from <= start < to, for a range-based for. When the loop
/// has come to its end, `status` holds the error that ended it, if any.
template <auto... columns>
auto rows(const Trace& trace, Status& status, int64_t from = kAllFrom,
          int64_t to = kAllTo) requires(!ChosenColumns<columns...>::kAnyTable) {
  return CursorRange<RowCursor<columns...>>(status, trace, from, to);
}
/// The same of the timed table `table`, with columns of event::column::Fact.
template <auto... columns>
auto rows(const Trace& trace, event::Table table, Status& status, int64_t from = kAllFrom,
          int64_t to = kAllTo) requires(ChosenColumns<columns...>::kAnyTable) {
  return CursorRange<RowCursor<columns...>>(status, trace, table, from, to);
}
/// The chunks of a table in file order, each with its columns as spans; `status` as above.
template <auto... columns>
auto chunks(const Trace& trace, Status& status) requires(!ChosenColumns<columns...>::kAnyTable) {
  return CursorRange<ChunkReader<columns...>>(status, trace);
}
/// The same of the timed table `table`, with columns of event::column::Fact.
template <auto... columns>
auto chunks(const Trace& trace, event::Table table, Status& status) requires(ChosenColumns<columns...>::kAnyTable) {
  return CursorRange<ChunkReader<columns...>>(status, trace, table);
}

/// A row of a dimension. Row 0, and a row that does not exist, have 0 in every cell.
template <event::DimensionRow R>
R row(const Trace& trace, int64_t number) {
  std::array<int64_t, R::kColumns> cells;
  for (size_t i = 0; i < cells.size(); ++i) cells[i] = trace.cell(R::kTable, number, static_cast<int>(i));
  return std::bit_cast<R>(cells);
}
/// One cell of a dimension's row; 0 for row 0 and for a row that does not exist.
template <auto column>
auto cell(const Trace& trace, int64_t number) {
  using Value = typename event::CellOf<column>::Value;
  static_assert(!event::is_fact(event::kTableOf<column>), "a fact's cells are read in rows or chunks");
  return std::bit_cast<Value>(trace.cell(event::kTableOf<column>, number, static_cast<int>(column)));
}
/// The text of a string cell of a dimension's row; "" for row 0 and for a row that does not exist.
template <auto column>
std::string_view text(const Trace& trace, int64_t number) {
  static_assert(event::CellOf<column>::kType == event::Type::kString, "the column holds no string");
  return trace.string(cell<column>(trace, number));
}

}  // namespace tacho::trace
