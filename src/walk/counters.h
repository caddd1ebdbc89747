// Which values of a dispatch's counters count. Values of instances (channels, dies) add up; where several passes of a
// replayed kernel read the same counter, the first pass counts.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "trace/trace.h"

namespace tacho::walk {

/// Distinguishes values of the first pass from those of later ones.
class FirstPasses {
 public:
  /// Reads the passes of all counter values; their keys as well, on disk if there are many, only of a trace in which a
  /// counter has several passes. Errors: bad data.
  static Result<FirstPasses> make(const trace::Trace& trace);
  FirstPasses(FirstPasses&&) noexcept;
  FirstPasses& operator=(FirstPasses&&) noexcept;
  ~FirstPasses();

  /// False for a value of a later pass than the first that read `counter` in this dispatch.
  bool count(int64_t track, int64_t start, int64_t ordinal, int64_t counter, int64_t pass) const {
    return index_ == nullptr || first(track, start, ordinal, counter, pass) == pass;
  }

 private:
  struct Index;
  FirstPasses();
  int64_t first(int64_t track, int64_t start, int64_t ordinal, int64_t counter, int64_t pass) const;

  std::unique_ptr<Index> index_;  // nullptr: every value counts
};

/// The counters of one dispatch, in the order in which they first came.
class CounterSums {
 public:
  void clear() { values_.clear(); }
  /// Adds the value of an instance; only such that FirstPasses count.
  void add(int64_t counter, double value) {
    for (auto& [known, sum] : values_)
      if (known == counter) {
        sum += value;
        return;
      }
    values_.emplace_back(counter, value);
  }
  bool empty() const { return values_.empty(); }
  const std::vector<std::pair<int64_t, double>>& values() const { return values_; }

 private:
  std::vector<std::pair<int64_t, double>> values_;
};

}  // namespace tacho::walk
