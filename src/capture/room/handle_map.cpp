// Growing and filling of handle maps (handle_map.h).
#include "capture/room/handle_map.h"

#include <bit>

#include "capture/room/pages.h"

namespace tacho::capture {

HandleMap::Table* HandleMap::make(uint32_t capacity) {
  auto* const table = static_cast<Table*>(map_pages(sizeof(Table) + capacity * sizeof(Slot)));
  if (table != nullptr) table->mask = capacity - 1;
  return table;
}

uint64_t HandleMap::word_of(const Table* table) {
  return reinterpret_cast<uint64_t>(table) | static_cast<uint64_t>(std::countr_zero(table->mask + 1));
}

void HandleMap::put(Table& table, const void* handle, void* value) {
  Slot* grave = nullptr;
  uint32_t at = hash(handle) & table.mask;
  for (;; at = (at + 1) & table.mask) {
    Slot& slot = table.slots[at];
    const void* const key = slot.key.load(std::memory_order_relaxed);
    if (key == handle) {
      if (slot.value.load(std::memory_order_relaxed) == nullptr) ++table.live;
      slot.value.store(value, std::memory_order_release);
      return;
    }
    if (key == nullptr) break;
    if (grave == nullptr && slot.value.load(std::memory_order_relaxed) == nullptr) grave = &slot;
  }
  Slot& slot = grave != nullptr ? *grave : table.slots[at];
  if (grave == nullptr) ++table.used;
  ++table.live;
  // Store the key first. A reader that sees it without its value treats the handle as unknown; one still looking for
  // the old key asks for a dead handle.
  slot.key.store(handle, std::memory_order_release);
  slot.value.store(value, std::memory_order_release);
}

bool HandleMap::make_room() {
  Table* const old = table();
  if (old == nullptr) {
    Table* const first = make(256);
    if (first == nullptr) return false;
    table_.store(word_of(first), std::memory_order_release);
    return true;
  }
  const uint32_t capacity = old->mask + 1;
  if (old->used * 2 < capacity) return true;
  const uint32_t wanted = old->live * 4 > capacity ? capacity * 2 : capacity;
  Table* fresh = resting_ != nullptr && resting_->mask + 1 == wanted ? resting_ : nullptr;
  if (fresh != nullptr) {
    for (uint32_t i = 0; i < wanted; ++i) {
      fresh->slots[i].value.store(nullptr, std::memory_order_relaxed);
      fresh->slots[i].key.store(nullptr, std::memory_order_relaxed);
    }
    fresh->used = fresh->live = 0;
  } else {
    fresh = make(wanted);
    if (fresh == nullptr) return old->used + 1 < capacity;
  }
  for (uint32_t i = 0; i < capacity; ++i)
    if (void* const value = old->slots[i].value.load(std::memory_order_relaxed))
      put(*fresh, old->slots[i].key.load(std::memory_order_relaxed), value);
  table_.store(word_of(fresh), std::memory_order_release);
  resting_ = old;
  return true;
}

void HandleMap::set(const void* handle, void* value) {
  if (handle == nullptr || !make_room()) return;
  put(*table(), handle, value);
}

void HandleMap::clear() {
  Table* const known = table();
  if (known == nullptr) return;
  for (uint32_t i = 0; i <= known->mask; ++i) known->slots[i].value.store(nullptr, std::memory_order_release);
  known->live = 0;
}

void* HandleMap::erase(const void* handle) {
  Table* const known = table();
  if (known == nullptr || handle == nullptr) return nullptr;
  for (uint32_t at = hash(handle) & known->mask;; at = (at + 1) & known->mask) {
    const void* const key = known->slots[at].key.load(std::memory_order_relaxed);
    if (key == nullptr) return nullptr;
    if (key != handle) continue;
    void* const value = known->slots[at].value.exchange(nullptr, std::memory_order_acq_rel);
    if (value != nullptr) --known->live;
    return value;
  }
}

}  // namespace tacho::capture
