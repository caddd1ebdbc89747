// The time of a GPU's samples: its own timer, related to CLOCK_MONOTONIC_RAW.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vendor/nvidia/resource_manager.h"

namespace tacho::counter::nvidia {

/// Moments of the GPU's timer and of the host's clock, and lines between them.
class ClockPairs {
 public:
  /// `error`: half of the time within which the GPU's timer was read. Pairs come in ascending order; one that does not
  /// is left out.
  void add(uint64_t gpu, int64_t host, int64_t error);
  bool empty() const { return pairs_.empty(); }
  /// The host's time. Before the first and after the last pair both clocks are taken to be equally fast.
  int64_t host_time(uint64_t gpu) const;
  /// The largest of add()'s.
  int64_t error() const { return error_; }

 private:
  static constexpr size_t kMost = 64;
  struct Pair {
    uint64_t gpu;
    int64_t host;
  };
  std::vector<Pair> pairs_;  // the newest
  int64_t error_ = 0;
};

/// Reads a GPU's timer through the kernel driver, which CUDA has no call for.
class GpuTimer {
 public:
  GpuTimer() = default;
  ~GpuTimer() { vendor::rm::close_gpu(gpu_); }
  GpuTimer(GpuTimer&& other) noexcept : gpu_(other.gpu_) { other.gpu_ = {}; }
  GpuTimer& operator=(GpuTimer&&) = delete;

  /// False where the driver does not let tacho.
  bool open(const std::string& pci);
  /// Adds the present moment. False when the timer cannot be read.
  bool read(ClockPairs& into) const;

 private:
  vendor::rm::Gpu gpu_;
};

}  // namespace tacho::counter::nvidia
