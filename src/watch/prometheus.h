// The sums of `tacho watch` in Prometheus' text format (version 0.0.4), with a bounded number of label values.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "watch/governor.h"
#include "watch/segment.h"

namespace tacho::watch {

/// Content-Type without the character set.
inline constexpr const char* kPrometheusType = "text/plain; version=0.0.4";

class PrometheusPage {
 public:
  /// Kernels beyond the first `most_kernels` names are one: kernel="other". A name that has a label keeps it, and one
  /// that has none never gets one, so that no counter goes back.
  explicit PrometheusPage(size_t most_kernels = 100) : most_kernels_(most_kernels) {}

  std::string text(const WatchSnapshot& snapshot, const std::optional<WatchCost>& cost);

 private:
  std::string label_of(const std::string& kernel);

  size_t most_kernels_;
  std::map<std::string, std::string> labels_;  // by name; the label's value, escaped
};

/// A label's value between its quotes: \ " and newlines escaped, bytes that are not UTF-8 replaced.
std::string prometheus_label(std::string_view text);

}  // namespace tacho::watch
