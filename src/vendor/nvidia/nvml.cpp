// NVML ($TACHO_NVML or libnvidia-ml.so.1): telemetry of NVIDIA GPUs. This file declares only the few functions that
// tacho calls, all with parameters that have stayed the same over the library's versions; structures that grew get
// buffers with room.
#include "vendor/nvidia/nvml.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "vendor/gpu_monitor.h"
#include "vendor/library.h"

namespace tacho::vendor {
namespace {

class Nvml : public GpuMonitor {
 public:
  static constexpr int kNotSupported = 3, kGpuIsLost = 15, kResetRequired = 16;

  static std::unique_ptr<GpuMonitor> make(std::vector<std::string>& problems) {
    auto self = std::unique_ptr<Nvml>(new Nvml);
    self->library_ = Library::open("TACHO_NVML", {"libnvidia-ml.so.1"}, problems);
    if (self->library_ == nullptr) return nullptr;
    const Library& library = *self->library_;
    int (*init)() = nullptr;
    int (*count)(unsigned*) = nullptr;
    int (*handle)(unsigned, void**) = nullptr;
    library.find(init, "nvmlInit_v2");
    library.find(count, "nvmlDeviceGetCount_v2");
    library.find(handle, "nvmlDeviceGetHandleByIndex_v2");
    library.find(self->shutdown_, "nvmlShutdown");
    library.find(self->error_, "nvmlErrorString");
    library.find(self->name_, "nvmlDeviceGetName");
    library.find(self->uuid_, "nvmlDeviceGetUUID");
    library.find(self->driver_, "nvmlSystemGetDriverVersion");
    library.find(self->utilization_, "nvmlDeviceGetUtilizationRates");
    library.find(self->encoder_, "nvmlDeviceGetEncoderUtilization");
    library.find(self->decoder_, "nvmlDeviceGetDecoderUtilization");
    library.find(self->clock_, "nvmlDeviceGetClockInfo");
    library.find(self->power_, "nvmlDeviceGetPowerUsage");
    library.find(self->energy_, "nvmlDeviceGetTotalEnergyConsumption");
    library.find(self->temperature_, "nvmlDeviceGetTemperature");
    library.find(self->memory_, "nvmlDeviceGetMemoryInfo");
    library.find(self->pcie_, "nvmlDeviceGetPcieThroughput");
    library.find(self->fields_, "nvmlDeviceGetFieldValues");
    if (init == nullptr || count == nullptr || handle == nullptr) {
      problems.push_back("NVML is too old (nvmlInit_v2 is missing): no telemetry of NVIDIA GPUs");
      return nullptr;
    }
    if (const int code = init(); code != 0) {
      problems.push_back(fmt::format("NVML does not start ({}): no telemetry of NVIDIA GPUs", self->error(code)));
      self->shutdown_ = nullptr;
      return nullptr;
    }
    unsigned gpus = 0;
    if (count(&gpus) != 0) gpus = 0;
    for (unsigned i = 0; i < gpus && i < 256; ++i) {
      void* device = nullptr;
      if (const int code = handle(i, &device); code == 0)
        self->gpus_.push_back({static_cast<int>(i), device});
      else
        problems.push_back(fmt::format("NVML gives no access to GPU {} ({})", i, self->error(code)));
    }
    if (self->gpus_.empty()) return nullptr;
    return self;
  }
  ~Nvml() override {
    if (shutdown_ != nullptr) shutdown_();
  }

  std::vector<std::pair<std::string, std::string>> describe() const override {
    std::vector<std::pair<std::string, std::string>> facts;
    char text[128] = {};
    if (driver_ != nullptr && driver_(text, sizeof text) == 0) facts.emplace_back("telemetry.nvidia_driver", text);
    for (const Gpu& gpu : gpus_) {
      if (name_ != nullptr && name_(gpu.device, text, sizeof text) == 0)
        facts.emplace_back(fmt::format("telemetry.gpu{}.name", gpu.index), text);
      if (uuid_ != nullptr && uuid_(gpu.device, text, sizeof text) == 0)
        facts.emplace_back(fmt::format("telemetry.gpu{}.uuid", gpu.index), text);
    }
    return facts;
  }

