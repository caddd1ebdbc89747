// Counting on AMD GPUs: rocprofiler-sdk calls for each dispatch, and the values of all units go to the spool
// (event/spool/spool_instances.h).
#pragma once

#include "vendor/amd/sdk_counting.h"

namespace tacho::capture::rocm::counting {

/// True in a run that counts instead of tracing.
bool wanted();
/// The result of rocprofiler_configure in such a run; nullptr if this process is not to count. `version` is the SDK's,
/// `caller` an address in it.
vendor::sdk::ConfigureResult* configure(uint32_t version, vendor::sdk::ClientId* client, const void* caller);

}  // namespace tacho::capture::rocm::counting
