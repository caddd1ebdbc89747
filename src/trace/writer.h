// TraceWriter: the only way rows get into a .tacho file. The drainer, every importer, merge and trim use it;
// memory is bounded whatever the number of rows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "event/schema.h"

namespace tacho::trace {

class Trace;

struct WriterOptions {
  bool overwrite = false;  // replace an existing file
  uint64_t max_size = 0;   // bytes of file after which facts are dropped and counted (kMaxSize); 0 = no limit
  uint64_t ring_size =
      0;  // keep about the newest so many bytes of slabs; older ones counted as kRingOverwritten
  bool durable = true;           // finish() waits until the file is on disk; false for what goes away again
  bool aggregate = false;        // keep no facts, only summaries per table, track and dimension row
  uint32_t slab_rows = 1 << 16;  // rows per chunk at most (<= 64 Ki)
};

/// Appends facts, dimensions and strings; writes slabs as they fill. Not thread-safe. Errors of writing (disk
/// full) are kept: rows from then on are dropped and counted as kWriteError, what is on disk stays readable,
/// and finish() says it.
class TraceWriter {
 public:
  /// Creates `path` under a temporary name beside it; finish() renames it. An existing `path` is refused
  /// unless options.overwrite.
  static Result<std::unique_ptr<TraceWriter>> create(const std::string& path,
                                                     const WriterOptions& options = {});
  /// Into an unlinked temporary file (in $TMPDIR): for readers of foreign formats. See finish_and_open().
  static Result<std::unique_ptr<TraceWriter>> create_temporary(const WriterOptions& options = {});
  virtual ~TraceWriter() = default;

  /// Row of the string table for `text` (any bytes); equal text gives the equal row. "" is row 0.
  virtual int64_t string(std::string_view text) = 0;

  /// Row number of a dimension's row; an equal row is reused. A row of all zeros is NOT row 0: row 0 ("none") exists
  /// by itself and is never returned.
  template <event::DimensionRow R>
  int64_t dimension(const R& row) {
    return dimension_cells(R::kTable, event::cells(row));
  }
  /// Replaces one column of an existing dimension row (a thread's name, known late). Does not affect
  /// deduplication.
  virtual void update(event::Table table, int64_t row, int column, int64_t value) = 0;
  /// The same for all columns of a row.
  template <event::DimensionRow R>
  void update(int64_t row, const R& values) {
    for (size_t c = 0; c < R::kColumns; ++c)
      update(R::kTable, row, static_cast<int>(c), event::cells(values)[c]);
  }

  /// Appends a fact. Any order of times is accepted; rows are sorted per slab.
  template <event::FactRow R>
  void add(const R& row) {
    add_cells(R::kTable, event::cells(row));
  }

  /// Adds to a loss counter (a row of table loss at the end). process: row, 0 = tacho.
  virtual void lose(int64_t process, event::Table table, event::LossReason reason, int64_t count) = 0;
  /// One sentence for the user, kept in table note (without a time; add() a row of table note to give one).
  virtual void note(int64_t process, event::NoteSeverity severity, std::string_view text) = 0;
  /// A key and value about a row (or the trace: table kEnd, row 0).
  void property(event::Table table, int64_t row, std::string_view key, std::string_view value) {
    const int64_t name = string(key);
    dimension(event::row::Property{.table = table, .row = row, .key = name, .value = string(value)});
  }

  /// Writes everything buffered now, so that a killed writer loses nothing up to here. Cheap to call once a
  /// second: slabs that are still small are written again, with more rows, by the next flush.
  virtual Status flush() = 0;
  /// Rows of `table` accepted so far; of a dimension its rows with row 0.
  virtual int64_t rows(event::Table table) const = 0;
  /// Size of the file so far.
  virtual uint64_t bytes() const = 0;
  /// The first error of writing, if there was one: what finish() will say.
  virtual Status write_status() const = 0;
  /// Name of the file until finish() gives it its own; empty for create_temporary(). What `tacho recover`
  /// looks for after the writer was killed: PATH.partial-XXXXXXXX. Destroying a writer that was not finished
  /// removes the file.
  virtual const std::string& temporary_path() const = 0;

  /// Writes the footer, syncs (if durable) and renames. No further calls. After an error of writing the file gets its name
  /// all the same, with the newest slabs left out where the end did not fit, and the error is returned.
  virtual Status finish() = 0;
  /// finish(), then opens what was written. `shown_as`: what path() and messages call the trace (the file that it was made of);
  /// empty: its own name.
  virtual Result<std::shared_ptr<const Trace>> finish_and_open(const std::string& shown_as = {}) = 0;

 private:
  friend class Cells;
  // What dimension() and add() come to: all columns of the table in the schema's order.
  virtual int64_t dimension_cells(event::Table table, std::span<const int64_t> cells) = 0;
  virtual void add_cells(event::Table table, std::span<const int64_t> cells) = 0;
};

}  // namespace tacho::trace