  void read(const GpuSelection& options, std::vector<GpuReading>& out, std::vector<std::string>& problems) override {
    for (Gpu& gpu : gpus_) {
      if (gpu.lost) continue;
      const auto good = [&](int code) {
        if (code == kGpuIsLost || code == kResetRequired) {
          gpu.lost = true;
          problems.push_back(
              fmt::format("GPU {} was lost during the run ({}): its telemetry ends there", gpu.index, error(code)));
        }
        return code == 0;
      };
      if (wanted(options, gpu.index, "busy")) {
        unsigned rates[2] = {};
        if (utilization_ != nullptr && good(utilization_(gpu.device, rates))) {
          put(out, "GFX Busy", gpu.index, "%", kBusyText, "device_busy_gfx", rates[0]);
          put(out, "UMC Busy", gpu.index, "%", kMemoryBusyText, "device_busy_umc", rates[1]);
        }
        unsigned encoder = 0, decoder = 0, period = 0;
        const bool encodes = !gpu.lost && encoder_ != nullptr && encoder_(gpu.device, &encoder, &period) == 0;
        const bool decodes = !gpu.lost && decoder_ != nullptr && decoder_(gpu.device, &decoder, &period) == 0;
        if (encodes || decodes)
          put(out, "MM Busy", gpu.index, "%", kMediaBusyText, "device_busy_mm", std::max(encoder, decoder));
      }
      if (gpu.lost) continue;
      if (wanted(options, gpu.index, "temp")) {
        unsigned celsius = 0;
        if (temperature_ != nullptr && good(temperature_(gpu.device, 0, &celsius)))
          put(out, "Temperature", gpu.index, "deg C", "temperature of the chip", "device_temp", celsius);
      }
      if (wanted(options, gpu.index, "power")) {
        unsigned milliwatts = 0;
        if (power_ != nullptr && good(power_(gpu.device, &milliwatts)))
          put(out, "Current Power", gpu.index, "W", "power of the board", "device_power", milliwatts / 1000.0);
      }
      if (wanted(options, gpu.index, "mem_usage")) {
        unsigned long long memory[3] = {};  // total, free, used
        if (memory_ != nullptr && good(memory_(gpu.device, memory)))
          put(out, "Memory Usage", gpu.index, "B", "device memory in use", "device_memory_usage",
              static_cast<double>(memory[2]));
      }
      if (wanted(options, gpu.index, "clock")) {
        unsigned megahertz = 0;
        if (clock_ != nullptr && good(clock_(gpu.device, 1, &megahertz)))
          put(out, "Core Clock", gpu.index, "MHz", "clock of the compute units", "device_clock", megahertz);
        if (clock_ != nullptr && good(clock_(gpu.device, 2, &megahertz)))
          put(out, "Memory Clock", gpu.index, "MHz", "clock of device memory", "device_clock", megahertz);
      }
      if (wanted(options, gpu.index, "energy")) {
        unsigned long long millijoules = 0;
        if (energy_ != nullptr && good(energy_(gpu.device, &millijoules)))
          put(out, "Energy", gpu.index, "J", "energy used since the driver was loaded", "device_power",
              static_cast<double>(millijoules) / 1000);
      }
      // NVML measures PCIe for 20 ms inside the call: once a second is enough.
      const double pause = std::max(1.0, options.hz);
      const bool due = gpu.round++ % static_cast<uint64_t>(pause) == 0;
      if (due && wanted(options, gpu.index, "pcie") && pcie_ != nullptr) {
        unsigned sent = 0, received = 0;  // kB/s
        if (good(pcie_(gpu.device, 0, &sent)) && good(pcie_(gpu.device, 1, &received))) {
          put(out, "PCIe Sent", gpu.index, "B/s", "bytes that the GPU sent over PCIe", "device_pcie", sent * 1000.0);
          put(out, "PCIe Received", gpu.index, "B/s", "bytes that the GPU received over PCIe", "device_pcie",
              received * 1000.0);
        }
      }
      if (wanted(options, gpu.index, "link") && fields_ != nullptr && !gpu.no_link) {
        Field fields[2] = {};
        fields[0].id = 138, fields[1].id = 139;  // NVLink data sent, received: KiB, all links
        fields[0].scope = fields[1].scope = ~0u;
        if (fields_(gpu.device, 2, fields) == 0 && fields[0].result == 0 && fields[1].result == 0) {
          put(out, "NVLink Sent", gpu.index, "B", "bytes sent over NVLink since the driver was loaded", "device_link",
              static_cast<double>(fields[0].value) * 1024);
          put(out, "NVLink Received", gpu.index, "B", "bytes received over NVLink since the driver was loaded",
              "device_link", static_cast<double>(fields[1].value) * 1024);
        } else {
          gpu.no_link = true;
        }
      }
    }
  }

