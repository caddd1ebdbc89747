// The system calls that libtacho.so may still make: a program may install a filter (seccomp) that kills it for the
// wrong one. tacho reads filters when they are installed (capture/filter.cpp) and leaves out forbidden calls from then
// on, as written beside each.
#pragma once

#include <atomic>
#include <cstdint>

namespace tacho::tape {

enum Call : uint32_t {
  kCallFutex = 1 << 0,  ///< waking tacho: it also checks ten times a second or more
  kCallGettid =
      1 << 1,  ///< a thread's first record: its id is read where libc keeps it, else it is dropped and counted
  kCallMemory = 1 << 2,    ///< mmap, munmap: names and stacks of ranges that need new memory are counted and dropped
  kCallRegister = 1 << 3,  ///< openat, readlink, ... of a forked child: its records are dropped and counted
  kCallName = 1 << 4,      ///< prctl: the name of a thread that ends is unknown
  kCallYield = 1 << 5,     ///< sched_yield: threads that define names at the same time spin
  kCallSample = 1 << 6,    ///< timers, signals, reading of memory: call stacks end, and a note says so
};

extern std::atomic<uint32_t> g_forbidden_calls;  // bits of Call
inline bool permitted(uint32_t calls) {
  return (g_forbidden_calls.load(std::memory_order_relaxed) & calls) == 0;
}

}  // namespace tacho::tape
