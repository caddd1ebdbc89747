// Lines of memory in other people's programs: these have filled the caches with their own, so that each line of ours is
// waited for.
#pragma once

namespace tacho::capture {

/// What each operation reads lies together.
#define TACHO_READ_OFTEN __attribute__((section("tacho_often")))
/// Code that each operation runs, in one piece; and code that few operations run, which lies elsewhere.
#define TACHO_RUN_OFTEN __attribute__((always_inline)) inline
#define TACHO_RUN_SELDOM __attribute__((noinline, cold))

/// Has a line that is written after the program's call brought here meanwhile: the call takes longer than that. A
/// locked instruction would wait for its line, and for all that were written before.
inline void await_line(const void* at) {
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(at)));
}

}  // namespace tacho::capture
