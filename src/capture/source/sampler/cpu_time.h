// The CPU time of threads that no sample has stood for yet.
//
// The kernel looks at a thread's timer when its own clock ticks, so a thread that lives shorter than a tick or a period
// often ends without a sample, and every thread ends some time after its last one. Samples stand for what the thread's
// own clock says, not for periods; what a thread has left at its end goes to the first sample of a later thread that
// began with the same function. So the time of all samples of such threads is what the kernel says, and its shares are
// those of the moments at which the samples were taken.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tacho::capture::sampler {

/// CPU time left by threads that have ended, by the function with which they began. All 0 at first; every thread calls
/// it, signal handlers included.
class LeftTime {
 public:
  struct Part {
    std::atomic<uintptr_t> routine;
    std::atomic<uint64_t> ns;
    std::atomic<uint32_t> tid;  // the thread that left some last
  };
  static constexpr size_t kParts = 64;

  void add(uintptr_t routine, uint32_t tid, uint64_t ns) {
    if (ns == 0) return;
    Part& part = part_of(routine);
    part.ns.fetch_add(ns, std::memory_order_relaxed);
    part.tid.store(tid, std::memory_order_relaxed);
  }

  /// Takes time for the first sample of a thread, whose own time is `own`. A sample stands for a `period` on average;
  /// half of what is left goes with it if that is more, so that little stays however the kernel ticks.
  uint64_t take(uintptr_t routine, uint64_t own, uint64_t period) {
    Part& part = part_of(routine);
    uint64_t there = part.ns.load(std::memory_order_relaxed), taken;
    do {
      const uint64_t missing = period > own ? period - own : 0;
      taken = missing > there / 2 ? missing : there / 2;
      if (taken > there) taken = there;
    } while (taken != 0 && !part.ns.compare_exchange_weak(there, there - taken, std::memory_order_relaxed));
    return taken;
  }

  /// Empties all parts; `told(routine, tid, ns)` for each that was not empty. Routine 0: threads that began nobody
  /// knows where.
  template <typename Told>
  void take_all(Told told) {
    for (Part& part : parts_)
      if (const uint64_t ns = part.ns.exchange(0, std::memory_order_relaxed); ns != 0)
        told(part.routine.load(std::memory_order_relaxed), part.tid.load(std::memory_order_relaxed), ns);
  }
  /// In a forked child, whose parent's threads are not its own.
  void clear() {
    for (Part& part : parts_) part.ns.store(0, std::memory_order_relaxed);
  }

 private:
  // Part 0 is that of routine 0, and of those that find no part of their own.
  Part& part_of(uintptr_t routine) {
    if (routine == 0) return parts_[0];
    for (size_t tried = 0, at = (routine >> 4) * 0x9e3779b97f4a7c15ULL >> 58; tried < 8; ++tried, ++at) {
      Part& part = parts_[1 + at % (kParts - 1)];
      uintptr_t there = part.routine.load(std::memory_order_relaxed);
      if (there == 0 && part.routine.compare_exchange_strong(there, routine, std::memory_order_relaxed)) return part;
      if (there == routine) return part;
    }
    return parts_[0];
  }

  Part parts_[kParts];
};

}  // namespace tacho::capture::sampler
