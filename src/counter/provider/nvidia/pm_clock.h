// The time of a GPU's samples: CUPTI's clock, related to CLOCK_MONOTONIC_RAW.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tacho::counter::nvidia {

/// Moments of a vendor's clock and of the host's, and lines between them. The vendor's clock may be one that is set,
/// as CLOCK_REALTIME is: where it jumps, samples from before keep the line from before.
class ClockPairs {
 public:
  struct Span {
    int64_t begin, end;
  };

  /// `error`: half of the time within which the vendor's clock was read. Pairs come as the host's time goes on; one
  /// that does not is left out.
  void add(uint64_t vendor, int64_t host, int64_t error);
  /// Instead of pairs: one moment that holds from then on, for a clock that cannot be read.
  void fix(uint64_t vendor, int64_t host, int64_t error);
  bool empty() const { return pairs_.empty(); }
  /// The host's time of a sample. Samples come in order, and none is newer than the newest pair.
  /// nullopt for one that ends before the last one did, or in the future: such a time is none.
  std::optional<Span> place(uint64_t begin, uint64_t end);
  /// The largest of add()'s.
  int64_t error() const { return error_; }
  /// How often the vendor's clock jumped.
  int jumps() const { return jumps_; }

 private:
  static constexpr size_t kMost = 64;
  struct Pair {
    uint64_t vendor;
    int64_t host;
  };
  static int64_t host_time(const std::vector<Pair>& pairs, uint64_t vendor);
  std::optional<Span> placed_by(const std::vector<Pair>& pairs, uint64_t begin, uint64_t end) const;

  std::vector<Pair> pairs_;    // the newest, since the last jump
  std::vector<Pair> earlier_;  // before it, while samples from there may still come
  std::optional<int64_t> last_end_;
  int64_t error_ = 0;
  int jumps_ = 0;
  bool fixed_ = false;
};

}  // namespace tacho::counter::nvidia
