// Checksums of the trace file.
#include "trace/layout.h"

#include <xxhash.h>

namespace tacho::trace {

uint64_t checksum(std::span<const uint8_t> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

uint64_t trailer_checksum(uint64_t footer, uint64_t id) {
  const uint64_t words[2] = {footer, id};
  return XXH3_64bits(words, sizeof words);
}

}  // namespace tacho::trace
