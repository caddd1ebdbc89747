// From handles of a vendor's runtime to what tacho knows of them, for use inside other people's processes.
#pragma once

#include <atomic>
#include <cstdint>

namespace tacho::capture {

/// Handle -> state. find() takes no lock and never blocks. The caller locks for set() and erase().
class HandleMap {
 public:
  void* find(const void* handle) const {
    const Table* const table = table_.load(std::memory_order_acquire);
    if (table == nullptr) return nullptr;
    for (uint32_t at = hash(handle) & table->mask;; at = (at + 1) & table->mask) {
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
    const Table* const table = table_.load(std::memory_order_acquire);
    if (table == nullptr) return;
    for (uint32_t i = 0; i <= table->mask; ++i)
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
  static Table* make(uint32_t capacity);
  static void put(Table& table, const void* handle, void* value);
  bool make_room();

  std::atomic<Table*> table_{nullptr};
  Table* resting_ = nullptr;  // the previous table, reused for the next of the same size
};

}  // namespace tacho::capture
