// What metrics and profiles have in common: who was measured, when, and how OTLP writes numbers in JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text/json_writer.h"
#include "format/shared/options.h"
#include "trace/trace.h"
#include "walk/time/clock.h"
#include "walk/time/span.h"

namespace tacho::format::otlp {

class Parts {
 public:
  /// The trace must outlive it.
  static Result<Parts> make(const trace::Trace& trace);

  const trace::Trace& trace() const { return trace_; }

  /// Adds the member "resource" of a process (row; 0 = the machine).
  void put_process(JsonFileWriter& json, int64_t process) const;
  /// The same for a process id that telemetry names: that of a process row where there is one.
  void put_pid(JsonFileWriter& json, int64_t pid) const;
  /// Adds the member "scope".
  static void put_scope(JsonFileWriter& json);
  /// Adds a member with a moment as OTLP wants it, ns since 1970; nothing where the trace does not know the time of
  /// day.
  void put_time(JsonFileWriter& json, JsonLiteral name, int64_t time) const;
  /// Whether put_time() adds anything.
  bool knows_time() const { return zero_ != event::kUnknown || unix_.known(); }
  const walk::Span& run() const { return run_; }

 private:
  Parts(const trace::Trace& trace, walk::OutputClock clock, walk::Span run);
  const trace::Trace& trace_;
  walk::OutputClock unix_;
  walk::Span run_;
  int64_t zero_ = event::kUnknown;  // time 0 of a file of torch.profiler, ns since 1970
};

/// 64-bit numbers are texts in OTLP's JSON.
void put_integer(JsonFileWriter& json, JsonLiteral name, int64_t value);
/// An element of a list of attributes.
void put_attribute(JsonFileWriter& json, std::string_view key, std::string_view value);
void put_attribute(JsonFileWriter& json, std::string_view key, int64_t value);

/// As the two functions of otlp.h: a message a line for metrics, one message for profiles, which may be empty.
Status write_metrics(const Parts& parts, const ExportOptions& options, OutputFile& file);
/// False where nothing was written: there is no stack and no work of a device.
Result<bool> write_profiles(const Parts& parts, const ExportOptions& options, OutputFile& file);

}  // namespace tacho::format::otlp
