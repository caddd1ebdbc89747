// What each operator of PyTorch reached of what its device can do: floating-point operations and bytes by the models of
// catalog/operators, against the time of the kernels that it launched. docs/efficiency.md has the definitions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/operators/operators.h"
#include "base/result.h"
#include "efficiency/measured_roofs.h"
#include "efficiency/models.h"
#include "efficiency/products.h"
#include "trace/trace.h"

namespace tacho::efficiency {

/// Why an operator is not judged.
enum class RoofDoubt : uint8_t {
  kJudged,
  kNoModel,     ///< no model, or the inputs do not tell what its model needs
  kNoRoof,      ///< the device is not known and nothing in the trace stands in
  kCopies,      ///< the device copies and runs no kernel
  kPartCopies,  ///< more than kMostCopied of its time are copies between host and device
  kTooShort,    ///< its kernels take less than kShortestMean on average
  kTooFast,     ///< faster than the roof: shapes, times or caches
  kOpen,        ///< its traffic is known as a range that holds its time
  kNoSizes,     ///< it works on lists of tensors whose sizes are not told
  kNoTypes,     ///< it works on lists of tensors, and its kernels' names tell no type, or several
};
std::string_view to_string(RoofDoubt why);

inline constexpr double kShortestMean = 10e3;  ///< ns, of a kernel
inline constexpr double kMostCopied = 5;       ///< percent of an operator's time
inline constexpr double kHighest = 105;        ///< percent of the roof

/// A kernel that an operator launched: its row and how often.
struct OperatorsKernel {
  int64_t kernel = 0;  ///< row of table kernel
  int64_t launches = 0, ns = 0;
};

/// All calls of an operator with the same shapes in the same phase.
struct OperatorWork {
  std::string name, shapes;
  analysis::OperatorPhase phase = analysis::OperatorPhase::kForward;
  int64_t calls = 0;
  int64_t kernels = 0;
  int64_t copied_ns = 0;  ///< of `ns`: copies between host and device
  int64_t ns = 0;         ///< of the kernels and copies that it, or what it called without a model of its own, launched
  double flops = 0, bytes = 0, bytes_most = 0;  ///< of all calls
  bool matrix = false;
  Precision precision = Precision::kUnknown;
  CallWork call;                   ///< of one call, the last one's
  double peak = 0, bandwidth = 0;  ///< the roofs: FLOP/s and bytes/s; 0 = unknown
  bool compute_bound = false;      ///< the roof that counts is that of computing
  std::optional<double> percent;   ///< of the roof: time at the roof / time
  std::optional<double> lost_ns;   ///< time above the roof's
  RoofDoubt why = RoofDoubt::kJudged;
  std::vector<OperatorsKernel> of_kernels;  ///< costliest first, at most kMostKernels
};
inline constexpr size_t kMostKernels = 8;

/// Calls of an operator on lists of tensors of which the trace does not tell enough.
struct UntoldLists {
  std::string name, shapes;
  analysis::OperatorPhase phase = analysis::OperatorPhase::kForward;
  RoofDoubt why = RoofDoubt::kNoSizes;  ///< or kNoTypes
  int64_t calls = 0, ns = 0;
};

struct EfficiencyOptions {
  std::string device;                    ///< a product's name; "" = the trace's own device
  std::vector<std::string> config_dirs;  ///< with models of the user's own
  MeasuredRoofs measured;                ///< on that device; they come before all published ones
  int64_t steps = 0;                     ///< that the trace holds, of one process; below 2 = unknown
  double step_ns = 0;                    ///< mean time of one
};

struct Efficiency {
  std::vector<OperatorWork> rows;     ///< by time, longest first; those with a model and GPU time
  std::string product;                ///< "MI300X"; "" = not known
  std::string roofs;                  ///< a sentence: where the roofs come from
  int64_t units = 0;                  ///< compute units of the device; 0 = unknown
  int64_t modelled_ns = 0;            ///< GPU time of all rows
  int64_t whole_ns = 0;               ///< GPU time of the trace; of operators with shapes, where `sampled`
  bool sampled = false;               ///< shapes were recorded in stretches of the run: `utilisation` is not known
  double matrix_flops = 0;            ///< of all matrix work
  std::optional<double> utilisation;  ///< percent: matrix_flops / (length of the run x peak of the main precision);
                                      ///< where steps are known their time counts, not that around them
  int64_t steps = 0;                  ///< as in the options
  double step_ns = 0;
  Precision main = Precision::kUnknown;        ///< that most of the matrix work has
  std::vector<analysis::RoofedWork> of_nodes;  ///< by node of the tree: what it has of the rows that are judged
  std::vector<std::string> notes;              ///< what the figures rest on, apart from the roofs
  std::vector<std::string> remarks;
  std::vector<UntoldLists> untold;  ///< no row is made of them
  bool any() const { return !rows.empty() || !untold.empty(); }
  /// The row of an operator with these shapes in this phase; nullptr if there is none.
  const OperatorWork* find(std::string_view name, std::string_view shapes, analysis::OperatorPhase phase) const;
  /// Such an operator on lists that are not told; nullptr if there is none.
  const UntoldLists* find_untold(std::string_view name, std::string_view shapes, analysis::OperatorPhase phase) const;
};

/// `tree`: made with input_shapes, and `kernels`, one list a node of the tree, from its visitor (KernelsOfNodes).
/// Errors: an unknown product, a faulty file of models.
Result<Efficiency> efficiency_of(const trace::Trace& trace, const analysis::OperatorTree& tree,
                                 std::span<const std::vector<OperatorsKernel>> kernels,
                                 const EfficiencyOptions& options = {});

/// The name of the GPU that the trace has work of; "" = none, or GPUs of several names.
std::string device_name(const trace::Trace& trace);

/// Copies between host and device of a trace against the link between them: "Copies from host to device ran at 24.70
/// GB/s, 39.2 % of PCIe 5.0 x16 (63.00 GB/s in one direction), the link of H100 SXM." Empty without such copies of at
/// least 1 MiB, whose rate is counted, or where the link is not known.
Result<std::vector<std::string>> link_sentences(const trace::Trace& trace);

/// Collects the kernels of each node while operator_tree() runs.
class KernelsOfNodes {
 public:
  analysis::OperatorVisitor visitor();
  std::span<const std::vector<OperatorsKernel>> of(const analysis::OperatorTree& tree);

 private:
  std::vector<std::vector<OperatorsKernel>> nodes_;
};

/// The tree and its efficiency in one.
Result<Efficiency> efficiency_of(const trace::Trace& trace, const EfficiencyOptions& options = {});

}  // namespace tacho::efficiency
