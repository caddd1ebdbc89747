// TileIndex: the tiles of a run's timeline for any line, span and zoom. A background thread builds it in one pass over
// the trace in order of time; memory stays bounded, however large the trace is.
//
// Slices of lines with few rows stay in memory; of other lines only the long ones do, and a chunk's rows are decoded
// when a tile is fine enough to show them one by one. Coarser tiles come from bins (bins.h).
//
// All times here are ns since the run's t0.
#pragma once

#include <algorithm>
#include <atomic>
#include <bitset>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "trace/trace.h"
#include "view/index/bins.h"
#include "view/index/device_bins.h"
#include "view/index/lanes.h"
#include "view/index/names.h"
#include "view/index/tree.h"

namespace tacho::view {

enum SliceFlag : uint16_t { kPoint = 1, kFailed = 2, kGraphNode = 4, kUnfinished = 8 };

struct Slice {
  int64_t start = 0;
  int64_t end = 0;   // kOpenEnd: it never ended
  uint64_t row = 0;  // row_id()
  uint32_t name = 0;
  uint16_t lane = 0;
  uint16_t flags = 0;
  bool overlaps(int64_t from, int64_t to) const { return start < to && (end > from || start >= from); }
};

/// The order in which slices of a line get their lanes.
inline bool earlier_or_longer(const Slice& a, const Slice& b) {
  if (a.start != b.start) return a.start < b.start;
  if (a.end != b.end) return a.end > b.end;
  return a.row < b.row;
}

/// For slices that are not a row: a stretch of work on a group's line.
inline constexpr uint64_t kNoRow = UINT64_MAX;

/// True for tables of a device's own work: not for waits, and not for facts about the device.
constexpr bool is_device_work(event::Table table) {
  return table == event::Table::kDispatch || table == event::Table::kCopy || table == event::Table::kFill;
}

/// A row of a fact table as one number: the table in the upper 16 bits, the row from 0 in file order below.
constexpr uint64_t row_id(event::Table table, int64_t row) {
  return static_cast<uint64_t>(table) << 48 | static_cast<uint64_t>(row);
}
constexpr event::Table table_of_row(uint64_t id) {
  return static_cast<event::Table>(id >> 48);
}
constexpr int64_t number_of_row(uint64_t id) {
  return static_cast<int64_t>(id & ((uint64_t{1} << 48) - 1));
}

/// Slices of one name in one table. Those of unknown duration count in `unknown` only.
struct NameSum {
  uint32_t name = 0;
  int64_t count = 0, unknown = 0;
  int64_t total = 0, min = 0, max = 0;  // ns
  void add(int64_t duration);
  void add(const NameSum& other);
};

/// Where a row lies.
struct RowPlace {
  size_t chunk = 0;
  size_t row = 0;  // within the chunk
};

struct Limits {
  size_t resident = size_t{1} << 20;  // slices that stay in memory
  size_t chunks = 24;                 // decoded chunks kept
  size_t together = 8;                // chunks that the background reads at once
  size_t sums = size_t{1} << 18;      // sums of names in chunks kept
  size_t slices = 4096;               // sent one by one in a tile, for each of its first four lanes
  int64_t most_bins = 65536;          // of the finest level of bins
};

/// A span of one line at one zoom, in bins of 2^level ns.
struct Tile {
  enum class Kind : uint8_t { kEmpty, kDensity, kSlices, kCounter };
  struct Density {
    uint16_t lane;
    BinEntry entry;
  };
  struct Reading {
    uint16_t bin;
    double min, max, last;
  };
  Kind kind = Kind::kEmpty;
  bool provisional = false;
  uint16_t lanes = 0;
  std::vector<Density> density;   // by lane, bin
  std::vector<Slice> slices;      // by lane, start
  std::vector<Reading> readings;  // by bin
  double before = 0;              // of a counter: its value when the tile begins; NaN = none
};

class TileIndex {
 public:
  TileIndex(std::shared_ptr<const trace::Trace> trace, const Tree& tree, const SliceNames& names,
            const Limits& limits = {});
  ~TileIndex();
  TileIndex(const TileIndex&) = delete;
  TileIndex& operator=(const TileIndex&) = delete;

  /// The timeline reaches from t0() on for length() ns, including marks and readings outside the run.
  int64_t t0() const { return t0_; }
  int64_t length() const { return length_; }
  /// When the run began and how long it was (walk/time/span.h), ns.
  int64_t run_begin() const { return run_begin_; }
  int64_t run_length() const { return run_length_; }
  /// The finest level of bins.
  unsigned base_level() const { return base_; }

