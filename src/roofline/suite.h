// Measuring a device's ceilings: finds devices, runs the benchmarks that one offers, and judges the results.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "roofline/backend.h"
#include "roofline/measurement.h"

namespace tacho::roofline {

/// The devices of this machine in the order of their numbers: of each backend in turn, without those that a backend for
/// their vendor has shown before. `backend`: the name of the only one wanted, "" for all. `notes`: why a library shows
/// nothing.
struct NumberedDevice {
  int number = 0;
  DeviceEntry entry;
};
std::vector<NumberedDevice> list_devices(std::vector<std::string>& notes, std::string_view backend = "");

struct SuiteOptions {
  uint32_t experiments = 100;     ///< at most; fewer where they would take more than `seconds`
  double target = 0;              ///< ns of one run; 0 = the device's own
  double seconds = 0.8;           ///< for the experiments of one benchmark
  std::vector<std::string> only;  ///< columns; empty = all
  /// Lines for people as the seed prints them, without a newline; may be empty.
  std::function<void(std::string_view)> line;
  bool bar = false;  ///< a bar on stderr while a benchmark runs
};

/// Warm-up, calibration, experiments, check and judgement of every benchmark. A benchmark that the device
/// cannot run, or whose results are wrong, becomes a measurement with `skipped`. Fails when the device
/// cannot be used or has no benchmark of a name in `only`.
Result<DeviceCeilings> measure(const NumberedDevice& device, const SuiteOptions& options);
/// The same of a device that is open.
Result<DeviceCeilings> measure(Device& device, int number, const SuiteOptions& options);

/// Sets stdev, low, high, mean, duration of `measurement` from the experiments' durations in ns and its work,
/// and judges it against its peaks: above 1.02 of the peak is an error, below 0.7 a warning, a deviation of
/// more than 10 % of the mean a warning that the device was busy.
void judge(Measurement& measurement, const std::vector<double>& durations, const std::vector<double>& clocks,
           double peak_per_clock, double max_clock);

/// "HBM BW, GPU ID: 0, workgroupSize:256, ..." as the seed prints a result.
std::string result_line(const Measurement& measurement, int device);

}  // namespace tacho::roofline
