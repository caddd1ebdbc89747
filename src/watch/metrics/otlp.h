// A moment of `tacho watch` as an OTLP message of metrics, in JSON (format/otlp has the same of recordings).
//
// Facts: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding, metrics.proto v1, semantic conventions v1.44
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vendor/gpu_monitor.h"
#include "watch/governor.h"
#include "watch/metrics/labels.h"

namespace tacho::watch {

/// What the messages of a run have in common.
struct OtlpSource {
  std::string service;     ///< the program's base name; "": not known
  std::string host;        ///< "" where the machine has no name
  int64_t start_unix = 0;  /// when the run began, ns since 1970
};

/// One ExportMetricsServiceRequest. Sums and histograms are cumulative from the run's start on; the histograms' counts
/// are estimates, as in PrometheusPage.
std::string otlp_message(const OtlpSource& source, int64_t now_unix, const WatchSnapshot& snapshot,
                         const AllLabels& labels, const std::optional<WatchCost>& cost,
                         const std::vector<vendor::GpuReading>& gpus);

}  // namespace tacho::watch
