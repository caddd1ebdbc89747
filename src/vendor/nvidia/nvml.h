// NVIDIA's management library behind GpuMonitor.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vendor/gpu_monitor.h"

namespace tacho::vendor {

/// nullptr without the library or without GPUs; `problems` says what is there but does not work.
std::unique_ptr<GpuMonitor> nvml_monitor(std::vector<std::string>& problems);

}  // namespace tacho::vendor
