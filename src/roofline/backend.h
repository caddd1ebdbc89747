// What a kind of device has to offer so that its ceilings can be measured: a list of benchmarks, each of
// which can be run again and again and checks its own results.
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
  /// Makes one experiment take about `target` ns.
  virtual Status calibrate(double target) = 0;
  struct Sample {
    double duration = 0;      ///< ns
    double clock = kUnknown;  ///< MHz
  };
  virtual Result<Sample> run() = 0;
  /// Compares what the last run left with what it must be. The error names the first difference.
  virtual Status check() = 0;
  /// Bytes, FLOP or operations of one experiment; after calibrate().
  virtual double work() const = 0;
  virtual uint32_t group_size() const = 0;
  virtual uint32_t groups() const = 0;
};

/// A benchmark that a device may have: name, unit, instruction path and peak of the measurement; `skipped`
/// when the device cannot do it.
struct Offer {
  Measurement measurement;
  double peak_per_clock = kUnknown;  ///< GFLOP/s or GB/s for each MHz of the compute units' clock
  int index = 0;                     ///< the backend's own
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual std::vector<Offer> offers() const = 0;
  virtual Result<std::unique_ptr<Benchmark>> prepare(const Offer& offer) = 0;
  /// How long a run should take, ns.
  virtual double run_time() const { return 3e6; }
  /// 0: an experiment is one run. Else this many ns for each experiment are spent on runs, which are then dealt out to the
  /// experiments (four at least to each), and the fastest of each counts: for CPUs, whose cores other programs take away for a slice
  /// of time, so that some runs are whole and others are not.
  virtual double experiment_time() const { return 0; }
};

/// What can be opened on this machine.
struct DeviceEntry {
  DeviceInfo info;
  int backend_index = 0;
};

/// A way to reach devices; each has a folder here.
struct Backend {
  const char* name;  ///< "opencl"; what DeviceInfo::backend says
  const char*
      vendor;  ///< vendor::Vendor::name() of all its devices, which backends after it then leave out; "" = any
  const char* text;  ///< for --help: "NVIDIA's driver", "" = the name says it
  /// Devices on this machine. `note` says why when there is a library but no device.
  std::vector<DeviceEntry> (*devices)(std::string& note);
  Result<std::unique_ptr<Device>> (*open)(int index);
};
/// All backends (backends.def), in the order in which devices are numbered.
std::span<const Backend> backends();

}  // namespace tacho::roofline
