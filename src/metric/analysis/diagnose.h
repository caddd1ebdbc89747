// Diagnosis: finds implausible inputs, then applies the catalog's rules to the kernels of a run.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metric/analysis/results.h"
#include "metric/catalog/rules.h"
#include "metric/formula/program.h"
#include "workload/workload.h"

namespace tacho::metric {

struct DiagnosisInput {
  const Catalog& catalog;
  const RuleBook& rules;
  const workload::Workload& workload;
  bool compat = false;
  size_t most_findings = 5;  ///< of one kernel
  double total_time = 0;     ///< ns, of all kernels of the run; shares are of this
  /// The parsed formula of a catalog text, nullptr if there is none.
  std::function<const Formula*(std::string_view)> formula_of;
  /// The environment over some dispatches; counts are those of a kernel, whatever -n says.
  std::function<Environment(std::vector<uint32_t>)> environment;
  /// The id of a metric as the user's scheme prints it.
  std::function<std::string(const Metric&)> printed_id;
};

/// Dispatches of one kernel.
struct KernelRows {
  uint32_t kernel = 0;
  double time = 0;  ///< ns, of all of them
  std::vector<uint32_t> rows;
};

/// Judges the kernels (the one with the most time first). A quantity's 95 % interval lies around its value over all
/// dispatches of the kernel. Its width comes from Student's t and a jackknife over the dispatches (beyond 24, over 24
/// interleaved groups of them), with the rule's input error as the spread of four more dispatches; of a single dispatch
/// it is that error. With an order statistic it comes from the groups' own values, and reaches at least to the
/// dispatches between which a median or quartile lies with 95 %. Launch sizes are exact.
Diagnosis diagnose(const DiagnosisInput& input, std::span<const KernelRows> kernels);

}  // namespace tacho::metric
