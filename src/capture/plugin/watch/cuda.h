// CUDA's driver under `tacho watch`: what programs get in the place of its functions.
#pragma once

namespace tacho::capture::watch {

/// What to give to a program that asks for the driver's `symbol` (its whole name, as in "cuMemcpyHtoD_v2_ptds") and
/// would get `found`: a function of ours that calls it, or `found`.
void* hooked_driver_symbol(const char* symbol, void* found);

}  // namespace tacho::capture::watch
