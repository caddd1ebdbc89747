// AMD GPUs of this machine as the kernel driver shows them, and where rocprofiler-sdk is.
#pragma once

#include <string>
#include <vector>

#include "counter/provider.h"

namespace tacho::counter::amd {

/// The GPUs under `nodes` (/sys/class/kfd/kfd/topology/nodes), numbered in its order, as HIP does. One whose
/// architecture is not in the catalog, or has no metrics there, is left out; `unknown` names it.
std::vector<Device> devices_of(const std::string& nodes, std::vector<std::string>& unknown);

/// The architecture behind a node's `gfx_target_version`: 90402 is gfx942, 90010 gfx90a.
std::string architecture_named_by(uint64_t target_version);

/// librocprofiler-sdk.so where the loader or ROCm has it: LD_LIBRARY_PATH, $ROCM_PATH/lib, /opt/rocm/lib, the system's
/// folders. Empty if it is nowhere.
std::string find_sdk();

}  // namespace tacho::counter::amd
