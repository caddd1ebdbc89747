// Adding up rows by label (labels.h).
#include "watch/metrics/labels.h"

#include "report/text.h"

namespace tacho::watch {

using event::WatchKind;

void LabelSums::add(const RowSums& row) {
  count += row.count;
  bytes += row.bytes;
  seconds += static_cast<double>(row.stood_ns) * 1e-9;
  for (uint32_t i = 0; i < event::kWatchBuckets; ++i) buckets[i] += row.buckets[i];
  if (row.any_shape() || row.longest_ns <= longest_ns) return;
  longest_ns = row.longest_ns;
  longest_shape = row.shape();
}

std::string Labels::label_of(const std::string& kernel) {
  if (kernel == kOtherKernels) return "other";
  const auto known = labels_.find(kernel);
  if (known != labels_.end()) return known->second;
  constexpr size_t kLongest = 200;  // bytes; two long names whose beginnings are equal share a label
  std::string label = labels_.size() >= most_kernels_ ? "other"
                      : kernel.size() > kLongest      ? report::shortened(kernel, kLongest)
                                                      : kernel;
  if (labels_.size() < 16 * most_kernels_) labels_.emplace(kernel, label);
  return label;
}

AllLabels Labels::gather(const WatchSnapshot& snapshot) {
  AllLabels all;
  for (const RowSums& row : snapshot.rows) {
    switch (row.kind) {
      case WatchKind::kKernel:
        all.kernels[label_of(row.name)].add(row);
        break;
      case WatchKind::kGraph:
        all.graphs[row.name].add(row);
        break;
      case WatchKind::kCopy:
        all.copies[row.name].add(row);
        break;
      case WatchKind::kFill:
        all.fills[row.name].add(row);
        break;
      case WatchKind::kWait:
        all.waits[row.name].add(row);
        break;
      case WatchKind::kAllocation:
        all.allocations[row.name].add(row);
        break;
      case WatchKind::kNone:
        break;
    }
  }
  return all;
}

}  // namespace tacho::watch
