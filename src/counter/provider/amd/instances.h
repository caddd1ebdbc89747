// tacho's side of event/spool/spool_instances.h: dispatches with a value for every unit that counted.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "counter/provider.h"
#include "event/spool/spool_instances.h"

namespace tacho::counter::amd {

/// A value of one counter in one unit.
struct UnitValue {
  uint32_t counter = 0;                                ///< index among the config's counters
  std::array<int16_t, spool::kDimensions> position{};  ///< by spool::Dimension; -1 = not a dimension of the counter
  double value = 0;

  int at(spool::Dimension dimension) const { return position[static_cast<size_t>(dimension)]; }
};

struct CountedDispatch {
  ObservedDispatch dispatch;  ///< start and end are CLOCK_BOOTTIME
  size_t pass = 0;
  bool selected = false;
  spool::RanOnce once = spool::RanOnce::kNo;
  std::vector<UnitValue> values;
};

/// Appends the dispatches of one process's file. Stops at a truncated or malformed record and returns false. Values of
/// a unit that has no definition are left out; `unknown` counts them.
bool parse_instances(std::string_view bytes, std::vector<CountedDispatch>& out, uint64_t& unknown);

/// All dispatches in the spool's folder, by index and pass: one that ran once for each pass occurs as often. `cut`
/// counts files that end in the middle of a record.
Result<std::vector<CountedDispatch>> read_instances(const std::string& folder, size_t& cut, uint64_t& unknown);

/// The launches of the spool's folder that were broken off before their last pass, by index.
std::map<uint64_t, spool::RanOnce> read_broken_off(const std::string& folder);
/// The reason why launches ran once, to follow "5 launches ran once: ". `seconds`: how long tacho waits for the GPU.
std::string sentence_of(spool::RanOnce once, int64_t seconds);

/// The columns of a pass's csv, each the values of one counter: of all units, added up, or of one channel.
class Columns {
 public:
  /// `counter`: index among the config's counters. `channel`: of the L2, numbered over all dies; -1 = all units.
  void add(size_t counter, int channel);
  /// Sets out[i] for each column; NaN if the dispatch has no value. `banks`: channels of a die.
  void fill(const CountedDispatch& dispatch, int banks, double* out) const;
  size_t size() const { return size_; }

 private:
  struct Counter {
    std::vector<size_t> whole;                 // columns with the sum
    std::unordered_map<int, size_t> channels;  // channel -> column
  };
  std::unordered_map<size_t, Counter> counters_;
  size_t size_ = 0;
};

}  // namespace tacho::counter::amd
