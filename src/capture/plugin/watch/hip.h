// HIP under `tacho watch`: what programs get in the place of its functions.
#pragma once

namespace tacho::capture::watch {

/// What to give to a program that asks for HIP's function `symbol` and would get `found`: a function of ours that calls
/// it, or `found`.
void* hooked_hip_symbol(const char* symbol, void* found);

/// From now on hooks only pass calls on: in a program that ran before tacho came, HIP is not watched. Whether it is
/// loaded.
bool end_hip();

}  // namespace tacho::capture::watch
