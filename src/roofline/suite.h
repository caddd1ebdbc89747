// Measures ceilings: finds devices, runs a device's benchmarks, and judges the results.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "roofline/backend.h"
#include "roofline/measurement.h"

namespace tacho::roofline {

struct NumberedDevice {
  int number = 0;
  DeviceEntry entry;
};
/// The devices of this machine in order of number: those of each backend in turn, without devices that their vendor's
/// own backend has already listed. `backend`: list only this one, "" = all. `notes` gets the reason why a library has
/// no device.
std::vector<NumberedDevice> list_devices(std::vector<std::string>& notes, std::string_view backend = "");

struct SuiteOptions {
  uint32_t experiments = 100;     ///< at most; fewer if they would take more than `seconds`
  double target = 0;              ///< duration of one run in ns; 0 = the device's default
  double seconds = 0.8;           ///< limit for the experiments of one benchmark
  double limit = 30;              ///< s for one benchmark; one whose next run would exceed it is left out
  double total_limit = 300;       ///< s for all of them; benchmarks after that are left out
  std::vector<std::string> only;  ///< columns; empty = all
  /// Gets lines in rocprof-compute's format, without a newline; may be empty.
  std::function<void(std::string_view)> line;
  /// Get tacho's own sentences: where the roofs come from, and what is wrong with them; may be empty.
  std::function<void(std::string_view)> note, warn;
  bool bar = false;       ///< show a progress bar of each benchmark on stderr, in rocprof-compute's form
  bool estimate = false;  ///< show on stderr how many benchmarks are done, and about how long the others take
};

/// Warms up, calibrates, runs, checks and judges every benchmark. A benchmark that the device cannot run, or whose
/// results are wrong, becomes a measurement with `skipped`. Fails if the device is unusable or lacks a benchmark named
/// in `only`.
Result<DeviceCeilings> measure(const NumberedDevice& device, const SuiteOptions& options);
/// The same for an open device.
Result<DeviceCeilings> measure(BenchmarkDevice& device, int number, const SuiteOptions& options);

/// Computes stdev, low, high, mean and duration of `measurement` from the experiments' durations in ns and its work.
/// Judges it against its peaks: above 1.02 of the peak is an error, below 0.7 a warning. A standard deviation of more
/// than 10 % of the mean gives a warning that the device was busy.
void judge(Measurement& measurement, const std::vector<double>& durations, const std::vector<double>& clocks,
           double peak_per_clock, double max_clock);

/// The line that rocprof-compute prints for a result: "HBM BW, GPU ID: 0, workgroupSize:256, ...".
std::string result_line(const Measurement& measurement, int device);

}  // namespace tacho::roofline
