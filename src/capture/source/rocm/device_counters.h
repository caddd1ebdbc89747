// Hardware counters of whole GPUs while the program runs (configuration: device_counters), through rocprofiler-sdk's
// device counting: a thread of ours reads them every device_counter_ms, and the readings go to the pool.
#pragma once

#include "vendor/amd/sdk.h"

namespace tacho::capture::rocm {

/// From initialize_sdk(), the only moment in which services can be set up. `library`: the SDK's handle. Says what
/// cannot be read.
void set_up_device_counters(uint32_t version, void* library);
/// The program or the library ends: no reading is under way afterwards.
void end_device_counters();

}  // namespace tacho::capture::rocm
