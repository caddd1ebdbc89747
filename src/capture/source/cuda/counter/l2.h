// Emptying a GPU's L2 through the NVIDIA kernel driver: CUDA has no call for it.
#pragma once

#include <cstdint>

namespace tacho::capture::counter {

/// A GPU as the kernel driver knows it. Open as long as the process lives.
struct L2 {
  int file = -1;
  uint32_t client = 0, subdevice = 0;
};

/// Finds the GPU by its address as cuDeviceGetPCIBusId() writes it ("0000:1b:00.0"). nullptr, or what went wrong.
const char* open_l2(const char* pci, L2& into);

void close_l2(L2& l2);

/// Writes back what is dirty and invalidates every line. The GPU must have nothing to do. False when the driver refuses; a
/// driver of a virtual GPU says yes and does nothing, so whoever relies on it looks once whether it works.
bool empty_l2(const L2& l2);

}  // namespace tacho::capture::counter