  /// Begins the pass in its own thread.
  void start();
  /// Share of the pass that is done, 0 to 1.
  double ready() const { return ready_.load(); }
  /// True when the pass ended early because this object goes away.
  bool stopped() const { return stop_.load(); }
  /// Waits until it is; the error, if the trace is damaged.
  Status wait();
  Status status() const;

  uint16_t lanes(size_t line) const;
  /// [index, index + 1) * 512 * 2^level ns of a line. Errors: damage in the file.
  Result<Tile> tile(size_t line, unsigned level, int64_t index);
  /// The lines whose work a group shows: queues, or threads if there are none.
  std::vector<size_t> lines_below(size_t group) const;
  /// The bins of a line at a level from base_level() on, whatever lies in them: by lane, bin.
  Result<std::vector<Tile::Density>> bins_of(size_t line, unsigned level, int64_t index) const;
  /// Slices of a line that overlap [from, to), in no order. nullopt: more than `most`, or they lie in more than
  /// `chunks` chunks. Only of the part of the trace that is indexed.
  Result<std::optional<std::vector<Slice>>> slices(size_t line, int64_t from, int64_t to, size_t most,
                                                   size_t chunks = SIZE_MAX);
  /// Visits all slices of a line that overlap [from, to), piece by piece.
  Status visit(size_t line, int64_t from, int64_t to, const std::function<bool(std::span<const Slice>)>& visit);
  /// The row as a slice; nullopt if the timeline does not show it, or not yet.
  Result<std::optional<std::pair<size_t, Slice>>> slice(uint64_t row);
  std::optional<RowPlace> place_of(uint64_t row) const;
  /// The number of a chunk's first row.
  int64_t first_row(event::Table table, size_t chunk) const { return first_row_[static_cast<size_t>(table)][chunk]; }

  /// Sums of a table by number of name, over the indexed part.
  std::vector<NameSum> name_sums(event::Table table) const;
  /// The `most` with the largest totals, without names of frameworks; `total` gets the time of all of these names.
  std::vector<NameSum> top_names(event::Table table, size_t most, int64_t& total) const;
  /// The sums of a chunk; nullopt if it has too many names to keep them, or is not indexed.
  std::optional<std::vector<NameSum>> name_sums(event::Table table, size_t chunk) const;
  /// Slices or readings of a line in the indexed part.
  int64_t events(size_t line) const;

  struct Hit {
    size_t line;
    Slice slice;
  };
  struct Hits {
    std::vector<Hit> hits;  // by start, row
    bool more = false;      // there may be further ones after (start, row), the last one looked at
    int64_t start = 0;
    uint64_t row = 0;
  };
  /// Slices whose name is in `names` (by number), after (start, row) in order of time; at most `most`, for at most
  /// about `milliseconds`. Covers only the indexed part of the trace.
  Result<Hits> find(const std::vector<bool>& names, int64_t start, uint64_t row, size_t most, int milliseconds);

  struct All {
    std::vector<Slice> slices;
    bool sampled = false;  // of more chunks than are read for one answer
    double share = 1;      // of those chunks that were read
  };
  /// Slices with one of `names` that overlap [from, to), of at most `chunks` chunks, evenly chosen.
  Result<All> all_of(const std::vector<bool>& names, int64_t from, int64_t to, size_t chunks = 64);

  /// Physical devices with work, by DeviceNumbers::device().
  std::vector<size_t> devices() const;
  /// From the first begin to the last end of a device's work, as far as it is indexed; its length is below 0 without
  /// any.
  walk::Span span_of(size_t device) const;
  /// A device's activity in [from, to).
  Result<BusySums> activity(size_t device, int64_t from, int64_t to);
  /// The same from whole bins of activity_width() only; both times are multiples of it.
  BusySums bins(size_t device, int64_t from, int64_t to) const;
  int64_t activity_width() const { return calls_->width(); }
  /// All readings of a counter, by time.
  std::vector<std::pair<int64_t, double>> values(size_t line) const;
  /// The least and greatest value of a counter; {0, 0} without any.
  std::pair<double, double> range(size_t line) const;
  /// Time in [from, to) during which any API call was open, from whole bins only.
  int64_t calls_open(int64_t from, int64_t to) const;
  /// The lines with work of a device.
  const std::vector<size_t>& lines_of_device(size_t device) const { return device_lines_.at(device); }

