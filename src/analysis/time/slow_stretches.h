// Stretches of time in which many kernels of a device take longer by one factor than in all other time, with the same
// launches: what a falling clock does, in traces without readings of the clock.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/operators/places.h"
#include "base/result.h"
#include "trace/trace.h"

namespace tacho::analysis {

struct SlowStretch {
  size_t device = 0;               ///< DeviceNumbers::device()
  int64_t track = 0;               ///< one of its tracks, row of table track
  int64_t from = 0, to = 0;        ///< ns
  bool shapes = false;             ///< most of them are known to have the same shapes
  bool to_the_end = false;         ///< no kernel that tells is behind it
  double factor = 1;               ///< by which the kernels take longer, the median
  int64_t kinds = 0;               ///< kernels that take longer by this factor, one for each launch and shapes
  int64_t same = 0;                ///< those that take as long as before
  int64_t time = 0;                ///< ns in the stretch of kernels that take longer
  int64_t lost = 0;                ///< of it, what they take longer, ns
  int64_t compared = 0;            ///< ns in the stretch of all kernels that were compared
  std::vector<std::string> lines;  ///< one for each of the costliest
};

/// Durations of kernels by launch (row of table kernel: name, grid, workgroup) and a number that tells apart what the
/// launch does not, the shapes of the operator's inputs say. Bounded: of a kind's many launches every n-th is kept.
class LaunchTimes {
 public:
  explicit LaunchTimes(const trace::Trace& trace) : trace_(trace), numbers_(trace) {}
  /// In ascending order of `start`. `what`: a number for the caller, see join(); 0 = nothing is known.
  void add(int64_t track, int64_t kernel, uint32_t what, int64_t start, int64_t duration);
  /// Replaces each `what` by what `of` says: kinds that become equal are one.
  void join(const std::function<int64_t(uint32_t what)>& of);
  /// At most one stretch a device, none for CPUs. The first kernels of a device never begin one: warming up is not
  /// slowing down.
  std::vector<SlowStretch> find() const;

 private:
  struct Series {
    size_t stride = 1, seen = 0;
    std::vector<std::pair<int64_t, int64_t>> launches;  // start, duration
  };
  struct Key {
    size_t device = 0;
    int64_t kernel = 0, what = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      const uint64_t mixed = (static_cast<uint64_t>(key.kernel) << 20) + static_cast<uint64_t>(key.what);
      return (mixed ^ static_cast<uint64_t>(key.device) << 56) * 0x9e3779b97f4a7c15u;
    }
  };
  static void thin(Series& series);
  int64_t track_of(size_t device) const;

  const trace::Trace& trace_;
  DeviceNumbers numbers_;
  std::unordered_map<Key, Series, Hash> series_;
  std::vector<int64_t> device_of_track_;
  friend class StretchSearch;
};

/// All kernels of the trace, by their launches alone.
Result<std::vector<SlowStretch>> slow_stretches(const trace::Trace& trace);

}  // namespace tacho::analysis
