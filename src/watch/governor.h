// Holds the cost of timing under a budget: compares the program's pace in stretches with and without timing, and
// chooses how seldom hot kernels are timed.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "event/watch_table.h"

namespace tacho::watch {

/// What the programs are to do.
struct WatchSetting {
  event::WatchTiming timing = event::WatchTiming::kOn;
  uint32_t least_level = 0;  ///< at most 1 of 2^least_level operations of a row is timed after its first ones
};

/// The measured cost of timing: the share by which the pace is lower with it, and the 95 % interval.
struct WatchCost {
  double share = 0, low = 0, high = 0;
  size_t pairs = 0;  ///< of stretches that were compared
};

class Governor {
 public:
  /// `budget`: the share of its pace that the program may lose, 0.01 for 1 %. 0: nothing is measured, timing stays on.
  explicit Governor(double budget);

  /// Call about every 20 ms. `now`: seconds since the program began; `operations`: that it has begun by then.
  WatchSetting step(double now, uint64_t operations);

  /// At the present setting; nothing before there are enough pairs (8).
  std::optional<WatchCost> cost() const;
  /// The cost was over the budget for a minute, or timing of 1 in 32768 was over it: it ended for good.
  bool gave_up() const { return gave_up_; }

 private:
  void end_stretch(double now, uint64_t operations);
  void judge(double now);

  double budget_;
  WatchSetting setting_;
  enum class Stage : uint8_t { kRest, kBefore, kWithout, kAfter } stage_ = Stage::kRest;
  double began_ = -1;         // of the stretch, s
  uint64_t before_ = 0;       // operations at its beginning
  double pace_before_ = -1;   // operations a second with timing, in the stretch before the one without
  double pace_without_ = -1;  // in it
  std::deque<double> pairs_;  // log(pace without / pace with)
  double over_since_ = -1;
  bool gave_up_ = false;
};

}  // namespace tacho::watch
