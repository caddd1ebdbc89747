// What an ApiRecord has for the result of a call of which nobody tells it.
#pragma once

#include <cstdint>

namespace tacho::event {

/// No API has this result: it becomes kUnknown in the table.
inline constexpr int16_t kUntoldResult = INT16_MIN;

}  // namespace tacho::event
