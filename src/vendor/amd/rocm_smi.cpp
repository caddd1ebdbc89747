// ROCm SMI ($TACHO_ROCM_SMI or librocm_smi64.so): telemetry of AMD GPUs without AMD SMI. This file declares only the
// few functions that tacho calls, all with parameters that have stayed the same over the library's versions; structures
// that grew get buffers with room.
#include <string.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "vendor/amd/smi.h"
#include "vendor/gpu_monitor.h"
#include "vendor/library.h"

namespace tacho::vendor {
namespace {

class RocmSmi : public GpuMonitor {
 public:
  static std::unique_ptr<GpuMonitor> make(std::vector<std::string>& problems) {
    auto self = std::unique_ptr<RocmSmi>(new RocmSmi);
    self->library_ = Library::open(
        "TACHO_ROCM_SMI",
        {"librocm_smi64.so", "librocm_smi64.so.7", "librocm_smi64.so.1", "/opt/rocm/lib/librocm_smi64.so"}, problems);
    if (self->library_ == nullptr) return nullptr;
    const Library& library = *self->library_;
    int (*init)(uint64_t) = nullptr;
    int (*count)(uint32_t*) = nullptr;
    library.find(init, "rsmi_init");
    library.find(count, "rsmi_num_monitor_devices");
    library.find(self->shutdown_, "rsmi_shut_down");
    library.find(self->name_, "rsmi_dev_name_get");
    library.find(self->busy_, "rsmi_dev_busy_percent_get");
    library.find(self->memory_busy_, "rsmi_dev_memory_busy_percent_get");
    library.find(self->power_, "rsmi_dev_power_ave_get");
    library.find(self->temperature_, "rsmi_dev_temp_metric_get");
    library.find(self->memory_, "rsmi_dev_memory_usage_get");
    library.find(self->clock_, "rsmi_dev_gpu_clk_freq_get");
    library.find(self->pcie_, "rsmi_dev_pci_throughput_get");
    if (init == nullptr || count == nullptr) {
      problems.push_back("ROCm SMI lacks rsmi_init: no telemetry of AMD GPUs");
      self->shutdown_ = nullptr;
      return nullptr;
    }
    if (const int code = init(0); code != 0) {
      problems.push_back(fmt::format("ROCm SMI does not start (error {}): no telemetry of AMD GPUs", code));
      self->shutdown_ = nullptr;
      return nullptr;
    }
    uint32_t gpus = 0;
    if (count(&gpus) != 0) gpus = 0;
    for (uint32_t i = 0; i < gpus && i < 256; ++i) self->gpus_.push_back({i});
    if (self->gpus_.empty()) return nullptr;
    return self;
  }
  ~RocmSmi() override {
    if (shutdown_ != nullptr) shutdown_();
  }

  std::vector<std::pair<std::string, std::string>> describe() const override {
    std::vector<std::pair<std::string, std::string>> facts;
    char text[256] = {};
    for (const Gpu& gpu : gpus_)
      if (name_ != nullptr && name_(gpu.index, text, sizeof text) == 0)
        facts.emplace_back(fmt::format("telemetry.gpu{}.name", gpu.index), text);
    return facts;
  }

