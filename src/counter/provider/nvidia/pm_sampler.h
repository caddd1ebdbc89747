// Samples of a whole GPU's counters (CUPTI's PM sampling): the GPU writes them at an interval of its own, whatever runs
// on it, and no program takes part.
#pragma once

#include <string>

#include "counter/device_samples.h"
#include "launch/run/device_samples.h"

namespace tacho::counter::nvidia {

/// Samples the GPUs of this machine that the processes use, until tacho asks for the end. Runs in a process of its own.
void sample_gpus(const SampleRequest& request, launch::SampleSender& sender);

/// How a row of table counter names the unit of a metric, from CUPTI's dimension: "byte/second" is "B/s", "percent"
/// "%"; counts have none, counts per second "1/s".
std::string unit_of(const std::string& dimension);

}  // namespace tacho::counter::nvidia
