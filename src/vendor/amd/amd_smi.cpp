// AMD SMI ($TACHO_AMD_SMI or libamd_smi.so): telemetry of AMD GPUs. This file declares only the few functions that
// tacho calls, all with parameters that have stayed the same over the library's versions; structures that grew get
// buffers with room.
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

class AmdSmi : public GpuMonitor {
 public:
  static std::unique_ptr<GpuMonitor> make(std::vector<std::string>& problems) {
    auto self = std::unique_ptr<AmdSmi>(new AmdSmi);
    self->library_ = Library::open(
        "TACHO_AMD_SMI",
        {"libamd_smi.so", "/opt/rocm/lib/libamd_smi.so", "libamd_smi.so.27", "libamd_smi.so.26", "libamd_smi.so.25"},
        problems);
    if (self->library_ == nullptr) return nullptr;
    const Library& library = *self->library_;
    int (*init)(uint64_t) = nullptr;
    int (*sockets)(uint32_t*, void**) = nullptr;
    int (*processors)(void*, uint32_t*, void**) = nullptr;
    library.find(init, "amdsmi_init");
    library.find(sockets, "amdsmi_get_socket_handles");
    library.find(processors, "amdsmi_get_processor_handles");
    library.find(self->shutdown_, "amdsmi_shut_down");
    library.find(self->activity_, "amdsmi_get_gpu_activity");
    library.find(self->energy_, "amdsmi_get_energy_count");
    library.find(self->temperature_, "amdsmi_get_temp_metric");
    library.find(self->memory_, "amdsmi_get_gpu_memory_usage");
    library.find(self->clock_, "amdsmi_get_clock_info");
    library.find(self->pcie_, "amdsmi_get_gpu_pci_throughput");
    if (init == nullptr || sockets == nullptr || processors == nullptr) {
      problems.push_back("AMD SMI lacks amdsmi_init or its handles: ROCm SMI is tried instead");
      self->shutdown_ = nullptr;
      return nullptr;
    }
    if (const int code = init(2 /* GPUs */); code != 0) {
      problems.push_back(fmt::format("AMD SMI does not start (error {}): ROCm SMI is tried instead", code));
      self->shutdown_ = nullptr;
      return nullptr;
    }
    uint32_t count = 0;
    if (sockets(&count, nullptr) != 0) count = 0;
    std::vector<void*> all(std::min<uint32_t>(count, 256));
    count = static_cast<uint32_t>(all.size());
    if (count != 0 && sockets(&count, all.data()) != 0) all.clear();
    for (void* const socket : all) {
      uint32_t gpus = 0;
      if (processors(socket, &gpus, nullptr) != 0 || gpus == 0) continue;
      std::vector<void*> handles(std::min<uint32_t>(gpus, 256));
      gpus = static_cast<uint32_t>(handles.size());
      if (processors(socket, &gpus, handles.data()) != 0) continue;
      for (void* const handle : handles) self->gpus_.push_back({static_cast<int>(self->gpus_.size()), handle});
    }
    if (self->gpus_.empty()) return nullptr;
    return self;
  }
  ~AmdSmi() override {
    if (shutdown_ != nullptr) shutdown_();
  }

  std::vector<std::pair<std::string, std::string>> describe() const override {
    return {{"telemetry.amd_smi_gpus", fmt::format("{}", gpus_.size())}};
  }

