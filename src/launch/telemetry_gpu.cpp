// The vendors' management libraries behind GpuMonitor (telemetry.h): opened at run time, with the few declarations
// needed here. Only functions whose parameters have stayed the same over the libraries' versions are used; structures
// that grew get buffers with room.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <memory>

#include "base/format.h"
#include "launch/telemetry.h"

namespace tacho::launch {
namespace {

class Library {
 public:
  /// The file that `variable` names, else the first of `names` that loads. ROCm's libraries may lie outside of the
  /// loader's path.
  static std::unique_ptr<Library> open(const char* variable, std::initializer_list<const char*> names,
                                       std::vector<std::string>& problems) {
    if (const char* const chosen = getenv(variable); chosen != nullptr) {
      if (*chosen == '\0') return nullptr;  // switched off
      if (void* const handle = dlopen(chosen, RTLD_NOW | RTLD_LOCAL)) return std::unique_ptr<Library>(new Library(handle));
      problems.push_back(fmt::format("{}={}: {}", variable, chosen, dlerror()));
      return nullptr;
    }
    for (const char* name : names)
      if (void* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return std::unique_ptr<Library>(new Library(handle));
    return nullptr;
  }
  ~Library() { dlclose(handle_); }
  template <typename F>
  void find(F*& function, const char* name) const {
    function = reinterpret_cast<F*>(dlsym(handle_, name));
  }

 private:
  explicit Library(void* handle) : handle_(handle) {}
  void* handle_;
};

bool wanted(const TelemetryOptions& options, int gpu, const char* metric) {
  return (!options.gpus || options.gpus->contains(gpu)) && (!options.gpu_metrics || options.gpu_metrics->contains(metric));
}

void put(std::vector<GpuMonitor::Reading>& out, const char* name, int gpu, const char* unit, const char* text,
         const char* category, double value) {
  out.push_back({{fmt::format("GPU {} [{}]", name, gpu), unit, text, category, 0, gpu}, value});
}
constexpr const char* kBusyText = "share of time in which a kernel ran";
constexpr const char* kMemoryBusyText = "share of time in which device memory was read or written";
constexpr const char* kMediaBusyText = "share of time in which the busier of encoder and decoder worked";

// ---- NVML ----------------------------------------------------------------------------------------

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

