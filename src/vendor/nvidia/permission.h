// What stands between users and the hardware counters of NVIDIA GPUs, in sentences: permission, and another profiler.
#pragma once

namespace tacho::vendor {

/// tacho prints it before the start if the driver's settings forbid counters; the target prints it when CUPTI refuses.
inline constexpr char kCountersRefused[] =
    "the NVIDIA driver lets only administrators read hardware counters: run as root (in a container with the "
    "capability SYS_ADMIN or PERFMON), or load the nvidia module with NVreg_RestrictProfilingToAdminUsers=0 "
    "(developer.nvidia.com/ERR_NVGPUCTRPERM)";

/// Behind the name of a GPU or of what cannot be done. One profiler at a time has a GPU's counters.
inline constexpr char kCountersHeld[] =
    "something else holds its counters (Nsight Systems or Compute, DCGM's profiling, another tacho): end that, or let "
    "DCGM pause with dcgmi profile --pause";

}  // namespace tacho::vendor
