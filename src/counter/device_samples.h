// Counters of whole devices over time, of whatever runs on them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launch/run/device_samples.h"

namespace tacho::counter {

struct SampleRequest {
  std::vector<std::string> counters;  ///< as the vendor's library names them; all must be sampled together
  int64_t interval_ns = 10'000'000;   ///< kLeastInterval to kMostInterval
  /// Whose devices are sampled: all of the machine where that is not known. Empty: those that a program has which this
  /// process starts, by the variables of its environment.
  std::vector<pid_t> processes;
};
inline constexpr int64_t kLeastInterval = 100'000, kMostInterval = 1'000'000'000;

/// Whether `counter` is written as one that is sampled, and not as one that is read inside a program.
bool is_sampled(std::string_view counter);

/// Sets the sampling up, by the first provider that has devices for it. The calling process must be single-threaded.
/// The error says what is missing, and what mends it.
Result<std::unique_ptr<launch::DeviceSamples>> sample_devices(const SampleRequest& request);

}  // namespace tacho::counter
