// Properties of a column in the dialects over traces, as flags to combine.
#pragma once

namespace tacho::query {

/// Few different values; texts; a time; a number that no other row has; a real number.
inline constexpr unsigned kFew = 1, kText = 2, kTime = 4, kId = 8, kReal = 16;

}  // namespace tacho::query
