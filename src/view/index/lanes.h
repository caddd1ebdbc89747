// Puts the slices of one line into lanes in which they do not overlap, the same ones at every zoom: it sees all slices
// once, in order of time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace tacho::view {

/// Slices that would need more lanes lie over others in the last one.
inline constexpr size_t kMostLanes = 1024;

class Lanes {
 public:
  /// `nest`: a slice lies below every slice that contains it, as calls do; else in the lowest lane that is free.
  explicit Lanes(bool nest = false) : nest_(nest) {}
  /// The lane of the next slice. Contract: `start` never decreases; of slices that begin together the longest
  /// comes first.
  uint16_t next(int64_t start, int64_t end) {
    size_t lane = 0;
    if (nest_) {
      for (size_t i = ends_.size(); i-- > 0;)
        if (ends_[i] > start && ends_[i] >= end) {
          lane = i + 1;
          break;
        }
    }
    while (lane < ends_.size() && ends_[lane] > start) ++lane;
    lane = std::min(lane, kMostLanes - 1);
    if (lane >= ends_.size()) ends_.resize(lane + 1, std::numeric_limits<int64_t>::min());
    ends_[lane] = std::max(ends_[lane], end);
    return static_cast<uint16_t>(lane);
  }
  size_t count() const { return ends_.size(); }

 private:
  bool nest_;
  std::vector<int64_t> ends_;  // by lane
};

}  // namespace tacho::view
