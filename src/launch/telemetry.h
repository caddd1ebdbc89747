// Telemetry of the machine and of the target's processes while a target runs. A thread of tacho's own process reads
// /proc, /sys and the vendors' management libraries, so that the target pays nothing for it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trace/write/writer.h"
#include "vendor/gpu_monitor.h"

namespace tacho::launch {

/// Which telemetry a run records, and how often.
struct TelemetryOptions {
  bool cpu = false;       // per core: utilisation and frequency; memory of the machine
  bool process = false;   // per process of the target: CPU time and use, memory, faults, context switches, I/O
  bool gpu = false;       // through the vendors' management libraries, if installed
  double hz = 10;         // rounds per second
  double delay_s = 0;     // before the first round
  double duration_s = 0;  // 0 = to the end
  std::optional<std::set<int>> cpus;                 // only these cores; nullopt = all
  std::optional<std::set<int>> gpus;                 // only these GPUs; nullopt = all
  std::optional<std::set<std::string>> gpu_metrics;  // of kGpuMetrics; nullopt = all
  std::set<std::string> hidden;                      // categories (Series::category) to leave out
  std::string proc = "/proc", sys = "/sys";          // other roots in tests

  bool any() const { return cpu || process || gpu; }
};

/// Names of GPU metrics for TelemetryOptions::gpu_metrics.
inline constexpr const char* kGpuMetrics[] = {"busy", "temp", "power", "mem_usage", "clock", "pcie", "link", "energy"};

/// One quantity over time. Quantities that rocprof-sys has keep its names, without the "(S)".
struct Series {
  std::string name;      // "CPU Frequency [3]"
  std::string unit;      // "MHz", "B", "%", "s", "W", "deg C", "" = count
  std::string text;      // what it measures
  std::string category;  // "cpu_frequency", "process_page_fault", ...
  pid_t pid = 0;         // 0 = of the machine
  int device = -1;       // GPU index
};

/// Takes readings in its own thread from start() to stop(). The owner of the trace writer calls deliver() to write
/// them.
class Telemetry {
 public:
  explicit Telemetry(TelemetryOptions options);
  ~Telemetry();
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

  /// Readings are kept only while `enabled` is not 0. Call before start(); it must outlive this.
  void obey(const std::atomic<uint64_t>& enabled) { enabled_ = &enabled; }
  void start(pid_t target);
  void stop();
  /// Takes one round of readings now, in the calling thread: for tests, and for a last value at the target's end.
  void round(pid_t target);
  /// Writes the readings since the last call.
  void deliver(trace::TraceWriter& writer);
  /// Links the tracks of processes to their rows (pid -> row of table process), and writes notes and properties.
  void finish(trace::TraceWriter& writer, const std::map<uint32_t, int64_t>& processes);
  /// All processes of the target that telemetry has seen.
  std::set<pid_t> seen_processes() const;
  double cpu_s() const { return cpu_s_; }

 private:
  struct Value {
    uint32_t series;
    int64_t time;
    double value;
  };
  struct CpuTimes {
    uint64_t busy = 0, all = 0;
    bool known = false;
  };
  struct ProcessTimes {
    double cpu_s = 0;
    int64_t time = 0;
    std::map<pid_t, uint64_t> switches;  // by thread; ended ones keep their last
    uint64_t round = 0;
    std::string name;
    pid_t parent = 0;
    bool io_refused = false;
  };

  void loop(pid_t target);
  void record(const Series& series, int64_t time, double value);
  bool hidden(const std::string& category) const { return options_.hidden.contains(category); }
  void read_machine(int64_t time);
  void read_processes(pid_t target, int64_t time);
  bool read_process(pid_t pid, int64_t time);
  void find_descendants(pid_t target, std::vector<pid_t>& out);
  void read_gpus(int64_t time);
  void complain_once(const std::string& sentence);

  TelemetryOptions options_;
  const std::atomic<uint64_t>* enabled_ = nullptr;  // nullptr: always
  std::thread thread_;
  std::mutex stop_mutex_;
  std::condition_variable stop_signal_;
  bool stopping_ = false;
  uint64_t rounds_ = 0;
  double cpu_s_ = 0;

  std::vector<CpuTimes> cpu_times_;
  std::map<pid_t, ProcessTimes> process_times_;
  std::vector<std::unique_ptr<vendor::GpuMonitor>> gpus_;
  std::set<std::string> complained_;

  mutable std::mutex mutex_;  // guards what follows
  std::deque<Series> series_;
  std::map<std::pair<std::string, pid_t>, uint32_t> series_of_;
  std::vector<Value> values_;
  std::vector<std::string> notes_;
  std::vector<std::pair<std::string, std::string>> properties_;
  std::map<pid_t, std::pair<std::string, pid_t>> seen_;  // name, parent
  std::vector<int64_t> tracks_;                          // by series: rows, 0 = not yet written
};

}  // namespace tacho::launch
