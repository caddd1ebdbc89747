// Cuts a span of time out of an .rpd file without making a trace of it: copies rows as they are stored.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace tacho::format::rpd {

struct TrimResult {
  int64_t calls = 0, calls_kept = 0;
  int64_t operations = 0, operations_kept = 0;
};

/// First start and last end of the API calls, ns: what percentages refer to. Fails when there are none.
Result<std::pair<int64_t, int64_t>> time_range(const std::string& path);

/// Writes the calls of `input` that began at `from` ... `to` (ns, both included) to `output`, with the
/// operations they caused; operations of no call go by their own start. Nothing is left that refers to a row
/// that went, and strings that nobody uses go too. Tables of upstream's tools (ext_*) are trimmed by their
/// references. Schema, indexes and views stay.
Result<TrimResult> trim(const std::string& input, const std::string& output, int64_t from, int64_t to,
                        bool overwrite);

}  // namespace tacho::format::rpd
