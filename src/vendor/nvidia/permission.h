// Permission to read hardware counters on NVIDIA GPUs: the sentence for users who lack it.
#pragma once

namespace tacho::vendor {

/// tacho says it before the start where the driver's settings tell, the target where CUPTI refuses.
inline constexpr char kCountersRefused[] =
    "the NVIDIA driver lets only administrators read hardware counters: run as root (in a container with the "
    "capability SYS_ADMIN or PERFMON), or load the nvidia module with NVreg_RestrictProfilingToAdminUsers=0 "
    "(developer.nvidia.com/ERR_NVGPUCTRPERM)";

}  // namespace tacho::vendor
