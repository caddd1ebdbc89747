// Names of OpenTelemetry's metrics and units (semantic conventions v1.44; units are UCUM's).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tacho::format::otlp {

enum class Instrument : uint8_t { kGauge, kUpDown, kCounter };

/// Telemetry that OpenTelemetry has a name for; its values times `scale`.
struct ConventionalMetric {
  std::string_view counter;  // without "GPU " and the number of the GPU
  bool gpu;
  std::string_view metric, unit;
  double scale;
  Instrument instrument;
  std::string_view key = {}, value = {};  // of an attribute
};

/// The one for a counter of telemetry ("Temperature", without "GPU " and the number of the GPU), of a GPU or of a
/// process; nullptr where there is none.
const ConventionalMetric* conventional_metric(bool gpu, std::string_view counter);
/// UCUM's word for a counter's unit; what it does not have goes into braces, which are an annotation there.
std::string ucum(std::string_view unit);
/// A name that instruments may have: letters, digits and '_' behind "tacho.counter.".
std::string counter_metric(std::string_view counter);

}  // namespace tacho::format::otlp
