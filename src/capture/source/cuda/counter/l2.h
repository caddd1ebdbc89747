// Empties a GPU's L2 through the NVIDIA kernel driver; CUDA has no call for it.
#pragma once

#include "vendor/nvidia/resource_manager.h"

namespace tacho::capture::counter {

/// Writes back dirty lines and invalidates every line. The GPU must be idle. False when the driver refuses. The driver
/// of a virtual GPU accepts and does nothing, so callers must check once whether it works.
bool empty_l2(const vendor::rm::Gpu& gpu);

}  // namespace tacho::capture::counter
