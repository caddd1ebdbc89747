// Times on the command line: "25%", "+1.5s", "-200ms", "3489389197956317".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacho::cli {

/// A moment in ns: N% of the way from `first` to `last`, +N after the first, -N before the last, or bare ns. N may have
/// a fraction and, after + or -, a unit (ns, us, ms, s, min; default ns). Errors name `option`.
Result<int64_t> parse_moment(std::string_view text, int64_t first, int64_t last, std::string_view option);

/// True for a bare number: a moment that makes sense without a trace.
bool is_absolute(std::string_view text);

}  // namespace tacho::cli