  void read(const GpuSelection& options, std::vector<GpuReading>& out, std::vector<std::string>& problems) override {
    for (Gpu& gpu : gpus_) {
      if (gpu.lost) continue;
      bool any = false, asked = false;
      const auto good = [&](int code) {
        asked = true;
        any = any || code == 0;
        return code == 0;
      };
      if (activity_ != nullptr && wanted(options, gpu.index, "busy")) {
        uint32_t engines[16] = {};  // graphics, memory controller, media, reserved
        if (good(activity_(gpu.handle, engines))) {
          const auto percent = [&](const char* name, const char* text, const char* category, uint32_t value) {
            if (value <= 100) put(out, name, gpu.index, "%", text, category, value);  // 0xffff...: unknown
          };
          percent("GFX Busy", kBusyText, "device_busy_gfx", engines[0]);
          percent("UMC Busy", kMemoryBusyText, "device_busy_umc", engines[1]);
          percent("MM Busy", kMediaBusyText, "device_busy_mm", engines[2]);
        }
      }
      if (temperature_ != nullptr && wanted(options, gpu.index, "temp")) {
        int64_t celsius = 0;  // of the hot spot, else of the edge
        if (good(temperature_(gpu.handle, 1, 0, &celsius)) || good(temperature_(gpu.handle, 0, 0, &celsius)))
          put(out, "Temperature", gpu.index, "deg C", "temperature of the chip", "device_temp",
              static_cast<double>(celsius));
      }
      if (energy_ != nullptr && (wanted(options, gpu.index, "power") || wanted(options, gpu.index, "energy"))) {
        // The structure with the power itself has changed with nearly every version; the energy counter never did.
        uint64_t counter = 0, time = 0;
        float microjoules = 0;
        if (good(energy_(gpu.handle, &counter, &microjoules, &time))) {
          const double joules = static_cast<double>(counter) * static_cast<double>(microjoules) * 1e-6;
          if (wanted(options, gpu.index, "energy"))
            put(out, "Energy", gpu.index, "J", "energy used since the driver was loaded", "device_power", joules);
          if (gpu.time != 0 && time > gpu.time && wanted(options, gpu.index, "power"))
            put(out, "Current Power", gpu.index, "W", "mean power since the reading before", "device_power",
                (joules - gpu.joules) / (static_cast<double>(time - gpu.time) * 1e-9));
          if (time > gpu.time) {
            gpu.joules = joules;
            gpu.time = time;
          }
        }
      }
      if (memory_ != nullptr && wanted(options, gpu.index, "mem_usage")) {
        uint64_t bytes = 0;
        if (good(memory_(gpu.handle, 0, &bytes)))
          put(out, "Memory Usage", gpu.index, "B", "device memory in use", "device_memory_usage",
              static_cast<double>(bytes));
      }
      if (clock_ != nullptr && wanted(options, gpu.index, "clock")) {
        uint32_t info[64] = {};  // the first word is the clock in all versions
        if (good(clock_(gpu.handle, 0, info)) && info[0] < 100'000)
          put(out, "Core Clock", gpu.index, "MHz", "clock of the compute units", "device_clock", info[0]);
        if (good(clock_(gpu.handle, 4, info)) && info[0] < 100'000)
          put(out, "Memory Clock", gpu.index, "MHz", "clock of device memory", "device_clock", info[0]);
      }
      if (asked && !any && ++gpu.failures == 5) {
        gpu.lost = true;
        problems.push_back(fmt::format(
            "GPU {} was lost during the run (AMD SMI answers nothing): its telemetry ends there", gpu.index));
      }
      if (any) gpu.failures = 0;
    }
  }

 private:
  struct Gpu {
    int index;
    void* handle;
    bool lost = false;
    int failures = 0;
    double joules = 0;
    uint64_t time = 0;
  };
  std::unique_ptr<Library> library_;
  std::vector<Gpu> gpus_;
  int (*shutdown_)() = nullptr;
  int (*activity_)(void*, uint32_t*) = nullptr;
  int (*energy_)(void*, uint64_t*, float*, uint64_t*) = nullptr;
  int (*temperature_)(void*, int, int, int64_t*) = nullptr;
  int (*memory_)(void*, int, uint64_t*) = nullptr;
  int (*clock_)(void*, int, uint32_t*) = nullptr;
  int (*pcie_)(void*, uint64_t*, uint64_t*, uint64_t*) = nullptr;
};

}  // namespace

std::unique_ptr<GpuMonitor> amd_smi_monitor(std::vector<std::string>& problems) {
  return AmdSmi::make(problems);
}

}  // namespace tacho::vendor
