// Numbers distinct texts or keys, however many. Keeps only their hashes, on disk if there are many.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "trace/store/hash.h"
#include "trace/write/scratch.h"

namespace tacho::walk {

class HashIds {
 public:
  HashIds() : slots_(trace::Scratch::temporary(kFirst * sizeof(Slot))), capacity_(kFirst) {}
  /// The number of `key`; 0 if it is new: the caller then assigns one. Valid until the next call.
  int64_t& of(std::string_view key) {
    if (used_ * 4 > capacity_ * 3) grow();
    const trace::Hash128 hash = trace::hash_128(key);
    Slot& slot = place(hash.high, hash.low);
    if (slot.id == 0) {
      slot.high = hash.high;
      slot.low = hash.low;
      ++used_;
    }
    return slot.id;
  }

 private:
  struct Slot {
    uint64_t high, low;
    int64_t id;  // 0 = free
  };
  static constexpr size_t kFirst = 1024;

  Slot& place(uint64_t high, uint64_t low) {
    auto* const slots = static_cast<Slot*>(slots_.data());
    size_t at = low & (capacity_ - 1);
    while (slots[at].id != 0 && (slots[at].high != high || slots[at].low != low)) at = (at + 1) & (capacity_ - 1);
    return slots[at];
  }
  void grow() {
    const trace::Scratch old = std::exchange(slots_, trace::Scratch::temporary(capacity_ * 2 * sizeof(Slot)));
    const auto* const slots = static_cast<const Slot*>(old.data());
    const size_t count = std::exchange(capacity_, capacity_ * 2);
    for (size_t i = 0; i < count; ++i)
      if (slots[i].id != 0) place(slots[i].high, slots[i].low) = slots[i];
  }

  trace::Scratch slots_;
  size_t capacity_, used_ = 0;
};

/// A number for each row of a table, 0 at first; in a temporary file if there are many rows.
class RowNumbers {
 public:
  RowNumbers() = default;
  explicit RowNumbers(int64_t rows)
      : rows_(std::max<int64_t>(rows, 1)),
        cells_(trace::Scratch::temporary(static_cast<size_t>(rows_) * sizeof(int64_t))) {}
  /// A row that does not exist reads as row 0.
  int64_t& of(int64_t row) { return static_cast<int64_t*>(cells_.data())[row > 0 && row < rows_ ? row : 0]; }

 private:
  int64_t rows_ = 0;
  trace::Scratch cells_;
};

}  // namespace tacho::walk
