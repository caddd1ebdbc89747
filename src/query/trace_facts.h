// What the SQL dialects ask about a trace: numbers of tracks, display names, the clock of times, which API call caused
// which device work.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tsl/robin_map.h>

#include "base/result.h"
#include "base/sorted_file.h"
#include "format/view/clock.h"
#include "trace/trace.h"

namespace tacho::query {

class TraceFacts {
 public:
  static Result<std::shared_ptr<TraceFacts>> make(std::shared_ptr<const trace::Trace> trace);

  const trace::Trace& trace() const { return *trace_; }

  struct Track {
    int64_t process = 0;   // row
    int64_t pid = 0, tid = 0;
    int64_t device = 0;    // row
    int64_t gpu = 0;       // the device's index
    int64_t native = 0, context = 0;
    int64_t queue = 0, sequence = 0;  // as .rpd files have them
    bool cuda = false;
  };
  /// Of a row of table track; row 0's values for nonsense.
  const Track& track(int64_t row) const {
    return tracks_[row >= 0 && row < static_cast<int64_t>(tracks_.size()) ? static_cast<size_t>(row) : 0];
  }

  /// A kernel's name as people read it, by the string row of its name; stable for the life of this object.
  std::string_view readable(int64_t string_row);

  /// The API call with this correlation in a process: its row number among the calls (from 0) and duration; nullptr when
  /// there is none. The first call reads all calls.
  struct Cause {
    int64_t row;
    int64_t duration;
  };
  const Cause* cause(int64_t process, int64_t correlation);
  const Status& status() const { return status_; }

  format::ClockMap& monotonic() { return *monotonic_; }
  format::ClockMap& boottime() { return *boottime_; }

 private:
  struct Key {
    int64_t process, correlation;
    bool operator<(const Key& other) const { return process != other.process ? process < other.process : correlation < other.correlation; }
    bool operator==(const Key& other) const { return process == other.process && correlation == other.correlation; }
  };
  Status index_causes();

  std::shared_ptr<const trace::Trace> trace_;
  std::vector<Track> tracks_;
  tsl::robin_map<int64_t, std::unique_ptr<std::string>> readable_;
  bool demangle_ = true;
  std::unique_ptr<format::ClockMap> monotonic_, boottime_;
  KeyIndex<Cause, Key> causes_;
  bool indexed_ = false;
  Status status_;
};

}  // namespace tacho::query
