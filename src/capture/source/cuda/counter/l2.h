// Empties a GPU's L2 through the NVIDIA kernel driver; CUDA has no call for it.
#pragma once

#include <cstdint>

namespace tacho::capture::counter {

/// A GPU opened through the kernel driver, for the life of the process.
struct L2 {
  int file = -1;
  uint32_t client = 0, subdevice = 0;
};

/// Opens the GPU with this PCI address, written as by cuDeviceGetPCIBusId() ("0000:1b:00.0"). Returns nullptr, or the
/// error.
const char* open_l2(const char* pci, L2& into);

void close_l2(L2& l2);

/// Writes back dirty lines and invalidates every line. The GPU must be idle. False when the driver refuses. The driver
/// of a virtual GPU accepts and does nothing, so callers must check once whether it works.
bool empty_l2(const L2& l2);

}  // namespace tacho::capture::counter
