// The sums of memory over time: which row of table allocation adds to which memory, and where each sum is highest.
#pragma once

#include <tsl/robin_map.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "analysis/memory/places.h"
#include "base/result.h"
#include "trace/trace.h"

namespace tacho::analysis {

/// An address within a process. Levels have their own: a segment begins where its first block does.
struct MemoryKey {
  int64_t process = 0, level = 0, address = 0;
  bool operator==(const MemoryKey&) const = default;
};
struct MemoryKeyHash {
  size_t operator()(const MemoryKey& key) const {
    uint64_t hash = static_cast<uint64_t>(key.address) * 0x9e3779b97f4a7c15ULL;
    hash ^= static_cast<uint64_t>(key.process * 4 + key.level) * 0xc2b2ae3d27d4eb4fULL;
    return static_cast<size_t>(hash ^ hash >> 29);
  }
};

class MemoryCurves {
 public:
  static constexpr size_t kNone = ~size_t{0};
  /// `level` of MemoryKey for blocks of an allocator.
  static constexpr int64_t kBlocks = 1;

  explicit MemoryCurves(const trace::Trace& trace) : trace_(trace) {}

  /// Reads the rows; adds a place to `report` for each memory that has any, but for segments of allocators.
  Status read(size_t buckets, MemoryReport& report);

  /// What a row does. The place is that of its shape: a free of memory that is live belongs to where it was allocated.
  struct Step {
    size_t place = kNone;  ///< of MemoryReport::places; kNone = it changes none
    MemoryKey key;
    bool allocates = false, frees = false;
  };
  Step step(int64_t dim, int64_t track, int64_t address);

  size_t places() const { return shown_.size(); }
  /// The number, among the rows that change a place, of the row behind which its peak is; 0 = at its begin.
  int64_t peak_row(size_t place) const { return sums_[shown_[place]].peak_row; }
  /// By bucket of the place's curve: the same for the bucket's value. Ascending.
  std::span<const int64_t> bucket_rows(size_t place) const { return sums_[shown_[place]].bucket_rows; }

 private:
  // One sum.
  struct Sum {
    int64_t process, device, level;
    event::MemoryKind memory;
    size_t shown = kNone;    // place in the report
    size_t reserve = kNone;  // the sum of the segments behind blocks
    int64_t live = 0;        // without what was there before the recording
    int64_t offset = 0;      // to the allocator's own sum, once it is told
    bool told = false;
    int64_t peak = 0, peak_time = 0, peak_row = 0, rows = 0;
    std::optional<int64_t> peak_reserved, most_reserved, last_reserved;  // told
    int64_t peak_segments = 0;                                           // of `reserve`, without what was there before
    int64_t before = 0;                                                  // freed without being allocated
    MemoryPlace facts;
    std::vector<MemoryPlace::Bucket> buckets;
    std::vector<int64_t> bucket_rows;
    size_t filled = 0;  // buckets that have a value
  };
  // A shape of allocations.
  struct Shape {
    bool read = false, allocates = false, frees = false, fails = false;
    int64_t level = 0, device = 0;
    event::MemoryKind memory = event::MemoryKind::kUnknown;
  };
  struct Held {
    size_t sum;
    int64_t bytes;
  };

  const Shape& shape(int64_t dim);
  size_t sum_of(const Shape& shape, int64_t process);
  Status range(int64_t& from, int64_t& to) const;
  void change(Sum& sum, int64_t time, int64_t bytes, int64_t in_use, int64_t reserved);
  size_t bucket(int64_t time) const;
  void place_failures();
  void finish(size_t buckets, MemoryReport& report);

  const trace::Trace& trace_;
  std::vector<Shape> shapes_;
  std::vector<Sum> sums_;
  std::map<std::tuple<int64_t, int64_t, int64_t, event::MemoryKind>, size_t> sum_of_;
  std::vector<size_t> shown_;                     // sums by place
  std::map<int64_t, int64_t> unplaced_failures_;  // by process
  int64_t from_ = 0, to_ = 0;
  size_t buckets_ = 1;
};

}  // namespace tacho::analysis
