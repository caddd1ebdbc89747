// Locks for use inside other people's processes: a word each, so that they can lie in pages that a forked child finds
// zeroed (MADV_WIPEONFORK) and a child never inherits a held one.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace tacho::capture {

/// A word that is 0 while nobody holds it.
using LockWord = std::atomic<uint32_t>;

/// Tries at most `tries` times, more slowly after the first hundred; true if it got the lock.
inline bool lock_within(LockWord& word, uint32_t tries) {
  for (uint32_t failed = 0; word.exchange(1, std::memory_order_acquire) != 0; ++failed) {
    if (failed == tries) return false;
    if (failed < 100)
      __builtin_ia32_pause();
    else
      sched_yield();
  }
  return true;
}
inline void lock(LockWord& word) {
  while (!lock_within(word, UINT32_MAX)) {
  }
}
inline bool try_lock(LockWord& word) {
  return word.exchange(1, std::memory_order_acquire) == 0;
}
/// For optional work: gives up when another thread, such as one that hangs in a vendor's runtime, holds the lock for
/// long.
inline bool lock_or_give_up(LockWord& word) {
  return lock_within(word, 20'000);
}
inline void unlock(LockWord& word) {
  word.store(0, std::memory_order_release);
}

/// Holds a lock while it lives.
class Guard {
 public:
  explicit Guard(LockWord& word) : word_(word) { lock(word_); }
  ~Guard() { unlock(word_); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  LockWord& word_;
};

}  // namespace tacho::capture