  void read(const GpuSelection& options, std::vector<GpuReading>& out, std::vector<std::string>& problems) override {
    for (Gpu& gpu : gpus_) {
      if (gpu.lost) continue;
      const auto index = static_cast<int>(gpu.index);
      bool any = false, asked = false;
      const auto good = [&](int code) {
        asked = true;
        any = any || code == 0;
        return code == 0;
      };
      uint32_t percent = 0;
      if (wanted(options, index, "busy")) {
        if (busy_ != nullptr && good(busy_(gpu.index, &percent)))
          put(out, "GFX Busy", index, "%", kBusyText, "device_busy_gfx", percent);
        if (memory_busy_ != nullptr && good(memory_busy_(gpu.index, &percent)))
          put(out, "UMC Busy", index, "%", kMemoryBusyText, "device_busy_umc", percent);
      }
      if (temperature_ != nullptr && wanted(options, index, "temp")) {
        int64_t millidegrees = 0;
        if (good(temperature_(gpu.index, 1, 0, &millidegrees)) || good(temperature_(gpu.index, 0, 0, &millidegrees)))
          put(out, "Temperature", index, "deg C", "temperature of the chip", "device_temp",
              static_cast<double>(millidegrees) / 1000);
      }
      if (power_ != nullptr && wanted(options, index, "power")) {
        uint64_t microwatts = 0;
        if (good(power_(gpu.index, 0, &microwatts)))
          put(out, "Current Power", index, "W", "mean power of the last moment", "device_power",
              static_cast<double>(microwatts) * 1e-6);
      }
      if (memory_ != nullptr && wanted(options, index, "mem_usage")) {
        uint64_t bytes = 0;
        if (good(memory_(gpu.index, 0, &bytes)))
          put(out, "Memory Usage", index, "B", "device memory in use", "device_memory_usage",
              static_cast<double>(bytes));
      }
      if (clock_ != nullptr && wanted(options, index, "clock")) {
        for (const auto& [kind, name] : {std::pair{0, "Core Clock"}, std::pair{4, "Memory Clock"}}) {
          const double hertz = frequency(gpu.index, kind, good);
          if (hertz > 0)
            put(out, name, index, "MHz", kind == 0 ? "clock of the compute units" : "clock of device memory",
                "device_clock", hertz * 1e-6);
        }
      }
      // This one measures for a second inside the call: only when asked for by name.
      if (pcie_ != nullptr && options.metrics && wanted(options, index, "pcie")) {
        uint64_t sent = 0, received = 0, packet = 0;
        if (good(pcie_(gpu.index, &sent, &received, &packet))) {
          put(out, "PCIe Sent", index, "B/s", "bytes that the GPU sent over PCIe", "device_pcie",
              static_cast<double>(sent * packet));
          put(out, "PCIe Received", index, "B/s", "bytes that the GPU received over PCIe", "device_pcie",
              static_cast<double>(received * packet));
        }
      }
      if (asked && !any && ++gpu.failures == 5) {
        gpu.lost = true;
        problems.push_back(
            fmt::format("GPU {} was lost during the run (ROCm SMI answers nothing): its telemetry ends there", index));
      }
      if (any) gpu.failures = 0;
    }
  }

 private:
  struct Gpu {
    uint32_t index;
    bool lost = false;
    int failures = 0;
  };
  // rsmi_frequencies_t: formerly {uint32 count, current; uint64 Hz[]}, with a bool before it since ROCm 6. The bytes
  // written show which: the old form has its first frequency where the new one has a small number.
  template <typename Good>
  double frequency(uint32_t gpu, int kind, Good good) {
    alignas(8) unsigned char bytes[2048];
    memset(bytes, 0xff, sizeof bytes);
    if (!good(clock_(gpu, kind, bytes))) return 0;
    const auto word = [&](size_t at) {
      uint32_t value;
      memcpy(&value, bytes + at, sizeof value);
      return value;
    };
    const auto hertz = [&](size_t at) {
      uint64_t value;
      memcpy(&value, bytes + at, sizeof value);
      return value;
    };
    const bool old = hertz(8) >= 1'000'000 && hertz(8) < 100'000'000'000;
    const uint32_t current = word(old ? 4 : 8);
    const size_t first = old ? 8 : 16;
    if (current > 64) return 0;
    const uint64_t value = hertz(first + current * 8);
    return value < 100'000'000'000 ? static_cast<double>(value) : 0;
  }

  std::unique_ptr<Library> library_;
  std::vector<Gpu> gpus_;
  int (*shutdown_)() = nullptr;
  int (*name_)(uint32_t, char*, size_t) = nullptr;
  int (*busy_)(uint32_t, uint32_t*) = nullptr;
  int (*memory_busy_)(uint32_t, uint32_t*) = nullptr;
  int (*power_)(uint32_t, uint32_t, uint64_t*) = nullptr;
  int (*temperature_)(uint32_t, uint32_t, int, int64_t*) = nullptr;
  int (*memory_)(uint32_t, int, uint64_t*) = nullptr;
  int (*clock_)(uint32_t, int, void*) = nullptr;
  int (*pcie_)(uint32_t, uint64_t*, uint64_t*, uint64_t*) = nullptr;
};

}  // namespace

std::unique_ptr<GpuMonitor> rocm_smi_monitor(std::vector<std::string>& problems) {
  return RocmSmi::make(problems);
}

}  // namespace tacho::vendor
