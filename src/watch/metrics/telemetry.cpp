// Reading GPUs and /proc (telemetry.h).
#include "watch/metrics/telemetry.h"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>

#include "base/format.h"
#include "base/thread.h"
#include "event/gpu_quantity.h"
#include "vendor/vendor.h"

namespace tacho::watch {

GpuTelemetry::GpuTelemetry() {
  thread_ = thread_without_signals([this] { loop(); });
}

GpuTelemetry::~GpuTelemetry() {
  {
    const std::lock_guard held(lock_);
    end_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void GpuTelemetry::loop() {
  std::vector<std::unique_ptr<vendor::GpuMonitor>> monitors;
  std::vector<std::string> problems;
  for (const vendor::Vendor* vendor : vendor::vendors())
    if (auto monitor = vendor->monitor(problems)) monitors.push_back(std::move(monitor));
  vendor::GpuSelection selection;
  selection.hz = 1;
  std::unique_lock held(lock_);
  for (;;) {
    problems_.insert(problems_.end(), problems.begin(), problems.end());
    problems.clear();
    if (end_ || monitors.empty()) return;
    held.unlock();
    std::vector<vendor::GpuReading> readings;
    for (const auto& monitor : monitors) monitor->read(selection, readings, problems);
    held.lock();
    latest_ = std::move(readings);
    changed_.wait_for(held, std::chrono::seconds(1), [this] { return end_; });
  }
}

std::vector<vendor::GpuReading> GpuTelemetry::latest() const {
  const std::lock_guard held(lock_);
  return latest_;
}

std::vector<std::string> GpuTelemetry::problems() const {
  const std::lock_guard held(lock_);
  return problems_;
}

std::string_view quantity_of(const vendor::GpuReading& reading) {
  const std::string_view quantity = event::gpu_quantity(reading.name);
  return quantity.empty() ? reading.name : quantity;
}

std::optional<ProcessUse> process_use(uint32_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const size_t name = line.rfind(')');  // a name may contain anything
  if (name == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name + 1));
  std::string skipped;
  uint64_t user = 0, system = 0, threads = 0, pages = 0;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  fields >> user >> system;  // 14 and 15: proc(5)
  for (int field = 16; field < 20; ++field) fields >> skipped;
  fields >> threads;
  for (int field = 21; field < 24; ++field) fields >> skipped;
  fields >> pages;
  if (!fields) return std::nullopt;
  const auto tick = static_cast<double>(sysconf(_SC_CLK_TCK));
  ProcessUse use;
  use.user_s = static_cast<double>(user) / tick;
  use.system_s = static_cast<double>(system) / tick;
  use.resident_bytes = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  use.threads = threads;
  return use;
}

}  // namespace tacho::watch