  void read(const TelemetryOptions& options, std::vector<Reading>& out, std::vector<std::string>& problems) override {
    for (Gpu& gpu : gpus_) {
      if (gpu.lost) continue;
      const auto good = [&](int code) {
        if (code == kGpuIsLost || code == kResetRequired) {
          gpu.lost = true;
          problems.push_back(fmt::format("GPU {} was lost during the run ({}): its telemetry ends there", gpu.index, error(code)));
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
          put(out, "Memory Usage", gpu.index, "B", "device memory in use", "device_memory_usage", static_cast<double>(memory[2]));
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
          put(out, "PCIe Received", gpu.index, "B/s", "bytes that the GPU received over PCIe", "device_pcie", received * 1000.0);
        }
      }
      if (wanted(options, gpu.index, "link") && fields_ != nullptr && !gpu.no_link) {
        Field fields[2] = {};
        fields[0].id = 138, fields[1].id = 139;  // NVLink data sent, received: KiB, all links
        fields[0].scope = fields[1].scope = ~0u;
        if (fields_(gpu.device, 2, fields) == 0 && fields[0].result == 0 && fields[1].result == 0) {
          put(out, "NVLink Sent", gpu.index, "B", "bytes sent over NVLink since the driver was loaded", "device_link",
              static_cast<double>(fields[0].value) * 1024);
          put(out, "NVLink Received", gpu.index, "B", "bytes received over NVLink since the driver was loaded", "device_link",
              static_cast<double>(fields[1].value) * 1024);
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

// ---- AMD SMI -------------------------------------------------------------------------------------

class AmdSmi : public GpuMonitor {
 public:
  static std::unique_ptr<GpuMonitor> make(std::vector<std::string>& problems) {
    auto self = std::unique_ptr<AmdSmi>(new AmdSmi);
    self->library_ = Library::open("TACHO_AMD_SMI", {"libamd_smi.so", "/opt/rocm/lib/libamd_smi.so"}, problems);
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

  void read(const TelemetryOptions& options, std::vector<Reading>& out, std::vector<std::string>& problems) override {
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
            if (value <= 100) put(out, name, gpu.index, "%", text, category, value);  // 0xffff...: not known
          };
          percent("GFX Busy", kBusyText, "device_busy_gfx", engines[0]);
          percent("UMC Busy", kMemoryBusyText, "device_busy_umc", engines[1]);
          percent("MM Busy", kMediaBusyText, "device_busy_mm", engines[2]);
        }
      }
      if (temperature_ != nullptr && wanted(options, gpu.index, "temp")) {
        int64_t celsius = 0;  // of the hot spot, else of the edge
        if (good(temperature_(gpu.handle, 1, 0, &celsius)) || good(temperature_(gpu.handle, 0, 0, &celsius)))
          put(out, "Temperature", gpu.index, "deg C", "temperature of the chip", "device_temp", static_cast<double>(celsius));
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
          put(out, "Memory Usage", gpu.index, "B", "device memory in use", "device_memory_usage", static_cast<double>(bytes));
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
        problems.push_back(fmt::format("GPU {} was lost during the run (AMD SMI answers nothing): its telemetry ends there", gpu.index));
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

// ---- ROCm SMI ------------------------------------------------------------------------------------

class RocmSmi : public GpuMonitor {
 public:
  static std::unique_ptr<GpuMonitor> make(std::vector<std::string>& problems) {
    auto self = std::unique_ptr<RocmSmi>(new RocmSmi);
    self->library_ =
        Library::open("TACHO_ROCM_SMI", {"librocm_smi64.so", "librocm_smi64.so.1", "/opt/rocm/lib/librocm_smi64.so"}, problems);
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

  void read(const TelemetryOptions& options, std::vector<Reading>& out, std::vector<std::string>& problems) override {
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
          put(out, "Temperature", index, "deg C", "temperature of the chip", "device_temp", static_cast<double>(millidegrees) / 1000);
      }
      if (power_ != nullptr && wanted(options, index, "power")) {
        uint64_t microwatts = 0;
        if (good(power_(gpu.index, 0, &microwatts)))
          put(out, "Current Power", index, "W", "mean power of the last moment", "device_power", static_cast<double>(microwatts) * 1e-6);
      }
      if (memory_ != nullptr && wanted(options, index, "mem_usage")) {
        uint64_t bytes = 0;
        if (good(memory_(gpu.index, 0, &bytes)))
          put(out, "Memory Usage", index, "B", "device memory in use", "device_memory_usage", static_cast<double>(bytes));
      }
      if (clock_ != nullptr && wanted(options, index, "clock")) {
        for (const auto& [kind, name] : {std::pair{0, "Core Clock"}, std::pair{4, "Memory Clock"}}) {
          const double hertz = frequency(gpu.index, kind, good);
          if (hertz > 0) put(out, name, index, "MHz", kind == 0 ? "clock of the compute units" : "clock of device memory", "device_clock", hertz * 1e-6);
        }
      }
      // This one measures for a second inside the call: only when asked for by name.
      if (pcie_ != nullptr && options.gpu_metrics && wanted(options, index, "pcie")) {
        uint64_t sent = 0, received = 0, packet = 0;
        if (good(pcie_(gpu.index, &sent, &received, &packet))) {
          put(out, "PCIe Sent", index, "B/s", "bytes that the GPU sent over PCIe", "device_pcie", static_cast<double>(sent * packet));
          put(out, "PCIe Received", index, "B/s", "bytes that the GPU received over PCIe", "device_pcie", static_cast<double>(received * packet));
        }
      }
      if (asked && !any && ++gpu.failures == 5) {
        gpu.lost = true;
        problems.push_back(fmt::format("GPU {} was lost during the run (ROCm SMI answers nothing): its telemetry ends there", index));
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
  // rsmi_frequencies_t: {uint32 count, current; uint64 Hz[]} of old, with a bool before it since ROCm 6. What is written
  // tells which: the first frequency of the old form lies where the new one has a small number.
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

std::vector<std::unique_ptr<GpuMonitor>> gpu_monitors(std::vector<std::string>& problems) {
  std::vector<std::unique_ptr<GpuMonitor>> monitors;
  if (auto nvml = Nvml::make(problems)) monitors.push_back(std::move(nvml));
  if (auto amd = AmdSmi::make(problems))
    monitors.push_back(std::move(amd));
  else if (auto rocm = RocmSmi::make(problems))
    monitors.push_back(std::move(rocm));
  return monitors;
}

}  // namespace tacho::launch
