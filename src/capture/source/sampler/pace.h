// How often a thread can be sampled at most.
#pragma once

#include <cstdint>

namespace tacho::capture::sampler {

/// Of one thread, all 0 at first. After a sample the thread goes on for at least three times as long as the sample took
/// before the next one: where a sample takes as long as the period (deep stacks, slow memory, a wall clock of 10,000
/// Hz), timers alone would leave the program no time at all. A quarter of the time is what Linux grants perf, too
/// (kernel.perf_cpu_time_max_percent). The periods of samples that are not taken are added to the next one, so that the
/// time of all samples stays the thread's.
class Pace {
 public:
  /// Call at a timer's signal that stands for `periods`. Returns the periods of the sample to take now, 0 = take none.
  uint64_t take(uint64_t now, uint64_t periods) {
    waiting_ += periods;
    if (now < next_) return 0;
    const uint64_t all = waiting_;
    waiting_ = 0;
    return all;
  }
  /// A sample was taken; both times on the clock of take().
  void taken(uint64_t begin, uint64_t end) { next_ = end + 3 * (end - begin); }

 private:
  uint64_t next_, waiting_;
};

}  // namespace tacho::capture::sampler
