// CPU counters of a target's threads (perf_event_open): read at every sample of a thread's call stack, and before and
// after every call that launches device work. Configuration: cpu_events.
#pragma once

#include <atomic>
#include <cstdint>

namespace tacho::capture::sampler {

/// Starts counting if the configuration asks for it. Threads are counted from their first sample or launch on.
void start_counts();
/// In the handler of a sample: writes the thread's counts since the sample before.
void sample_counts(uint64_t time);
/// The calling thread ends.
void end_counts();

/// Set while launching calls are counted.
extern std::atomic<bool> g_counting;
void begin_call_counts();
/// `time`: host time of the call's end.
void end_call_counts(uint64_t correlation, uint64_t time);
inline bool counts_calls() {
  return __builtin_expect(g_counting.load(std::memory_order_relaxed), 0);
}

/// Around a call that launches device work. Costs one load when nothing is counted, else two or three system calls per
/// event at each end.
class CallCounts {
 public:
  CallCounts() {
    if (counts_calls()) begin_call_counts();
  }
  void end(uint64_t correlation, uint64_t time) const {
    if (counts_calls()) end_call_counts(correlation, time);
  }
};

}  // namespace tacho::capture::sampler
