// Walks over rows of several tables in order of start, slice by slice. A slice is a run of consecutive rows of one
// track with no row of another track between them. Busy time, gaps, overlap and queue depth use it. When few tracks are
// active at the same time, it is many times faster than a row-by-row cursor. Memory holds only the chunks open at one
// moment.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "event/schema.h"
#include "trace/trace.h"

namespace tacho::walk {

struct RowSlice {
  event::Table table;
  int64_t track;
  size_t rows;
  const int64_t* start;
  const int64_t* duration;
  // If they were asked for (SweepColumn), else nullptr. `bytes` and `arguments` only of tables that have them.
  const int64_t *dim, *correlation, *bytes, *arguments;
};

/// The columns that a Sweep reads beyond track, start and duration: bits.
enum SweepColumn : uint8_t { kSweepDim = 1, kSweepCorrelation = 2, kSweepBytes = 4, kSweepArguments = 8 };

class Sweep {
 public:
  /// `tables`: timed facts. `columns`: bits of SweepColumn.
  Sweep(const trace::Trace& trace, std::span<const event::Table> tables, unsigned columns = 0);
  ~Sweep();
  /// The next slice; false at the end and on errors (status()). Valid until the next call.
  bool next(RowSlice& slice);
  const Status& status() const { return status_; }

 private:
  struct Block;  // decoded columns of a chunk
  struct Run {
    std::shared_ptr<const Block> block;
    event::Table table;
    int64_t track;
    size_t at, end;
    int64_t last;  // start of the last row
  };
  struct Head {
    int64_t start;  // of the run's row `at`
    uint32_t run;   // place in runs_
  };
  struct Pending {
    event::Table table;
    size_t chunk;
    int64_t min_start;
  };
  bool load(const Pending& pending);
  std::shared_ptr<Block> free_block();
  void push(Run run);
  void settle(size_t at);  // restores the heap below a head whose start grew

  const trace::Trace& trace_;
  unsigned columns_;
  std::vector<Pending> pending_;  // by min_start
  size_t next_pending_ = 0;
  std::vector<Run> runs_;
  std::vector<uint32_t> free_runs_;
  std::vector<Head> heap_;                      // earliest start first; while a slice is out, its run stays on top
  std::vector<std::shared_ptr<Block>> blocks_;  // reused once no run refers to them
  std::vector<int64_t> track_;
  bool have_current_ = false;
  Status status_;
};

}  // namespace tacho::walk
