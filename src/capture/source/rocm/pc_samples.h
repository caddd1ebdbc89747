// PC sampling on AMD GPUs, in the target: rocprofiler-sdk samples, and its records go to the spool as they are
// (vendor/amd/sdk_sampling.h), with the dispatches and the code that they refer to.
#pragma once

#include "capture/counter_spool.h"
#include "vendor/amd/sdk_counting.h"

namespace tacho::capture::rocm::pc_samples {

/// The result of rocprofiler_configure in a run that samples; nullptr if this process cannot sample, with a warning to
/// the user. `wanted` is the spool's setting, "METHOD UNIT INTERVAL" with the library's numbers; both arguments stay.
vendor::sdk::ConfigureResult* configure(uint32_t version, const char* wanted, counter::CounterSpool& spool,
                                        const void* caller);

}  // namespace tacho::capture::rocm::pc_samples
