// --device-counters and --device-counters-hz: counters of whole devices over time. Those of some vendors are read
// inside the program (event::Configuration), others are sampled beside it (counter/device_samples.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "event/configuration_text.h"
#include "launch/run/device_samples.h"

namespace tacho::cli {

struct DeviceCounters {
  std::vector<std::string> sampled;  ///< by tacho, beside the program
  double hz = 10;                    ///< samples a second
};

/// Takes "A,B": each name goes where such names are read. Fails on what is no name.
Status choose_device_counters(const std::string& list, event::Configuration& target, DeviceCounters& counters);
Status choose_counter_rate(const std::string& text, event::Configuration& target, DeviceCounters& counters);

/// Sets up what is sampled; nullptr where nothing is. The calling process must be single-threaded.
Result<std::unique_ptr<launch::DeviceSamples>> set_up_samples(const DeviceCounters& counters);
/// A line on stderr where not one sample came of it, after the run.
void tell_no_samples(const launch::DeviceSamples* samples);

}  // namespace tacho::cli
