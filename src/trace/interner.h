// Interner: row numbers for equal contents. It keeps 128-bit hashes (seeded at random), not the contents, so
// that ten million distinct strings of any length cost about 300 MB less than keeping them would.
#pragma once

#include <tsl/robin_set.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tacho::trace {

class Interner {
 public:
  explicit Interner(uint64_t seed);
  Interner(const Interner&) = delete;
  Interner& operator=(const Interner&) = delete;

  struct Found {
    int64_t row;  // from 1
    bool added;
  };
  /// Row of `bytes`; rows are numbered from 1 in the order of their first appearance.
  Found intern(std::span<const uint8_t> bytes);
  /// Row of `bytes`, 0 when it was never seen.
  int64_t find(std::span<const uint8_t> bytes) const;
  int64_t size() const { return size_; }

 private:
  struct Key {
    uint64_t low, high;
    bool operator==(const Key&) const = default;
  };
  static constexpr size_t kBlockKeys = 1 << 14;
  // The keys by row - 1, in blocks, so that growing copies nothing.
  struct Store {
    std::vector<std::unique_ptr<Key[]>> blocks;
    const Key& operator[](uint32_t row) const { return blocks[row / kBlockKeys][row % kBlockKeys]; }
  };
  struct Hash {
    using is_transparent = void;
    const Store* store;
    size_t operator()(uint32_t row) const { return (*store)[row].low; }
    size_t operator()(const Key& key) const { return key.low; }
  };
  struct Equal {
    using is_transparent = void;
    const Store* store;
    bool operator()(uint32_t a, uint32_t b) const { return a == b; }
    bool operator()(const Key& a, uint32_t b) const { return a == (*store)[b]; }
    bool operator()(uint32_t a, const Key& b) const { return (*store)[a] == b; }
  };

  Key key_of(std::span<const uint8_t> bytes) const;

  uint64_t seed_;
  int64_t size_ = 0;
  Store store_;
  tsl::robin_set<uint32_t, Hash, Equal> rows_;
};

}  // namespace tacho::trace
