// Telemetry of the machine's GPUs and of watched processes while tacho watches: read by tacho itself, so that programs
// pay nothing for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "vendor/gpu_monitor.h"

namespace tacho::watch {

/// Reads all GPUs once a second in a thread of its own. Without a vendor's management library there are no readings.
class GpuTelemetry {
 public:
  GpuTelemetry();
  ~GpuTelemetry();
  GpuTelemetry(const GpuTelemetry&) = delete;
  GpuTelemetry& operator=(const GpuTelemetry&) = delete;

  /// The newest round; empty before the first one.
  std::vector<vendor::GpuReading> latest() const;
  /// Sentences about libraries that do not work and GPUs that were lost, each once.
  std::vector<std::string> problems() const;

 private:
  void loop();

  mutable std::mutex lock_;
  std::condition_variable changed_;
  bool end_ = false;
  std::vector<vendor::GpuReading> latest_;
  std::vector<std::string> problems_;
  std::thread thread_;
};

/// Of "GPU Core Clock [0]" the words between: "Core Clock".
std::string_view quantity_of(const vendor::GpuReading& reading);

/// What a process has used so far, by /proc; nothing when it has gone.
struct ProcessUse {
  double user_s = 0, system_s = 0;
  uint64_t resident_bytes = 0, threads = 0;
};
std::optional<ProcessUse> process_use(uint32_t pid);

}  // namespace tacho::watch
