// From handles of a vendor's runtime to what tacho knows of them, for use inside other people's processes.
#pragma once

#include <atomic>
#include <cstdint>

#include "capture/room/lines.h"

namespace tacho::capture {

/// Handle -> state. find() takes no lock and never blocks. The caller locks for set() and erase().
class HandleMap {
 public:
  TACHO_RUN_OFTEN void* find(const void* handle) const {
    const uint64_t word = table_.load(std::memory_order_acquire);
    if (word == 0) return nullptr;
    const Table* const table = table_of(word);
    const uint32_t mask = mask_of(word);
    for (uint32_t at = hash(handle) & mask;; at = (at + 1) & mask) {
      const void* const key = table->slots[at].key.load(std::memory_order_acquire);
      if (key == handle) return table->slots[at].value.load(std::memory_order_acquire);
      if (key == nullptr) return nullptr;
    }
  }
  void set(const void* handle, void* value);
  /// Returns the value that `handle` had.
  void* erase(const void* handle);
  /// Erases all. Under the caller's lock, too.
  void clear();
  template <typename Body>
  void for_each(Body body) const {
    const uint64_t word = table_.load(std::memory_order_acquire);
    if (word == 0) return;
    const Table* const table = table_of(word);
    for (uint32_t i = 0; i <= mask_of(word); ++i)
      if (void* const value = table->slots[i].value.load(std::memory_order_acquire))
        body(table->slots[i].key.load(std::memory_order_acquire), value);
  }

 private:
  struct Slot {
    std::atomic<const void*> key;
    std::atomic<void*> value;  // null: erased
  };
  struct Table {
    uint32_t mask;
    uint32_t used;  // slots with a key
    uint32_t live;  // slots with a value
    uint32_t spare;
    Slot slots[1];
  };
  static uint32_t hash(const void* handle) {
    const uint64_t word = reinterpret_cast<uintptr_t>(handle) * 0x9e3779b97f4a7c15ULL;
    return static_cast<uint32_t>(word >> 32);
  }
  // The table, which lies on a page, and how many slots it has, as a power of two: a search reads no line but these.
  //   63           12 11       6 5      0
  //   │ address / 4096 │    0    │ power │
  static Table* table_of(uint64_t word) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the low bits of an address on a page are free
    return reinterpret_cast<Table*>(word & ~uint64_t{4095});
  }
  static uint32_t mask_of(uint64_t word) { return static_cast<uint32_t>((uint64_t{1} << (word & 63)) - 1); }
  static uint64_t word_of(const Table* table);
  Table* table() const { return table_of(table_.load(std::memory_order_relaxed)); }
  static Table* make(uint32_t capacity);
  static void put(Table& table, const void* handle, void* value);
  bool make_room();

  std::atomic<uint64_t> table_{0};
  Table* resting_ = nullptr;  // the previous table, reused for the next of the same size
};

}  // namespace tacho::capture
