// Functions of drivers whose first instructions tacho changes from outside so that all calls come here, whoever holds
// their addresses (event/watch_patches.h): what is asked for, and what has become of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capture/room/slots.h"

namespace tacho::capture::watch {

/// Before tacho is answered. Returns what tacho needs to know of this process: event::WatchProcess::patches.
uint64_t begin_patches();
/// Asks for patches of functions for which none were asked yet. No memory near a function: it is not asked for.
void ask_for_patches(const SlotHook* hooks, size_t count);
/// Whether the function leads to its hook, or will: what it is called by stays as it is.
bool is_patched(const void* function);
/// Whether tacho has not answered yet.
bool awaits_patches();
/// tacho has answered since: 0, or what note_answers() needs when hooks of refused functions are there.
uint32_t new_answers();
void note_answers(uint32_t answers);
/// Waits until tacho has taken the patches out, for as long as `lives` says that it can.
void await_taken_out(bool (*lives)());

}  // namespace tacho::capture::watch
