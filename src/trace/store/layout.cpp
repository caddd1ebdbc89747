// Checksums of the trace file.
#include "trace/store/layout.h"

#include <xxhash.h>

#include "trace/store/hash.h"

namespace tacho::trace {

uint64_t checksum(std::span<const uint8_t> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Hash128 hash_128(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.high64, hash.low64};
}

uint64_t trailer_checksum(uint64_t footer, uint64_t id) {
  const uint64_t words[2] = {footer, id};
  return XXH3_64bits(words, sizeof words);
}

}  // namespace tacho::trace
