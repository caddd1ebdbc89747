// The clocks of a Perfetto trace and what its snapshots say about them.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "event/schema.h"

namespace tacho::format::perfetto {

/// True for the clocks that each sequence has its own of.
inline bool is_sequence_clock(uint32_t clock) {
  return clock >= 64 && clock < 128;
}

/// Turns the numbers in packets into nanoseconds of their clocks, in the order of the file: some clocks count other
/// units, some packets give the time since the packet before.
class RunningClocks {
 public:
  void snapshot(uint32_t sequence, std::string_view message);
  /// ns in the time of `clock`; kUnknown for what is no time.
  int64_t time(uint32_t sequence, uint32_t clock, uint64_t timestamp);

 private:
  struct Running {
    bool incremental = false;
    int64_t multiplier = 1, last = 0;
  };
  static constexpr size_t kMost = 1 << 20;
  static uint64_t key(uint32_t sequence, uint32_t clock) {
    return static_cast<uint64_t>(is_sequence_clock(clock) ? sequence : 0) << 32 | clock;
  }
  tsl::robin_map<uint64_t, Running> running_;
  uint64_t last_key_ = UINT64_MAX;  // whose state last_ is, nullptr if it has none
  Running* last_ = nullptr;
};

/// Converts times of one clock to the trace's own, its primary clock, as Trace Processor does: by the offset that the
/// latest earlier snapshot with both clocks gives, over several clocks if need be.
class SnapshotClocks {
 public:
  void snapshot(uint32_t sequence, std::string_view message);
  /// After the last snapshot().
  void finish();
  /// False if no snapshot leads from `clock` to the primary one.
  bool convert(uint32_t sequence, uint32_t clock, int64_t time, int64_t& primary);
  uint32_t primary() const { return primary_; }
  /// Snapshots that were too many to keep.
  uint64_t left_out() const { return left_out_; }

  /// One moment in the builtin clocks; kUnknown = not told.
  struct BuiltinMoment {
    int64_t primary, monotonic, boottime, realtime;
  };
  /// Those of all snapshots with the primary clock, in the order of the file.
  template <typename F>
  void each_moment(F f) const;

 private:
  static constexpr size_t kMostReadings = 1 << 20, kMostOfSnapshot = 64;
  static constexpr uint32_t kFarthestClock = 8;  // hops to the primary clock
  struct ClockReading {
    uint32_t snapshot, clock;  // number; row of clocks_
    int64_t time;
  };
  struct KnownClock {
    uint32_t number = 0;
    uint32_t depth = UINT32_MAX, next = 0;  // on the way to the primary clock; UINT32_MAX = there is none
    bool searched = false;
    std::vector<size_t> path;  // hops to the primary clock
  };
  struct Hop {
    std::vector<std::pair<int64_t, int64_t>> points;  // a moment in both clocks, in order of the first
    size_t last = 0;
  };
  uint32_t clock_row(uint32_t sequence, uint32_t clock);
  size_t end_of_snapshot(size_t from) const;
  size_t hop(uint32_t from, uint32_t to);
  void search(uint32_t clock);

  tsl::robin_map<uint64_t, uint32_t> rows_;
  std::vector<KnownClock> clocks_;
  std::vector<ClockReading> readings_;              // those of a snapshot together
  std::vector<std::vector<uint32_t>> readings_of_;  // by clock: places in readings_
  std::vector<Hop> hops_;
  tsl::robin_map<uint64_t, size_t> hop_of_;  // by pair of clocks: many ways share their last hops
  uint32_t snapshots_ = 0, primary_ = 6;
  bool primary_told_ = false;
  uint64_t left_out_ = 0, last_key_ = UINT64_MAX;
  uint32_t last_row_ = 0;
};

template <typename F>
void SnapshotClocks::each_moment(F f) const {
  using event::kUnknown;
  for (size_t from = 0; from < readings_.size();) {
    size_t to = from;
    BuiltinMoment moment{kUnknown, kUnknown, kUnknown, kUnknown};
    for (; to < readings_.size() && readings_[to].snapshot == readings_[from].snapshot; ++to) {
      const uint32_t number = clocks_[readings_[to].clock].number;
      const int64_t time = readings_[to].time;
      if (number == primary_) moment.primary = time;
      if (number == 1) moment.realtime = time;
      if (number == 3) moment.monotonic = time;
      if (number == 6) moment.boottime = time;
    }
    if (moment.primary != kUnknown) f(moment);
    from = to;
  }
}

}  // namespace tacho::format::perfetto
