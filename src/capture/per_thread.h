// State per thread without thread-local memory: arrays by the thread's index in the pool, mapped in chunks when first
// needed. A forked child's threads start with cleared state. Usable in signal handlers.
#pragma once

#include <string.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "capture/room/pages.h"
#include "tape/writer.h"

namespace tacho::capture {

/// T must be valid when all its bytes are 0 and begin with `uint64_t generation`, which belongs to this class.
template <typename T>
class PerThread {
 public:
  /// State of the calling thread. nullptr if the process is not traced, is out of memory or has too many threads.
  T* get() {
    const uint32_t index = tape::thread_index();
    if (index == 0) return nullptr;
    T* const state = at(index);
    if (state == nullptr) return nullptr;
    const uint64_t generation = tape::process_generation();
    if (__builtin_expect(state->generation != generation, 0)) {
      memset(static_cast<void*>(state), 0, sizeof *state);
      state->generation = generation;
    }
    return state;
  }
  /// State behind an index, of whatever generation; nullptr if there is no room for it.
  T* at(uint32_t index) {
    if (index >= kChunk * kChunks) return nullptr;
    std::atomic<T*>& slot = chunks_[index / kChunk];
    T* chunk = slot.load(std::memory_order_acquire);
    if (__builtin_expect(chunk == nullptr, 0)) {
      chunk = map(slot);
      if (chunk == nullptr) return nullptr;
    }
    return chunk + index % kChunk;
  }

 private:
  static constexpr uint32_t kChunk = 256;
  static constexpr uint32_t kChunks = 4096;

  static T* map(std::atomic<T*>& slot) {
    constexpr size_t kBytes = kChunk * sizeof(T);
    void* const memory = map_pages(kBytes);
    if (memory == nullptr) return nullptr;
    T* expected = nullptr;
    T* const fresh = static_cast<T*>(memory);
    if (slot.compare_exchange_strong(expected, fresh, std::memory_order_acq_rel)) return fresh;
    munmap(memory, kBytes);
    return expected;
  }

  std::atomic<T*> chunks_[kChunks] = {};
};

}  // namespace tacho::capture
