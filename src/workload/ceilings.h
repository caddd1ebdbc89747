// roofline.csv: the ceilings that microbenchmarks measured, one row a GPU.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacho::workload {

/// One GPU's row of roofline.csv: measured ceilings.
struct RooflineCeilings {
  std::string device;
  /// "HBMBw" GB/s, "FP32Flops" GFLOP/s, ... as in the header
  std::vector<std::pair<std::string, double>> values;
  /// tacho's own columns that are no numbers: "Driver"
  std::vector<std::pair<std::string, std::string>> texts;
  /// The value, NaN when not measured.
  double get(std::string_view name) const;
  /// The text, "" when there is none.
  std::string_view text(std::string_view name) const;
};

/// Columns of ours that hold words: DeviceName, DeviceId, Driver, Backend, Measured, and all that end in
/// Path.
bool is_ceiling_text(std::string_view column);

/// The rows of the file; none when there is no file. Rows and cells that cannot be read become warnings.
std::vector<RooflineCeilings> read_ceilings(const std::string& path, std::vector<std::string>& warnings);

/// Why the roofs cannot be those of the run's device (sysinfo's gpu_arch and gpu_model); empty where they can, or where the file
/// does not say which device it is of.
std::string foreign_ceilings(const std::vector<RooflineCeilings>& ceilings, std::string_view architecture,
                             std::string_view model);

}  // namespace tacho::workload
