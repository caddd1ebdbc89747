// OpenTelemetry: metrics and profiles as OTLP in JSON, in files as the Collector's file exporter and receiver have
// them, a message on each line.
//
// Facts: https://github.com/open-telemetry/opentelemetry-proto (metrics.proto v1, profiles.proto v1development with its
// dictionary), https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding, semantic conventions v1.44
#pragma once

#include <string>
#include <vector>

#include "format/shared/options.h"

namespace tacho::format::otlp {

/// Writes target.file (metrics: a histogram of durations for each name, bytes, busy devices, telemetry) and, where the
/// trace has call stacks or device work, profiles_name(target.file). Standard output gets metrics alone.
Status write(const trace::Trace& trace, const ExportTarget& target, const ExportOptions& options,
             std::vector<std::string>& written);

/// "app.profiles.otlp.jsonl" for "app.otlp.jsonl".
std::string profiles_name(const std::string& metrics);

}  // namespace tacho::format::otlp
