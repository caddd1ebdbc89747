// Arithmetic intensity of kernels and dispatches from FLOP and traffic counters, and measured ceilings from
// roofline.csv: the roofline model of table 4.1.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metric/analysis/results.h"
#include "workload/workload.h"

namespace tacho::metric {

/// The formulas of one dispatch, from the architecture's RooflineModel; "" = not computable.
struct IntensityFormulas {
  std::string flops, l1_bytes, l2_bytes, hbm_bytes, lds_bytes;
  /// The summands of flops by unit and data type.
  struct Kind {
    FlopKind kind;
    std::string flops;
  };
  std::vector<Kind> kinds;
  std::string_view definition;  ///< the counters' family and where they count, for people
  /// Counters that belong into flops and that the run does not have. Their operations are not counted.
  std::vector<std::string> left_out;
};
/// `compat`: as rocprof-compute 3.3, which counts whatever counters there are (RooflineModel says what else). `has`:
/// whether the run has a counter; by default it has all.
IntensityFormulas intensity_formulas(const Architecture& architecture, std::string_view gpu_series, bool compat,
                                     const std::function<bool(std::string_view)>& has = {});

/// Per-dispatch inputs; an empty span = not computable.
struct IntensityInputs {
  std::span<const double> duration, flops, l1_bytes, l2_bytes, hbm_bytes, lds_bytes;  ///< ns, FLOP, bytes
  std::vector<std::span<const double>> kinds;  ///< FLOP, as IntensityFormulas::kinds
};

/// Points by falling total duration. rows[i] is the dispatch behind value i of the inputs.
std::vector<IntensityPoint> intensity_points(const workload::Workload& workload, std::span<const uint32_t> rows,
                                             const IntensityInputs& inputs, bool by_kernel, bool compat);

/// One roof: y = min(peak, x * bandwidth).
struct Roof {
  std::string name;       ///< "hbm", "l2", "l1", "lds", "valu", "mfma"
  double x0 = 0, x1 = 0;  ///< where it is drawn, FLOP / byte
  double y0 = 0, y1 = 0;  ///< GFLOP/s
  double peak = 0;        ///< GB/s or GFLOP/s
};

/// What people call a roof or level of the hardware: "HBM", "DRAM". `slug`: as Roof::name.
std::string_view roof_name(const RooflineModel& model, std::string_view slug);

/// A peak of a unit, not a bandwidth.
inline bool is_compute(const Roof& roof) {
  return roof.name.starts_with("valu") || roof.name.starts_with("mfma");
}

/// The roofs of one data type ("FP32") on one device, empty when roofline.csv lacks the peaks for it.
std::vector<Roof> roofs(const workload::RooflineCeilings& ceilings, std::string_view data_type);

/// The limit of a point under the roofs of one data type: the lowest of the memory roofs at its intensities and of the
/// highest compute roof. A kernel without FLOPs is measured by its bytes: its roof is that of the level that it uses
/// most.
struct Bound {
  const Roof* roof = nullptr;  ///< nullptr: there is no roof above the point, or the point has no rate
  double attainable = 0;       ///< GFLOP/s; GB/s where `bandwidth`
  double reached = 0;          ///< percent of the attainable
  double headroom = 0;         ///< attainable / achieved
  bool bandwidth = false;      ///< the kernel has no FLOPs: rates of bytes are compared
};
Bound bound_of(const IntensityPoint& point, std::span<const Roof> roofs);

/// More than this of a roof, in percent, is worth an explanation; below it is the scatter of the measurements.
inline constexpr double kAboveRoof = 102;
/// Why a point may lie above a roof, for people, about `count` kernels or dispatches. Empty for none.
std::string above_roof_text(size_t count);

/// "hbm" -> the point's intensity there; NaN for compute roofs.
double intensity_at(const IntensityPoint& point, std::string_view level);
/// "hbm" -> GB/s there; NaN for compute roofs.
double bandwidth_at(const IntensityPoint& point, std::string_view level);

/// The data type that did most of the point's FLOPs, as roofline_data_types() names it; "" for a point without FLOPs.
std::string_view main_data_type(const IntensityPoint& point, std::span<const IntensityFormulas::Kind> kinds);
/// The data types whose roofs belong over these points, the longest kernel's first; FP32 if nothing is known, and only
/// types that roofline.csv has peaks for, when it has any.
std::vector<std::string> data_types_of(std::span<const IntensityPoint> points,
                                       std::span<const IntensityFormulas::Kind> kinds,
                                       const workload::RooflineCeilings* ceilings);

/// Data types that roofline.csv has peaks for.
std::vector<std::string_view> roofline_data_types(const workload::RooflineCeilings& ceilings);

}  // namespace tacho::metric
