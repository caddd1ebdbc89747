// Finds the launch of each dispatch: joins device work to the API calls and markers around its launch, in one sweep
// over time, with bounded memory however large the trace is.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "trace/trace.h"

namespace tacho::walk {

struct Launch {
  int64_t track = 0;  // of the calling thread
  int64_t start = 0;  // of the call, trace time
  int64_t label = 0;  // innermost push/pop marker open on that thread then (row of label); 0 = none
};

/// Remembers the newest API calls, up to two million, by process and correlation.
class LaunchIndex {
 public:
  /// `calls`: an estimate of how many will come.
  explicit LaunchIndex(int64_t calls);
  void add(int64_t process, int64_t correlation, const Launch& launch);
  /// nullptr = unknown, or too long ago. Valid until the next add().
  const Launch* find(int64_t process, int64_t correlation) const;

 private:
  struct Entry {
    int64_t process = 0, correlation = 0;
    Launch launch;
  };
  static constexpr size_t kWays = 4;
  size_t bucket(int64_t process, int64_t correlation) const;

  std::vector<Entry> entries_;
  std::vector<uint8_t> oldest_;  // for each bucket, the entry to replace next
  size_t mask_ = 0;
};

/// A LaunchIndex that fills itself: it follows the API calls up to a moment that only moves forward.
class Launches {
 public:
  /// With `labels` it also follows markers. The trace must outlive this object.
  Launches(const trace::Trace& trace, bool labels);
  /// The call of `process` (row) with this correlation; nullptr = not found. Ask in ascending `time`, the start of the
  /// device work. Clocks may disagree, so it also looks at calls up to 0.1 s later.
  const Launch* find(int64_t process, int64_t correlation, int64_t time);
  /// The error if the API or marker table is damaged.
  Status status() const;

 private:
  struct Open {
    int64_t end, label;
  };
  void advance(int64_t time);

  const trace::Trace& trace_;
  LaunchIndex index_;
  std::unique_ptr<trace::TimeCursor> calls_, markers_;
  bool more_calls_ = false, more_markers_ = false;
  std::unordered_map<int64_t, std::vector<Open>> open_;  // by track
};

}  // namespace tacho::walk
