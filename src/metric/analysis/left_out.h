// Dispatches without some of the counters of a metric: they are in none of its sums, so people are told which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "metric/formula/program.h"

namespace tacho::metric {

/// Dispatches that the same metrics of one table leave out.
struct LeftOut {
  std::vector<std::string> ids, names;  ///< of the metrics; of a table with a row a channel, its own
  std::vector<std::string> counters;    ///< those that a dispatch lacks, or some of them
  std::vector<uint32_t> dispatches;     ///< ascending indices into Workload::dispatches
};

/// Of the dispatches of one kernel, how many are left out.
struct LeftOutKernel {
  uint32_t kernel = 0;  ///< index into Workload::kernels
  size_t dispatches = 0, of = 0;
};

/// The kernels of these dispatches, the one that misses most first. `rows`: the dispatches that were evaluated.
std::vector<LeftOutKernel> kernels_left_out(const LeftOut& left_out, const workload::Workload& workload,
                                            std::span<const uint32_t> rows);

/// Finds what metrics leave out. Looks at each counter once.
class CounterGaps {
 public:
  /// Over the program's dispatches; it must outlive this.
  explicit CounterGaps(const Program& program) : program_(program) {}

  /// What the run has of the inputs of one metric.
  struct Found {
    std::vector<std::string> counters;  ///< lacking in some dispatches, without their channels
    std::vector<uint32_t> dispatches;   ///< that lack at least one
    std::vector<std::string> empty;     ///< those of `counters` that no dispatch has
  };
  Found of(std::span<const FormulaInput> inputs);

 private:
  const std::vector<uint32_t>& of(const FormulaInput& input);

  const Program& program_;
  std::unordered_map<std::string, std::vector<uint32_t>> known_;
};

/// Adds a metric to the group with the same dispatches, or to a new one.
void add_left_out(std::vector<LeftOut>& groups, std::string id, std::string name, CounterGaps::Found found);

}  // namespace tacho::metric
