// Interner over XXH3's 128-bit hash: an open hash table with linear probing.
#include "trace/write/interner.h"

#include <xxhash.h>

#include <utility>

namespace tacho::trace {
namespace {

uint64_t tag_of(uint64_t high) {
  return high & 0xffffffff00000000ULL;
}

}  // namespace

Interner::Interner(uint64_t seed, std::string folder) : seed_(seed), folder_(std::move(folder)) {}

Interner::Key Interner::key_of(std::span<const uint8_t> bytes) const {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed_);
  return {hash.low64, hash.high64};
}

Scratch Interner::take(size_t bytes) {
  bytes_ += bytes;
  return {bytes, bytes_ > kInMemory ? folder_ : std::string()};
}

size_t Interner::place_of(const Key& wanted) const {
  for (size_t at = wanted.low & mask_;; at = (at + 1) & mask_) {
    const Slot slot = slots()[at];
    if (slot == 0) return at;
    if (tag_of(slot) == tag_of(wanted.high) && key(static_cast<uint32_t>(slot)) == wanted) return at;
  }
}

void Interner::grow() {
  const size_t capacity = slots_.data() == nullptr ? 512 : (mask_ + 1) * 2;
  const Scratch old = std::move(slots_);
  slots_ = take(capacity * sizeof(Slot));
  bytes_ -= old.bytes();
  mask_ = capacity - 1;
  for (uint32_t row = 1; row <= static_cast<uint32_t>(size_); ++row) {
    const Key& moved = key(row);
    size_t at = moved.low & mask_;
    while (slots()[at] != 0) at = (at + 1) & mask_;
    slots()[at] = tag_of(moved.high) | row;
  }
}

Interner::Found Interner::intern(std::span<const uint8_t> bytes) {
  // At most three quarters are in use.
  if (static_cast<size_t>(size_) * 4 >= (mask_ + 1) * 3 || slots_.data() == nullptr) grow();
  const Key wanted = key_of(bytes);
  const size_t at = place_of(wanted);
  if (slots()[at] != 0) return {static_cast<int64_t>(static_cast<uint32_t>(slots()[at])), false};
  const auto before = static_cast<size_t>(size_);
  if (before % kBlockKeys == 0) keys_.push_back(take(kBlockKeys * sizeof(Key)));
  static_cast<Key*>(keys_.back().data())[before % kBlockKeys] = wanted;
  ++size_;
  slots()[at] = tag_of(wanted.high) | static_cast<uint32_t>(size_);
  return {size_, true};
}

int64_t Interner::find(std::span<const uint8_t> bytes) const {
  if (slots_.data() == nullptr) return 0;
  return static_cast<int64_t>(static_cast<uint32_t>(slots()[place_of(key_of(bytes))]));
}

}  // namespace tacho::trace
