// Reads roofline.csv: the ceilings that microbenchmarks measured, one row per GPU.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacho::workload {

/// One GPU's row of roofline.csv: measured ceilings.
struct RooflineCeilings {
  std::string device;
  /// By column: "HBMBw" in GB/s, "FP32Flops" in GFLOP/s, ...
  std::vector<std::pair<std::string, double>> values;
  /// tacho's own text columns: "Driver", ...
  std::vector<std::pair<std::string, std::string>> texts;
  /// The value, NaN when not measured.
  double get(std::string_view name) const;
  /// The text, "" when there is none.
  std::string_view text(std::string_view name) const;
};

/// True for tacho's text columns: DeviceName, DeviceId, Driver, Backend, Measured, and all that end in Path.
bool is_ceiling_text(std::string_view column);

/// The rows of the file; none when there is no file. Adds a warning for each malformed row or cell.
std::vector<RooflineCeilings> read_ceilings(const std::string& path, std::vector<std::string>& warnings);

/// Says why the roofs cannot belong to the run's device (sysinfo's gpu_arch and gpu_model). Empty when they can, or
/// when the file does not name its device.
std::string foreign_ceilings(const std::vector<RooflineCeilings>& ceilings, std::string_view architecture,
                             std::string_view model);

}  // namespace tacho::workload
