// The sums of `tacho watch` in Prometheus' text format (version 0.0.4) or OpenMetrics' (1.0.0), with a bounded number
// of label values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vendor/gpu_monitor.h"
#include "watch/governor.h"
#include "watch/metrics/labels.h"
#include "watch/segment.h"

namespace tacho::watch {

enum class MetricsForm : uint8_t { kPrometheus, kOpenMetrics };

/// Which of them a client wants whose header Accept this is; Prometheus' own where it names neither.
MetricsForm wanted_form(std::string_view accept);
/// Content-Type without the character set.
const char* content_type(MetricsForm form);

class PrometheusPage {
 public:
  explicit PrometheusPage(size_t most_kernels = 100) : labels_(most_kernels) {}

  /// OpenMetrics adds exemplars: the longest timed launch of a kernel, with its shape.
  std::string text(const WatchSnapshot& snapshot, const std::optional<WatchCost>& cost,
                   MetricsForm form = MetricsForm::kPrometheus, const std::vector<vendor::GpuReading>& gpus = {});

 private:
  Labels labels_;
};

/// A label's value between its quotes: \ " and newlines escaped, bytes that are not UTF-8 replaced.
std::string prometheus_label(std::string_view text);

}  // namespace tacho::watch
