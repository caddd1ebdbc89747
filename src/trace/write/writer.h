// TraceWriter: the only way rows get into a .tacho file. The drainer, every importer, merge and trim use it. Its memory
// is bounded, whatever the number of rows.
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
  /// Replace an existing file.
  bool overwrite = false;
  /// Bytes of file after which the writer drops facts and counts them as kMaxSize; 0 = no limit.
  uint64_t max_size = 0;
  /// Keep about this many bytes of the newest slabs; the writer counts older rows as kRingOverwritten. 0 = keep all.
  uint64_t ring_size = 0;
  /// Keep rows of table allocation, and of all other facts those of at least the last so many nanoseconds; the writer
  /// counts older rows as kRingOverwritten. 0 = keep all. Not together with ring_size.
  uint64_t memory_keep_ns = 0;
  /// finish() waits until the file is on disk. False for files that are removed again soon.
  bool durable = true;
  /// Keep no facts, only summaries per table, track and dimension row.
  bool aggregate = false;
  /// Maximum number of rows per chunk (<= 64 Ki).
  uint32_t slab_rows = 1 << 16;
};

/// Appends facts, dimensions and strings, and writes slabs as they fill. Not thread-safe. After a write error (a full
/// disk) the writer drops further rows and counts them as kWriteError. The part on disk stays readable, and finish()
/// returns the error.
class TraceWriter {
 public:
  /// Creates the file under a temporary name beside `path`; finish() renames it. Fails if `path` exists, unless
  /// options.overwrite.
  static Result<std::unique_ptr<TraceWriter>> create(const std::string& path, const WriterOptions& options = {});
  /// Writes into an unlinked temporary file in $TMPDIR, for readers of foreign formats. See finish_and_open().
  static Result<std::unique_ptr<TraceWriter>> create_temporary(const WriterOptions& options = {});
  virtual ~TraceWriter() = default;

  /// The string table's row for `text` (any bytes); equal texts share a row. "" is row 0.
  virtual int64_t string(std::string_view text) = 0;

  /// The number of a dimension's row; equal rows share a number. A row of all zeros is NOT row 0: row 0 ("none") always
  /// exists and is never returned.
  template <event::DimensionRow R>
  int64_t dimension(const R& row) {
    return dimension_cells(R::kTable, event::cells(row));
  }
  /// Replaces one column of an existing dimension row, such as a thread's name that is known late. The writer still
  /// deduplicates rows by their first values.
  virtual void update(event::Table table, int64_t row, int column, int64_t value) = 0;
  /// The same for all columns of a row.
  template <event::DimensionRow R>
  void update(int64_t row, const R& values) {
    for (size_t c = 0; c < R::kColumns; ++c) update(R::kTable, row, static_cast<int>(c), event::cells(values)[c]);
  }

  /// Appends a fact. Times may come in any order; the writer sorts the rows of each slab.
  template <event::FactRow R>
  void add(const R& row) {
    add_cells(R::kTable, event::cells(row));
  }

  /// Adds to a loss counter, which becomes a row of table loss. process: row, 0 = tacho itself.
  virtual void lose(int64_t process, event::Table table, event::LossReason reason, int64_t count) = 0;
  /// Adds a sentence for the user to table note, without a time. To give a time, add() a row of table note.
  virtual void note(int64_t process, event::NoteSeverity severity, std::string_view text) = 0;
  /// Adds a key and value about a row, or about the trace (table kEnd, row 0).
  void property(event::Table table, int64_t row, std::string_view key, std::string_view value) {
    const int64_t name = string(key);
    dimension(event::row::Property{.table = table, .row = row, .key = name, .value = string(value)});
  }

  /// Writes everything buffered, so that a killed writer loses only later rows. Cheap enough to call once a second: the
  /// next flush replaces small slabs by larger ones.
  virtual Status flush() = 0;
  /// Rows of `table` accepted so far; for a dimension including row 0.
  virtual int64_t rows(event::Table table) const = 0;
  /// Size of the file so far.
  virtual uint64_t bytes() const = 0;
  /// The first write error, if any; finish() will return it.
  virtual Status write_status() const = 0;
  /// Name of the file until finish() renames it (PATH.partial-XXXXXXXX); empty for create_temporary(). `tacho recover`
  /// looks for this name after a writer was killed. Destroying an unfinished writer removes the file.
  virtual const std::string& temporary_path() const = 0;

  /// Writes the footer, syncs (if durable) and renames the file. Make no further calls. After a write error it drops
  /// the newest slabs if the footer does not fit, still renames the file, and returns the error.
  virtual Status finish() = 0;
  /// finish(), then opens the file. `shown_as`: the name in path() and messages, such as that of an imported file;
  /// empty = the file's own.
  virtual Result<std::shared_ptr<const Trace>> finish_and_open(const std::string& shown_as = {}) = 0;

 private:
  friend class Cells;
  // dimension() and add() call these with all columns of the table in the schema's order.
  virtual int64_t dimension_cells(event::Table table, std::span<const int64_t> cells) = 0;
  virtual void add_cells(event::Table table, std::span<const int64_t> cells) = 0;
};

}  // namespace tacho::trace
