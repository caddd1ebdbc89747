// Results of an analysis besides its tables: points of the roofline, and the outcome of the rules.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metric/catalog/architecture.h"

namespace tacho::metric {

/// A unit that does FLOPs of one data type: {"FP32", false} is the vector unit, {"BF16", true} the matrix unit.
struct FlopKind {
  std::string_view type;
  bool matrix = false;
};
/// Levels of memory of the roofline, in the order of arrays over them.
constexpr std::array<std::string_view, 4> kRooflineLevels = {"hbm", "l2", "l1", "lds"};

/// One point of the roofline: a kernel (mean of its dispatches) or a dispatch.
struct IntensityPoint {
  uint32_t kernel = 0;
  uint32_t row = 0;  ///< of the (first) dispatch, in Workload::dispatches
  size_t calls = 0;
  double total_duration = 0;                ///< ns
  double l1 = 0, l2 = 0, hbm = 0, lds = 0;  ///< FLOP / byte; NaN: not computable
  double performance = 0;                   ///< GFLOP/s; NaN: not computable
  /// by Analysis::flop_kinds(), of all dispatches; NaN: not counted
  std::array<double, kMostFlopKinds> flops{};
  /// By kRooflineLevels: of all dispatches, and for each ns of them. NaN: not computable.
  std::array<double, kRooflineLevels.size()> bytes{}, bandwidth{};
};

struct Evidence {
  std::string id, name, unit;
  double value = 0;
  double low = 0, high = 0;  ///< 95 % interval
  std::string comparison;    ///< ">" etc., "" when it only illustrates
  double threshold = 0;
  std::optional<double> peak;
  std::string term;  ///< "lds-bank-conflicts / lds-accesses"
};

struct Finding {
  uint32_t kernel = 0;
  std::string slug, title, meaning;
  std::vector<std::string> advice;
  bool possible = false;     ///< an interval straddles its threshold, or something that could refute it is unknown
  std::string doubt;         ///< why it is only possible
  double low = 0, high = 0;  ///< percent of the kernel's time (or of `of`) that could be saved
  std::string of;            ///< the count that would shrink; "" = time
  std::string model;         ///< where that range comes from
  double severity = 0;       ///< its middle, 0..1
  double share = 0;          ///< of the kernel in the run's time (or in Diagnosis::weight_words), percent
  std::vector<Evidence> evidence;
};

/// An implausible input. Findings that use it are withheld.
struct Implausible {
  std::string slug, text;
  std::vector<std::string> withheld;  ///< titles of the findings that would have been made
};

/// A rule that nothing speaks against, and that lacks inputs.
struct NotJudged {
  std::string slug, title;
  std::vector<std::string> missing;  ///< counters and values of the machine ("$max_sclk")
  std::vector<std::string> collect;  ///< what -b of a profile run takes for them
};

/// The outcome of the rules on a run.
struct Diagnosis {
  struct Kernel {
    uint32_t kernel = 0;
    double share = 0;                         ///< as in Finding::share
    std::vector<std::optional<double>> bars;  ///< by `bars`, percent
  };
  std::vector<Finding> findings;  ///< by what could be saved of the run
  std::vector<Implausible> implausible;
  std::vector<NotJudged> not_judged;
  std::vector<std::string> bars;  ///< names of the bars on the first screen
  std::vector<Kernel> kernels;    ///< those judged, the heaviest first
  std::string weight_words;       ///< what shares are of, "" = time
  size_t rules = 0;               ///< rules that this GPU's counters could judge
  size_t left_out = 0;            ///< kernels that were too short to be judged
};

}  // namespace tacho::metric