 private:
  // A chunk of rows in memory.
  struct Rows {
    struct Run {
      size_t line;
      uint32_t at, end;
    };
    std::vector<int64_t> start, end;
    std::vector<uint32_t> name;
    std::vector<uint16_t> lane, flags;
    std::vector<Run> runs;  // rows of one line, in order
    uint64_t first_id = 0;  // row_id() of the first
    Slice slice(size_t i) const { return {start[i], end[i], first_id + i, name[i], lane[i], flags[i]}; }
  };
  using NameSet = std::bitset<2048>;  // by name modulo its size
  static NameSet set_of(const std::vector<bool>& names);
  struct Part {
    event::Table table;
    uint32_t chunk;
    int64_t min_start, max_start;
    NameSet names;
    std::vector<NameSum> sums;  // unless there are too many of them
    // Lanes of its rows, when the pass is through with it: empty = all 0.
    bool done = false;
    std::vector<uint8_t> lanes;
  };
  // Rows of one line that lie together in a chunk, in order of start.
  struct Segment {
    uint32_t part, first, rows;
    int64_t min_start, max_end;  // of slices that are not long
  };
  struct Loaded : Rows {
    uint32_t part = 0;
    event::Table table = event::Table::kEnd;
    size_t left = 0;  // rows that are not indexed
    std::vector<NameSum> sums;
  };
  struct LineState {
    Lanes lanes;
    bool counts = false;    // rows of readings
    bool resident = false;  // all of its slices are in memory
    int64_t events = 0;
    std::vector<std::vector<Slice>> kept;  // by lane, in order: all, or the long ones
    std::vector<Segment> segments;
    std::vector<LaneBins> bins;                      // by lane
    std::vector<std::pair<int64_t, double>> values;  // of counters
  };

  void run();
  Status build();
  Status read_counters();
  Status read_dispatch_counters(std::vector<std::vector<std::pair<int64_t, double>>>& values);
  Status read_stacks();
  void put_stacks(size_t number, std::vector<Slice> slices);
  // `sums`: also by name.
  Result<std::shared_ptr<Loaded>> load(size_t part, bool sums) const;
  const Part* part_of(event::Table table, size_t chunk) const;
  struct Window;
  // Puts what begins before `until` into its lines.
  void process(std::vector<std::shared_ptr<Loaded>>& open, int64_t until);
  void process_line(size_t number, Window& window);
  void process_sums(Window& window, int64_t until);
  WorkKind work_of(event::Table table, uint32_t name) const {
    return table == event::Table::kCopy   ? WorkKind::kCopy
           : table == event::Table::kFill ? WorkKind::kFill
           : names_.communicates(name)    ? WorkKind::kCollective
                                          : WorkKind::kKernel;
  }
  Result<std::shared_ptr<const Rows>> rows(size_t part);
  Tile counter_tile(const LineState& line, unsigned level, int64_t index) const;
  // Slices of a line that a tile sends one by one: a lane costs the page as much on any line.
  size_t most_slices(const LineState& line) const {
    return limits_.slices * std::clamp<size_t>(line.lanes.count(), 1, 4);
  }
  Status density_of_bins(size_t number, unsigned level, int64_t index, Tile& tile) const;
  Status slices_or_bins(size_t number, unsigned level, int64_t index, size_t most, Tile& tile);
  Result<Tile> fine_group_tile(size_t group, unsigned level, int64_t index);

  std::shared_ptr<const trace::Trace> trace_;
  const Tree& tree_;
  const SliceNames& names_;
  Limits limits_;
  int64_t t0_ = 0, length_ = 1, run_begin_ = 0, run_length_ = 1, long_ = 1;
  unsigned base_ = 0, levels_ = 1;
  std::vector<std::vector<int64_t>> first_row_;  // by table, chunk; one more at the end

  std::thread thread_;
  std::atomic<double> ready_{0};
  std::atomic<bool> stop_{false}, finished_{false};
  mutable std::shared_mutex lock_;  // over everything below
  std::condition_variable_any changed_;
  Status status_;
  int64_t frontier_ = 0;  // slices that begin before it are indexed
  std::vector<Part> parts_;
  std::vector<LineState> lines_;
  std::vector<std::vector<uint32_t>> part_of_;  // by table, chunk
  std::vector<std::vector<NameSum>> sums_;      // by table, name
  size_t kept_sums_ = 0;
  TileStore store_;
  std::unordered_map<size_t, DeviceBins> activity_;
  std::unordered_map<size_t, std::vector<size_t>> device_lines_;
  std::vector<bool> group_of_threads_;  // by line: a group without queues below it
  std::optional<DeviceBins> calls_;

  std::mutex cache_lock_;
  std::list<std::pair<size_t, std::shared_ptr<const Rows>>> cache_;  // newest first
};

}  // namespace tacho::view
