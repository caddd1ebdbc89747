// ROCTx under `tacho watch`, for the one who answers dlsym, and in programs that ran before tacho came.
#pragma once

#include "capture/room/slots.h"

namespace tacho::capture::watch {

/// What to give to a program that asks for ROCTx's function `symbol` and would get `found`: a function of ours that
/// calls it, or `found`.
void* hooked_roctx_symbol(const char* symbol, void* found);
/// Its functions with those that stand in for them, at most `room`; how many. None where several libraries have them.
size_t roctx_hooks(SlotHook* into, size_t room);
/// Before another stay begins.
void forget_roctx_ranges();

}  // namespace tacho::capture::watch
