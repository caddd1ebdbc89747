// Permission to read hardware counters on NVIDIA GPUs: the sentence for users who lack it.
#pragma once

namespace tacho::vendor {

/// tacho prints it before the start if the driver's settings forbid counters; the target prints it when CUPTI refuses.
inline constexpr char kCountersRefused[] =
    "the NVIDIA driver lets only administrators read hardware counters: run as root (in a container with the "
    "capability SYS_ADMIN or PERFMON), or load the nvidia module with NVreg_RestrictProfilingToAdminUsers=0 "
    "(developer.nvidia.com/ERR_NVGPUCTRPERM)";

}  // namespace tacho::vendor
