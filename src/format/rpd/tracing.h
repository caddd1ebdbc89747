// Converts .rpd to Chrome JSON with the events of rocmProfileData's rpd2tracing.py: the same processes,
// threads, names, arrows and counters, in JSON that is valid whatever the names contain.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace tacho::format::rpd {

struct TracingOptions {
  std::string start, end;  // "25%", microseconds, or a number with unit (ns, us, ms, s); empty = all
  bool array = false;      // an array instead of an object with traceEvents
  bool overwrite = true;   // as the original: an old output is replaced
};

struct TracingResult {
  int version = 0;
  int64_t first = 0, last = 0;  // ns, of the API calls
  double from = 0, to = 0;      // us, as requested
  bool has_monitor = false;
  uint64_t events = 0;
};

/// Reads `input` in place, in one pass per table, with bounded memory.
Result<TracingResult> write_tracing(const std::string& input, const std::string& output,
                                    const TracingOptions& options);

}  // namespace tacho::format::rpd
