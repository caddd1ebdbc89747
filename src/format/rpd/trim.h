// Cuts a time span out of an .rpd file without converting it to a trace: copies rows as they are stored.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace tacho::format::rpd {

struct TrimResult {
  int64_t calls = 0, calls_kept = 0;
  int64_t operations = 0, operations_kept = 0;
};

/// First start and last end of the API calls, ns; percentages refer to these. Fails if there are no calls.
Result<std::pair<int64_t, int64_t>> time_range(const std::string& path);

/// Writes to `output` the calls of `input` that began between `from` and `to` (ns, both included) and the operations
/// that they caused; for operations without a call, their own start decides. Drops rows that refer to dropped rows, and
/// unused strings. Trims the tables of upstream's tools (ext_*) by their references. Keeps schema, indexes and views.
Result<TrimResult> trim(const std::string& input, const std::string& output, int64_t from, int64_t to, bool overwrite);

}  // namespace tacho::format::rpd
