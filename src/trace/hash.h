// A hash wide enough to stand for what it was made of.
#pragma once

#include <cstdint>
#include <string_view>

namespace tacho::trace {

struct Hash128 {
  uint64_t high, low;
};
/// XXH3, 128 bits: of a thousand million texts the chance that any two share one is below 10^-20.
Hash128 hash_128(std::string_view text);

}  // namespace tacho::trace
