// The sums of `tacho watch` in Prometheus' text format (version 0.0.4) or OpenMetrics' (1.0.0), with a bounded number
// of label values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "watch/governor.h"
#include "watch/segment.h"

namespace tacho::watch {

enum class MetricsForm : uint8_t { kPrometheus, kOpenMetrics };

/// Which of them a client wants whose header Accept this is; Prometheus' own where it names neither.
MetricsForm wanted_form(std::string_view accept);
/// Content-Type without the character set.
const char* content_type(MetricsForm form);

class PrometheusPage {
 public:
  /// Kernels beyond the first `most_kernels` names are one: kernel="other". A name that has a label keeps it, and one
  /// that has none never gets one, so that no counter goes back.
  explicit PrometheusPage(size_t most_kernels = 100) : most_kernels_(most_kernels) {}

  /// OpenMetrics adds exemplars: the longest timed launch of a kernel, with its shape.
  std::string text(const WatchSnapshot& snapshot, const std::optional<WatchCost>& cost,
                   MetricsForm form = MetricsForm::kPrometheus);

 private:
  std::string label_of(const std::string& kernel);

  size_t most_kernels_;
  std::map<std::string, std::string> labels_;  // by name; the label's value, escaped
};

/// A label's value between its quotes: \ " and newlines escaped, bytes that are not UTF-8 replaced.
std::string prometheus_label(std::string_view text);

}  // namespace tacho::watch
