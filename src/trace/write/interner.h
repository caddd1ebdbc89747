// Interner: numbers distinct strings or dimension rows. It keeps only a 128-bit hash of each, so its memory does not
// depend on their length. Beyond some hundred thousand, the hashes lie in temporary files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/write/scratch.h"

namespace tacho::trace {

class Interner {
 public:
  /// `folder`: for temporary files; empty = everything stays in memory.
  Interner(uint64_t seed, std::string folder);
  Interner(const Interner&) = delete;
  Interner& operator=(const Interner&) = delete;

  struct Found {
    int64_t row;  // from 1
    bool added;
  };
  /// Row of `bytes`; rows are numbered from 1 in the order of their first appearance.
  Found intern(std::span<const uint8_t> bytes);
  /// Row of `bytes`, 0 when never interned.
  int64_t find(std::span<const uint8_t> bytes) const;
  int64_t size() const { return size_; }

 private:
  struct Key {
    uint64_t low, high;
    bool operator==(const Key&) const = default;
  };
  // A slot of the hash table: the row in the low half (0 = free), bits of the key's high word in the other, so that a
  // look-up hardly ever compares other keys.
  using Slot = uint64_t;
  static constexpr size_t kBlockKeys = 1 << 14;
  static constexpr size_t kInMemory = 8 << 20;  // bytes to keep out of temporary files

  Key key_of(std::span<const uint8_t> bytes) const;
  const Key& key(uint32_t row) const {
    return static_cast<const Key*>(keys_[(row - 1) / kBlockKeys].data())[(row - 1) % kBlockKeys];
  }
  Slot* slots() const { return static_cast<Slot*>(slots_.data()); }
  /// The slot that holds or would hold `wanted`. Contract: there is a free slot.
  size_t place_of(const Key& wanted) const;
  void grow();
  Scratch take(size_t bytes);

  uint64_t seed_;
  std::string folder_;
  int64_t size_ = 0;
  size_t mask_ = 0;
  size_t bytes_ = 0;           // of blocks and slots
  std::vector<Scratch> keys_;  // by row - 1, in blocks, so that growing copies nothing
  Scratch slots_;
};

}  // namespace tacho::trace
