// The interface through which tacho measures the ceilings of a kind of device: a list of benchmarks, each of which can
// run many times and checks its own results.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "roofline/measurement.h"

namespace tacho::roofline {

/// One benchmark, compiled, with its memory allocated and filled.
class Benchmark {
 public:
  virtual ~Benchmark() = default;
  /// Scales the work so that one experiment takes about `target` ns.
  virtual Status calibrate(double target) = 0;
  struct Sample {
    double duration = 0;      ///< ns
    double clock = kUnknown;  ///< MHz
  };
  virtual Result<Sample> run() = 0;
  /// Checks the results of the last run. The error names the first difference.
  virtual Status check() = 0;
  /// Bytes, FLOP or operations of one experiment. Call after calibrate().
  virtual double work() const = 0;
  virtual uint32_t group_size() const = 0;
  virtual uint32_t groups() const = 0;
};

/// A benchmark for a device. `measurement` has its name, unit, instruction path and peak, and `skipped` if the device
/// cannot run it.
struct Offer {
  Measurement measurement;
  double peak_per_clock = kUnknown;  ///< GFLOP/s or GB/s for each MHz of the compute units' clock
  int index = 0;                     ///< the backend's own
};

class BenchmarkDevice {
 public:
  virtual ~BenchmarkDevice() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual std::vector<Offer> offers() const = 0;
  virtual Result<std::unique_ptr<Benchmark>> prepare(const Offer& offer) = 0;
  /// Fails if a short kernel's results are wrong: such a device executes nothing, and every benchmark would only notice
  /// at its end.
  virtual Status try_out() { return {}; }
  /// Target duration of a run, ns.
  virtual double run_time() const { return 3e6; }
  /// 0: each experiment is one run. Otherwise: ns of runs per experiment. The runs are dealt out to the experiments, at
  /// least four to each, and the fastest run of each experiment counts. For CPUs, where other programs interrupt some
  /// of the runs.
  virtual double experiment_time() const { return 0; }
};

/// A device that tacho can open on this machine.
struct DeviceEntry {
  DeviceInfo info;
  int backend_index = 0;
};

/// An API for devices; each backend has a folder here.
struct Backend {
  const char* name;    ///< "opencl"; the value of DeviceInfo::backend
  const char* vendor;  ///< vendor::Vendor::name() of all its devices, which backends after it then leave out; "" = any
  const char* text;    ///< for --help: "NVIDIA's driver", "" = the name says it
  /// Devices on this machine. If there is a library but no device, `note` says why.
  std::vector<DeviceEntry> (*devices)(std::string& note);
  Result<std::unique_ptr<BenchmarkDevice>> (*open)(int index);
};
/// All backends (backends.def), in the order of device numbers.
std::span<const Backend> backends();

}  // namespace tacho::roofline
