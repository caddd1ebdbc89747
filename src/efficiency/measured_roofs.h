// Roofs that were measured on a device: roofline.csv of `tacho roofline` or of ROCm Compute Profiler.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "efficiency/inputs.h"

namespace tacho::efficiency {

struct MeasuredRoofs {
  std::string device;                          ///< as the file names it, else the file's name
  std::string when;                            ///< "2026-11-20T21:00:00Z"; "" = the file does not say
  std::map<Precision, double> matrix, vector;  ///< FLOP/s
  double bandwidth = 0;                        ///< of memory, bytes/s; 0 = not measured
  bool any() const { return bandwidth > 0 || !matrix.empty() || !vector.empty(); }
  /// The rate at which this work can be done at most; nullopt where it was not measured. Elementwise work in types
  /// shorter than 32 bits is done in 32.
  std::optional<double> compute(bool as_matrix, Precision precision) const;
};

/// Reads a roofline.csv. `device`: the name of the trace's GPU, "" = unknown; the file's row with that name is taken,
/// else its first one without a name. Errors: no such file, no row of that device, no ceiling in it.
Result<MeasuredRoofs> read_measured_roofs(const std::string& path, std::string_view device);

}  // namespace tacho::efficiency
