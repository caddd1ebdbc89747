// A hash wide enough to identify a text.
#pragma once

#include <cstdint>
#include <string_view>

namespace tacho::trace {

struct Hash128 {
  uint64_t high, low;
};
/// XXH3, 128 bits: among 10^9 texts, the chance that any two share a hash is below 10^-20.
Hash128 hash_128(std::string_view text);

}  // namespace tacho::trace
