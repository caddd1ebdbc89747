// Times on the command line: "25%", "+1.5s", "-200ms", "3489389197956317".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacho::cli {

/// ns of a moment between `first` and `last`: N% of the way, +N after the first, -N before the last, or a bare number of
/// ns. N may have a fraction and, after + or -, a unit: ns (without one), us, ms, s, min. `option` is for the sentence.
Result<int64_t> parse_moment(std::string_view text, int64_t first, int64_t last, std::string_view option);

/// True for a bare number: a moment that needs no trace to be understood.
bool is_absolute(std::string_view text);

}  // namespace tacho::cli
