// Counters of whole devices over time, of whatever runs on them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/run/device_samples.h"

namespace tacho::counter {

struct SampleRequest {
  std::vector<std::string> counters;  ///< as the vendor's library names them; all must be sampled together
  int64_t interval_ns = 10'000'000;   ///< kLeastInterval to kMostInterval
  std::vector<pid_t> processes;       ///< whose devices are sampled; all of the machine where that is not known
};
inline constexpr int64_t kLeastInterval = 100'000, kMostInterval = 1'000'000'000;

/// Sets the sampling up, by the first provider that has devices for it. The calling process must be single-threaded.
/// The error says what is missing, and what mends it.
Result<std::unique_ptr<launch::DeviceSamples>> sample_devices(const SampleRequest& request);

}  // namespace tacho::counter
