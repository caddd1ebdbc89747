// NVIDIA's management library behind GpuMonitor.
#pragma once

#include <sys/types.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vendor/gpu_monitor.h"

namespace tacho::vendor {

/// nullptr without the library or without GPUs; `problems` names parts that exist but do not work.
std::unique_ptr<GpuMonitor> nvml_monitor(std::vector<std::string>& problems);

/// The GPUs ("GPU-665505d7-...") on which any of these processes has a context. None where NVML does not tell: without
/// the library, or in a container whose processes have other numbers than the host knows.
std::vector<std::string> nvml_gpus_of(std::span<const pid_t> processes);

}  // namespace tacho::vendor
