// HIP under `tacho watch`: what programs get in the place of its functions.
#pragma once

#include <cstddef>

#include "capture/room/slots.h"

namespace tacho::capture::watch {

/// What to give to a program that asks for HIP's function `symbol` and would get `found`: a function of ours that calls
/// it, or `found`.
void* hooked_hip_symbol(const char* symbol, void* found);

// In a program that ran before tacho came, as in cuda.h:

/// HIP's functions with the hooks that stand in for them, `room` at most. 0 if HIP is not loaded.
size_t hip_hooks(SlotHook* into, size_t room);
/// Before operations are counted in another table than before.
void begin_hip();
/// Called ten times a second: captures that were under way when tacho came become unlikely.
void age_hip_captures();
/// Reads the times of what ends within a second, counts the others as lost, and destroys our events.
void drain_hip();
/// From now on hooks only pass calls on.
void end_hip();

}  // namespace tacho::capture::watch
