// Samples a target's call stacks from outside, by the kernel (perf_event_open), for programs that cannot load
// libtacho.so. Native frames only; the target need not cooperate.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "decode/outside.h"

namespace tacho::launch {

class PerfSampler {
 public:
  /// Opens a sampler for a process that has not called exec yet. Sampling starts at the exec and follows threads and
  /// children. Copies at most `stack_bytes` per sample. The error says what forbids sampling and what to do.
  static Result<std::unique_ptr<PerfSampler>> open(pid_t target, uint32_t hz, uint32_t stack_bytes);
  ~PerfSampler();
  PerfSampler(const PerfSampler&) = delete;
  PerfSampler& operator=(const PerfSampler&) = delete;

  /// Passes the kernel's records to `stacks` in order of time, samples only of times (CLOCK_MONOTONIC_RAW ns) that are
  /// `wanted`. CPU time of a thread that has no sample, by the kernel's count at the thread's end, comes with a later
  /// call. Returns the number of samples that the kernel dropped.
  uint64_t read(decode::OutsideStacks& stacks, const std::function<bool(int64_t time)>& wanted);
  /// False if samples lack the time spent in the kernel (kernel.perf_event_paranoid is 2).
  bool kernel_time() const { return kernel_time_; }

 private:
  PerfSampler() = default;
  struct Ring {
    int file = -1;
    void* memory = nullptr;
  };
  // A thread: what the kernel counted for it, on all CPUs, and what its samples stand for.
  struct Thread {
    uint64_t sampled = 0, counted = 0;  // ns
    uint32_t pid = 0;
    int64_t ended = 0;
    bool told = false;  // by an earlier read(): no CPU's count is missing any more
  };
  struct Record {
    uint64_t time;
    uint64_t order;
    std::vector<std::byte> bytes;  // with the header
  };
  std::vector<Record> take();
  void tell_rests(decode::OutsideStacks& stacks, const std::function<bool(int64_t time)>& wanted);

  std::vector<Ring> rings_;
  std::unordered_map<uint32_t, Thread> threads_;  // by tid
  uint64_t period_ = 0;
  uint32_t stack_bytes_ = 0;
  bool kernel_time_ = true;
};

}  // namespace tacho::launch
