// Markers of a program that was running when tacho attached: through NVTX and ROCTx.
#pragma once

namespace tacho::capture::marker {

/// Leads what the program has got of NVTX and ROCTx to tacho, again whenever it has loaded libraries since.
void start_late();
/// Gives all of it back.
void leave_late();
/// In a forked child, which keeps what leads to tacho's functions: those only pass calls on there.
void leave_late_in_child();

}  // namespace tacho::capture::marker
