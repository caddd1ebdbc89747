// Converts .rpd to Chrome JSON with the same events as rocmProfileData's rpd2tracing.py (processes, threads, names,
// arrows, counters), but in JSON that is valid whatever the names contain.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace tacho::format::rpd {

struct TracingOptions {
  std::string start, end;  // "25%", microseconds, or a number with a unit (ns, us, ms, s); empty = all
  bool array = false;      // write an array instead of an object with traceEvents
  bool overwrite = true;   // replace an old output, as the original does
};

struct TracingResult {
  int version = 0;
  int64_t first = 0, last = 0;  // ns, over the API calls
  double from = 0, to = 0;      // us, as requested
  bool has_monitor = false;
  uint64_t events = 0;
};

/// Reads `input` in place, one pass for each table, with bounded memory.
Result<TracingResult> write_tracing(const std::string& input, const std::string& output, const TracingOptions& options);

}  // namespace tacho::format::rpd
