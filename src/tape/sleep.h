// Lets tacho's threads sleep on a word of the pool and any process that maps the pool wake them, with a futex. Also
// maps the pool so that a block costs one page fault.
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tape/layout.h"

namespace tacho::tape {

/// Waits until `word` differs from `seen`, another thread wakes it, or `ns` have passed (negative: no limit).
inline void wait_on(std::atomic<uint32_t>& word, uint32_t seen, int64_t ns) {
  const timespec time{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, ns < 0 ? nullptr : &time, nullptr, 0);
}
inline void wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, 1 << 30, nullptr, nullptr, 0);
}

/// Wakes the thread that sleeps on `sleeps`; almost free when none does. Preserves errno.
inline void wake_sleeper(std::atomic<uint32_t>& sleeps) {
  if (sleeps.load() == 0 || sleeps.exchange(0) == 0) return;
  const int error = errno;
  wake_all(sleeps);
  errno = error;
}

/// Sleeps on `sleeps` for at most `ns` (negative: until woken), unless `needed()` is already true. A thread that makes
/// it true after that check must call wake_sleeper().
template <typename Needed>
void sleep_on(std::atomic<uint32_t>& sleeps, int64_t ns, Needed needed) {
  sleeps.store(1);
  if (!needed()) wait_on(sleeps, 1, ns);
  sleeps.store(0);
}

/// Maps the pool's file, shared, at a multiple of the block size. The first read of a block then maps all of its pages
/// with one fault, since the kernel maps the surrounding aligned 64 KiB; a fault per page would cost 20 us a block.
/// MAP_FAILED when there is no room.
inline void* map_pool(int file, size_t size) {
  void* const room = mmap(nullptr, size + kBlockSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  char* const begin = static_cast<char*>(room);
  const size_t skipped = (kBlockSize - reinterpret_cast<uintptr_t>(room) % kBlockSize) % kBlockSize;
  void* const at = mmap(begin + skipped, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  if (at == MAP_FAILED) {
    munmap(room, size + kBlockSize);
    return MAP_FAILED;
  }
  if (skipped != 0) munmap(begin, skipped);
  munmap(begin + skipped + size, kBlockSize - skipped);
  return at;
}

}  // namespace tacho::tape
