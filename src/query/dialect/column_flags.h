// Properties of a column in the SQL dialects over traces, as flags to combine.
#pragma once

namespace tacho::query {

/// Few distinct values; text; a time; a number that is unique to its row; a real number.
inline constexpr unsigned kFew = 1, kText = 2, kTime = 4, kId = 8, kReal = 16;

}  // namespace tacho::query
