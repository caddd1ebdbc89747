// Holds the cost of timing under a budget, by two measures: what timing takes by its own account, which is known at
// once and chooses how seldom hot kernels are timed; and the program's pace in stretches with and without timing, which
// says whether the account is true.
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
  double spare = 0;          ///< seconds that timing may take until the next step, of a program on average
};

/// The measured cost of timing: the share by which the pace is lower with it, and the 95 % interval.
struct WatchCost {
  double share = 0, low = 0, high = 0;
  size_t pairs = 0;  ///< that were compared: twice a stretch with and one without timing, in the order ABBA or BAAB
};

/// What the programs have done since they began.
struct WatchLoad {
  double now = 0;           ///< seconds
  uint64_t operations = 0;  ///< that were begun
  uint64_t timed = 0;       ///< of them timed
  uint64_t skipped = 0;     ///< of them to be timed, and not timed because WatchSetting::spare was used up
  double timing = 0;        ///< seconds that timing took: of a program's host time and of its device's, on average
  double counting = 0;      ///< seconds of host time that counting took
  uint64_t waits = 0;       ///< calls that waited for work, modulo 2^24
  double last_wait = 0;     ///< when the last of them came back, seconds since any moment
};

class Governor {
 public:
  /// `budget`: the share of its pace that the program may lose, 0.01 for 1 %. 0: nothing is measured, timing stays on.
  explicit Governor(double budget);

  /// Call about every 20 ms.
  WatchSetting step(const WatchLoad& load);
  /// Before the first step.
  const WatchSetting& setting() const { return setting_; }

  /// Of the last minute at the present setting; nothing before there are enough pairs (8).
  std::optional<WatchCost> cost() const;
  /// The cost was over the budget for a minute, or timing of 1 in 32768 was over it: it ended for good.
  bool gave_up() const { return gave_up_; }

 private:
  struct Pair {
    double at;  // s
    // log(pace without / pace with), in operations and in calls that wait; nothing where that was not steady
    std::optional<double> operations, waits;
  };
  // The interval of the pairs in the unit that resolves more; `wider` times as wide as for 95 %.
  std::optional<WatchCost> interval(double wider) const;
  void account(const WatchLoad& load);
  void refill(const WatchLoad& load);
  void compare(const WatchLoad& load);
  void look(const WatchLoad& load);
  void choose_length(double pace);
  void begin_comparison(const WatchLoad& load);
  void begin_stretch(const WatchLoad& load);
  void end_stretch(const WatchLoad& load);
  std::optional<double> ratio_of(const double (&paces)[4]) const;
  void end_comparison(double now, bool steady);
  void judge(double now);
  void choose_level();
  void note_over(double now, bool over, double& since);
  uint32_t chance();

  double budget_;
  WatchSetting setting_;
  bool gave_up_ = false;
  uint64_t random_ = 0x9e3779b97f4a7c15;

  // The account
  double last_ = -1;                 // s, of the last step
  double window_with_ = 0;           // s with timing in this window
  double last_timing_ = 0;           // s that timing had taken by the last step
  double allowed_;                   // the share that timing may take
  std::optional<WatchLoad> window_;  // at its beginning
  uint32_t account_level_ = 0;       // what the account asks for
  static constexpr size_t kWindows = 5;
  double each_[kWindows] = {};  // s that a time took in the last windows
  size_t windows_ = 0;
  double calm_timing_ = 0, calm_with_ = 0;  // s that timing would take, and s with timing, since the last look
  double account_over_ = -1;                // s, since when it is over the budget at the highest level

  // The comparison
  enum class Stage : uint8_t { kRest, kLook, kSettle, kMeasure } stage_ = Stage::kRest;
  double until_ = 0;                      // s, of the rest
  double began_ = 0;                      // s, of the stage
  WatchLoad before_;                      // at its beginning
  double length_ = 0.04, longer_ = 1;     // s, of a stretch, and how much longer than its operations ask for
  uint32_t unsteady_ = 0, steady_ = 0;    // comparisons in a row
  uint32_t stretch_ = 0;                  // of the four
  bool without_first_ = false;            // BAAB
  double paces_[4] = {}, waits_[4] = {};  // operations and waits a second; waits: 0 if there were too few
  double level_since_ = 0;                // s
  std::deque<Pair> pairs_;
  uint32_t pair_level_ = 0;  // what the comparison asks for
  double pair_over_ = -1;    // s
};

}  // namespace tacho::watch
