// Trace: reads a .tacho file. Facts lie in chunks of at most 64 Ki rows, sorted by (track, start) within a chunk; the
// reader decodes a column of a chunk only on request. After open(), all dimensions and strings are in memory.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "event/schema.h"

namespace tacho::trace {

/// Durations of one (track, dimension) pair in one chunk. Rows without a duration (kUnknown) count in `unknown` only.
struct Summary {
  int64_t track = 0;
  int64_t dim = 0;
  int64_t count = 0;
  int64_t unknown = 0;
  int64_t sum = 0;    // ns
  int64_t min = 0;    // ns
  int64_t max = 0;    // ns
  double mean = 0;    // ns; with m2 for variances that merge exactly (Chan et al.: m2 = sum of (x - mean)^2)
  double m2 = 0;      // ns^2
  int64_t bytes = 0;  // sum of column `bytes`, if the table has one
  int64_t first = 0;  // earliest start, ns
  int64_t last = 0;   // latest end, ns
};

/// Log-scaled histogram with 4 buckets per power of two: bucket b counts durations d with bucket_of(d) == b.
inline constexpr int kHistogramBuckets = 256;
int histogram_bucket(int64_t duration);
/// Smallest duration that falls into `bucket`.
int64_t histogram_floor(int bucket);

/// Time during which at least one row of `track` was open, within one chunk.
struct Busy {
  int64_t track = 0;
  int64_t first = 0, last = 0;  // ns, span of the rows
  int64_t busy = 0;             // ns, union of the rows' intervals
};

struct Chunk {
  uint32_t rows = 0;
  uint32_t slab = 0;      // slabs are numbered in file order
  int64_t min_start = 0;  // zone map, ns; 0 for tables without a start
  int64_t max_start = 0;
  int64_t max_end = 0;
  int64_t min_track = 0, max_track = 0;
};

struct HistogramEntry {
  int64_t dim;
  int bucket;
  int64_t count;
};

class Trace {
 public:
  virtual ~Trace() = default;

  /// Opens a .tacho file of any build. The file of a killed writer is readable up to the last whole slab, and note()
  /// says so. For a bad, truncated or foreign file the error is one sentence. Maps the file and reads no facts.
  static Result<std::shared_ptr<const Trace>> open(const std::string& path);

  virtual const std::string& path() const = 0;
  virtual bool complete() const = 0;          // false: the writer died; the last part may be missing
  virtual bool aggregated() const = 0;        // written with --aggregate: no facts, only merged summaries
  virtual std::string_view note() const = 0;  // one sentence when not complete, else ""
  /// One sentence when rows of the file have tables, columns or enumerators that this build does not know, else "". The
  /// reader leaves out such tables and columns; codes of such enumerators read as the enumeration's unknown value.
  virtual std::string_view unknown() const = 0;
  virtual uint64_t file_size() const = 0;

  virtual std::string_view string(int64_t row) const = 0;  // "" if there is no such row
  /// Rows of a dimension table including row 0 ("none"); for a fact table the number of facts.
  virtual int64_t rows(event::Table table) const = 0;
  /// One cell of a dimension; 0 for row 0 and if there is no such row.
  virtual int64_t cell(event::Table table, int64_t row, int column) const = 0;
  std::string_view text(event::Table table, int64_t row, int column) const { return string(cell(table, row, column)); }
  /// Value of a property; nullopt when absent.
  virtual std::optional<std::string_view> property(event::Table table, int64_t row, std::string_view key) const = 0;

  /// Chunks of a fact table in file order.
  virtual std::span<const Chunk> chunks(event::Table table) const = 0;
  /// Decodes one column of one chunk into `out` (resized). Errors name the file and offset.
  virtual Status decode(event::Table table, size_t chunk, int column, std::vector<int64_t>& out) const = 0;
  /// Number of columns decoded so far, for tests of push-down.
  virtual uint64_t columns_decoded() const = 0;

  /// Summaries of one chunk, one entry per (track, dim) in it. Timed facts only.
  virtual Result<std::vector<Summary>> summaries(event::Table table, size_t chunk) const = 0;
  /// Histogram of one chunk, sorted by dim, bucket.
  virtual Result<std::vector<HistogramEntry>> histogram(event::Table table, size_t chunk) const = 0;
  virtual Result<std::vector<Busy>> busy(event::Table table, size_t chunk) const = 0;
  /// Visits all summaries of a table piece by piece, in bounded memory: those of the whole table if the writer stored
  /// them, else chunk by chunk. A (track, dim) may come several times; every row is in exactly one summary.
  virtual Status visit_summaries(event::Table table,
                                 const std::function<void(std::span<const Summary>)>& visit) const = 0;
  /// Summaries of the whole table merged over its chunks (and of --aggregate's rows), sorted by track, dim.
  virtual Result<std::vector<Summary>> merged_summaries(event::Table table) const = 0;
  virtual Result<std::vector<HistogramEntry>> merged_histogram(event::Table table) const = 0;
  /// Busy time of every track, sorted by track. Exact: reads the rows of chunks of a track that overlap in time. For a
  /// trace of --aggregate, sums over the rows that were buffered together, an upper bound when rows came late.
  virtual Result<std::vector<Busy>> merged_busy(event::Table table) const = 0;

  /// First start and last end of all timed facts; {0, 0} if there are none.
  virtual std::pair<int64_t, int64_t> time_range() const = 0;
};

/// Iterates over the rows of one fact table in ascending (start, file order), for code that merges several tables.
/// Memory is bounded (see visit_by_time). The trace must outlive the cursor.
class TimeCursor {
 public:
  /// Iterates over rows with from <= start < to. Decodes only `columns`; row() has them in that order.
  TimeCursor(const Trace& trace, event::Table table, std::span<const int> columns,
             int64_t from = std::numeric_limits<int64_t>::min(), int64_t to = std::numeric_limits<int64_t>::max());
  ~TimeCursor();
  TimeCursor(const TimeCursor&) = delete;
  TimeCursor& operator=(const TimeCursor&) = delete;

  /// Moves to the next row, at first to the first one. False at the end and after an error: see status().
  bool next();
  /// The row's start, and its columns. Valid after next() returned true, until the next call.
  int64_t start() const;
  std::span<const int64_t> row() const;
  /// An error for bad data, or for a table without a start.
  Status status() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Visits the rows of a fact table with from <= start < to in ascending (start, file order). Memory is bounded: it
/// decodes a chunk at its first row and drops it after its last. Decodes only `columns`; the row given to `visit` has
/// them in that order. `visit` returns false to stop.
Status visit_by_time(const Trace& trace, event::Table table, std::span<const int> columns, int64_t from, int64_t to,
                     const std::function<bool(std::span<const int64_t> row)>& visit);

/// Visits chunk by chunk in file order (fast: no merge). `columns` as above; one span per column, all of equal length.
Status visit_chunks(const Trace& trace, event::Table table, std::span<const int> columns,
                    const std::function<bool(size_t chunk, std::span<const std::span<const int64_t>> values)>& visit);

}  // namespace tacho::trace
