// Sums of a moment by label, for what metrics count: a bounded number of kernels, each with its histogram.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "watch/segment.h"

namespace tacho::watch {

/// Histograms have a bound at each octave from 2^10 ns (1 us) to 2^34 ns (17 s).
inline constexpr uint32_t kFirstBoundOctave = 10, kLastBoundOctave = 34;

/// The rows that share a label.
struct LabelSums {
  uint64_t count = 0, bytes = 0;  ///< exact
  double seconds = 0;             ///< of what the buckets hold
  AllBuckets buckets = {};        ///< estimated: each timed operation counts for the N that it stands for
  uint64_t longest_ns = 0;        ///< timed, of those whose shape is known; 0: none
  std::string longest_shape;

  void add(const RowSums& row);
};
using ByLabel = std::map<std::string, LabelSums>;

struct AllLabels {
  ByLabel kernels, graphs, copies, fills, waits, allocations;
};

class Labels {
 public:
  /// Kernels beyond the first `most_kernels` names are one: "other". A name that has a label keeps it, and one that has
  /// none never gets one, so that no counter goes back.
  explicit Labels(size_t most_kernels = 100) : most_kernels_(most_kernels) {}

  AllLabels gather(const WatchSnapshot& snapshot);

 private:
  std::string label_of(const std::string& kernel);

  size_t most_kernels_;
  std::map<std::string, std::string> labels_;  // by name
};

}  // namespace tacho::watch