 private:
  struct Gpu {
    int index;
    void* device;
    bool lost = false, no_link = false;
    uint64_t round = 0;
  };
  struct Field {  // nvmlFieldValue_t
    unsigned id, scope;
    long long time, latency;
    int type, result;
    unsigned long long value;
  };
  static_assert(sizeof(Field) == 40);
  std::string error(int code) const { return error_ != nullptr ? error_(code) : fmt::format("error {}", code); }

  std::unique_ptr<Library> library_;
  std::vector<Gpu> gpus_;
  int (*shutdown_)() = nullptr;
  const char* (*error_)(int) = nullptr;
  int (*name_)(void*, char*, unsigned) = nullptr;
  int (*uuid_)(void*, char*, unsigned) = nullptr;
  int (*driver_)(char*, unsigned) = nullptr;
  int (*utilization_)(void*, unsigned*) = nullptr;
  int (*encoder_)(void*, unsigned*, unsigned*) = nullptr;
  int (*decoder_)(void*, unsigned*, unsigned*) = nullptr;
  int (*clock_)(void*, int, unsigned*) = nullptr;
  int (*power_)(void*, unsigned*) = nullptr;
  int (*energy_)(void*, unsigned long long*) = nullptr;
  int (*temperature_)(void*, int, unsigned*) = nullptr;
  int (*memory_)(void*, unsigned long long*) = nullptr;
  int (*pcie_)(void*, int, unsigned*) = nullptr;
  int (*fields_)(void*, int, Field*) = nullptr;
};

}  // namespace

std::unique_ptr<GpuMonitor> nvml_monitor(std::vector<std::string>& problems) {
  return Nvml::make(problems);
}

std::vector<std::string> nvml_gpus_of(std::span<const pid_t> processes) {
  struct Process {  // nvmlProcessInfo_t of the functions' second and third version
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
  };
  static_assert(sizeof(Process) == 24);
  std::vector<std::string> uuids, problems;
  const std::unique_ptr<Library> library = Library::open("TACHO_NVML", {"libnvidia-ml.so.1"}, problems);
  if (library == nullptr) return uuids;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, void**) = nullptr;
  int (*uuid)(void*, char*, unsigned) = nullptr;
  int (*running)(void*, unsigned*, Process*) = nullptr;
  library->find(init, "nvmlInit_v2");
  library->find(shutdown, "nvmlShutdown");
  library->find(count, "nvmlDeviceGetCount_v2");
  library->find(handle, "nvmlDeviceGetHandleByIndex_v2");
  library->find(uuid, "nvmlDeviceGetUUID");
  library->find(running, "nvmlDeviceGetComputeRunningProcesses_v3");
  if (running == nullptr) library->find(running, "nvmlDeviceGetComputeRunningProcesses_v2");
  if (init == nullptr || shutdown == nullptr || count == nullptr || handle == nullptr || uuid == nullptr ||
      running == nullptr || init() != 0)
    return uuids;
  unsigned gpus = 0;
  if (count(&gpus) != 0) gpus = 0;
  for (unsigned i = 0; i < gpus && i < 256; ++i) {
    void* device = nullptr;
    char text[128] = {};
    std::vector<Process> found(1024);
    unsigned size = static_cast<unsigned>(found.size());
    if (handle(i, &device) != 0 || uuid(device, text, sizeof text) != 0 || running(device, &size, found.data()) != 0)
      continue;
    found.resize(std::min<size_t>(size, found.size()));
    if (std::any_of(found.begin(), found.end(), [&](const Process& process) {
          return std::find(processes.begin(), processes.end(), static_cast<pid_t>(process.pid)) != processes.end();
        }))
      uuids.emplace_back(text);
  }
  shutdown();
  return uuids;
}

}  // namespace tacho::vendor
