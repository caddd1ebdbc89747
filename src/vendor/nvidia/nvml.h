// NVIDIA's management library behind GpuMonitor.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vendor/gpu_monitor.h"

namespace tacho::vendor {

/// nullptr without the library or without GPUs; `problems` names parts that exist but do not work.
std::unique_ptr<GpuMonitor> nvml_monitor(std::vector<std::string>& problems);

}  // namespace tacho::vendor
