// CUDA's driver under `tacho watch`: what programs get in the place of its functions.
#pragma once

#include <cstddef>

#include "capture/room/slots.h"

namespace tacho::capture::watch {

/// What to give to a program that asks for the driver's `symbol` (its whole name, as in "cuMemcpyHtoD_v2_ptds") and
/// would get `found`: a function of ours that calls it, or `found`.
void* hooked_driver_symbol(const char* symbol, void* found);

// In a program that ran before tacho came:

/// The driver's functions that programs may have got, with the hooks that stand in for them: room for kMostSlotHooks. 0
/// if the driver is not loaded. Each hook knows afterwards what to call.
size_t driver_hooks(SlotHook* into);
/// Our own dlsym, as one hook more.
SlotHook dlsym_hook();
/// Before operations are counted in another table than before.
void begin_driver();
/// Called ten times a second: captures that were under way when tacho came become unlikely.
void age_captures();
/// Reads the times of what ends within a second, counts the others as lost, and destroys our events. While the hooks
/// are still there, which see contexts go; no operation is timed any more.
void drain_driver();
/// From now on hooks only pass calls on.
void end_driver();

}  // namespace tacho::capture::watch
