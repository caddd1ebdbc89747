// Telemetry of GPUs through a vendor's management library.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"

namespace tacho::vendor {

/// The quantities to read.
struct GpuSelection {
  std::optional<std::set<int>> gpus;  // only these GPUs; nullopt = all
  std::optional<std::set<std::string>>
      metrics;     // "busy", "temp", "power", "mem_usage", "clock", "pcie", "link", "energy"
  double hz = 10;  // rounds a second
};

struct GpuReading {
  std::string name;      // "GPU GFX Busy [0]"
  std::string unit;      // "%", "MHz", "B", "W", "deg C", ...
  std::string text;      // what it measures
  std::string category;  // "device_busy_gfx", "device_power", ...
  int gpu = 0;
  double value = 0;
};

/// GPUs of one vendor's management library. Each reading that the library refuses is left out.
class GpuMonitor {
 public:
  virtual ~GpuMonitor() = default;
  /// Library, driver and GPUs, for the trace's properties: (key, value).
  virtual std::vector<std::pair<std::string, std::string>> describe() const = 0;
  /// One round. A lost GPU is named in `problems` once and left out from then on.
  virtual void read(const GpuSelection& selection, std::vector<GpuReading>& out,
                    std::vector<std::string>& problems) = 0;

 protected:
  static constexpr const char* kBusyText = "share of time in which a kernel ran";
  static constexpr const char* kMemoryBusyText = "share of time in which device memory was read or written";
  static constexpr const char* kMediaBusyText = "share of time in which the busier of encoder and decoder worked";

  static bool wanted(const GpuSelection& selection, int gpu, const char* metric) {
    return (!selection.gpus || selection.gpus->contains(gpu)) &&
           (!selection.metrics || selection.metrics->contains(metric));
  }
  static void put(std::vector<GpuReading>& out, const char* name, int gpu, const char* unit, const char* text,
                  const char* category, double value) {
    out.push_back({fmt::format("GPU {} [{}]", name, gpu), unit, text, category, gpu, value});
  }
};

}  // namespace tacho::vendor
