// AMD's two management libraries behind GpuMonitor.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vendor/gpu_monitor.h"

namespace tacho::vendor {

/// nullptr without the library or without GPUs; `problems` names parts that exist but do not work.
std::unique_ptr<GpuMonitor> amd_smi_monitor(std::vector<std::string>& problems);
std::unique_ptr<GpuMonitor> rocm_smi_monitor(std::vector<std::string>& problems);

}  // namespace tacho::vendor
