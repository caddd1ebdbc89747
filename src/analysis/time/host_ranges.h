// The ranges and functions of a thread that were open lately: what the host did in a gap of the device, and where in
// the program a call was made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/trace.h"

namespace tacho::analysis {

/// A range of a marker, an operator or a function: its row in table function, or the negative one in table label.
using RangeName = int64_t;

/// The newest ranges of one thread. Bounded: of more than kMost, those that are open and the newest are kept.
class HostRanges {
 public:
  static constexpr int64_t kShortest = 5'000;  ///< ns; shorter ones are left out, their time is that of those around
  static constexpr size_t kMost = 8192;

  /// In ascending order of `start`.
  void add(int64_t start, int64_t end, RangeName name);
  /// Adds to `sums` how long each range was the innermost one between `from` and `to`; 0 = none was open.
  void self_times(int64_t from, int64_t to, std::map<RangeName, int64_t>& sums) const;
  /// Those that are open at `at`, the innermost first.
  std::vector<RangeName> around(int64_t at) const;

 private:
  struct Range {
    int64_t start, end;
    RangeName name;
  };
  void forget();
  std::vector<Range> ranges_;
};

/// Sums of time by place in the program: what the host called ("aten::item"), and the function of the program's own
/// that did ("train.py(31): step"). Bounded: places after kMost count as unknown.
class PlaceSums {
 public:
  static constexpr size_t kMost = 4096;
  /// `around`: of HostRanges, the innermost first.
  void add(const trace::Trace& trace, const std::vector<RangeName>& around, int64_t ns);
  /// "aten::item, called in train.py(31): step", if more than half of the time is there; else empty.
  std::string most(const trace::Trace& trace) const;

 private:
  enum class Kind : uint8_t { kNothing, kOperator, kOwnFunction, kOther };
  Kind kind_of(const trace::Trace& trace, RangeName name);
  std::unordered_map<RangeName, Kind> kinds_;
  std::map<std::pair<RangeName, RangeName>, int64_t> sums_;
  int64_t all_ = 0;
};

/// "<built-in function collect>" where the host was for most of `sums`, with its percentage; empty if no name has more
/// than a third of them. Steps of a profiler name nothing.
std::string most_of(const trace::Trace& trace, const std::map<RangeName, int64_t>& sums);

}  // namespace tacho::analysis
