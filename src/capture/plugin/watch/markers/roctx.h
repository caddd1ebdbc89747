// ROCTx under `tacho watch`, for the one who answers dlsym.
#pragma once

namespace tacho::capture::watch {

/// What to give to a program that asks for ROCTx's function `symbol` and would get `found`: a function of ours that
/// calls it, or `found`.
void* hooked_roctx_symbol(const char* symbol, void* found);

}  // namespace tacho::capture::watch
