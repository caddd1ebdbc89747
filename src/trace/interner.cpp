// Interner over XXH3's 128-bit hash.
#include "trace/interner.h"

#include <xxhash.h>

namespace tacho::trace {

Interner::Interner(uint64_t seed) : seed_(seed), rows_(0, Hash{&store_}, Equal{&store_}) {
  rows_.max_load_factor(0.75F);
}

Interner::Key Interner::key_of(std::span<const uint8_t> bytes) const {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed_);
  return {hash.low64, hash.high64};
}

Interner::Found Interner::intern(std::span<const uint8_t> bytes) {
  const Key key = key_of(bytes);
  const auto found = rows_.find(key, key.low);
  if (found != rows_.end()) return {int64_t{*found} + 1, false};
  const auto row = static_cast<uint32_t>(size_);
  if (row % kBlockKeys == 0) store_.blocks.push_back(std::make_unique<Key[]>(kBlockKeys));
  store_.blocks[row / kBlockKeys][row % kBlockKeys] = key;
  rows_.insert(row);
  return {++size_, true};
}

int64_t Interner::find(std::span<const uint8_t> bytes) const {
  const Key key = key_of(bytes);
  const auto found = rows_.find(key, key.low);
  return found == rows_.end() ? 0 : int64_t{*found} + 1;
}

}  // namespace tacho::trace
